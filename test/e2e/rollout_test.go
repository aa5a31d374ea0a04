package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// rolling serves a kind with one version of a chart after another.
type rolling struct {
	*harness.Env
	kind    harness.Kind
	account harness.Account
	policy  map[string]any
	// allNamespaces makes the operator watch all namespaces, not only the
	// test's.
	patchAll bool
	// replicas is an override value, if set.
	replicas string
	// charts are the folders of the charts by version.
	charts   map[string]string
	operator *harness.Operator
	metrics  harness.Metrics
}

// newRolling does not start an operator yet. Version 0.2.0 of the chart
// recreates the pods, and the Job of web-20 fails unless its spec names a
// service account.
func newRolling(t *testing.T, policy map[string]any) *rolling {
	t.Helper()
	env := harness.New(t)
	kind := env.NewKind("Workload")
	env.InstallCRD(kind)
	first := harness.Chart("workloads")
	second := copyChart(env, first, map[string][2]string{
		"Chart.yaml": {"version: 0.1.0", "version: 0.2.0"},
		"templates/all.yaml": {
			"annotations:\n        test.chartwright.dev/outcome: {{ .Values.outcome",
			"annotations:\n        example.com/chart: later\n        test.chartwright.dev/outcome: {{ .Values.outcome",
		},
	})
	// The failing release must not be ready before the failure, because kstatus
	// considers a running Job ready. The others take long enough that the
	// failure is detected first.
	second = copyChart(env, second, map[string][2]string{
		"templates/all.yaml": {"  replicas: {{ .Values.replicas }}", `  minReadySeconds: {{ if and (eq .Release.Name "web-20") (not .Values.account) }}300{{ else }}2{{ end }}` + "\n  replicas: {{ .Values.replicas }}"},
	})
	second = copyChart(env, second, map[string][2]string{
		"templates/all.yaml": {"{{- if .Values.job.enabled }}", `{{- if and (eq .Release.Name "web-20") (not .Values.account) }}{{ $_ := set .Values "job" (dict "enabled" true "outcome" "failure") }}{{ end }}` + "\n{{- if .Values.job.enabled }}"},
	})
	return &rolling{Env: env, kind: kind, account: env.NewAccount(), policy: policy, metrics: env.NewMetrics(), charts: map[string]string{"0.1.0": first, "0.2.0": second}}
}

// serve stops the running operator, if any, and starts one with the given
// version.
func (r *rolling) serve(version string) {
	r.T().Helper()
	if r.operator != nil {
		r.operator.Stop()
	}
	entry := harness.MakeEntry(r.kind, r.charts[version]).With("rollout", r.policy)
	if r.replicas != "" {
		entry = entry.Override("replicas", r.replicas)
	}
	r.operator = r.NewOperator(harness.Options{
		Watches: r.Watches(entry), Account: r.account, Args: r.metrics.Args(), AllNamespaces: r.patchAll,
	}).Start()
}

// crash kills the operator and starts it again.
func (r *rolling) crash() {
	r.T().Helper()
	r.operator.Kill()
	r.operator.Start()
}

func (r *rolling) cr(name string) harness.CR { return harness.MakeCR(r.kind, name) }

// create creates n resources named web-00, web-01 and so on, and waits until
// they are ready.
func (r *rolling) create(n int) (crs []*unstructured.Unstructured) {
	r.T().Helper()
	for i := range n {
		crs = append(crs, r.cr(fmt.Sprintf("web-%02d", i)).Obj())
	}
	r.Create(crs...)
	r.WaitReady(crs...)
	return crs
}

// waitPending waits until an upgrade begins. For a moment, its record is pending.
func (r *rolling) waitPending() {
	r.T().Helper()
	pending, changes := r.Follow(r.At(harness.Object("v1", "Secret", "any")), metav1.ListOptions{LabelSelector: "owner=helm,status=pending-upgrade"})
	defer changes.Stop()
	if len(pending) > 0 {
		return
	}
	if _, open := <-changes.ResultChan(); !open {
		r.T().Fatal("the watch of the records has ended")
	}
}

// versions counts the resources by chart version.
func (r *rolling) versions(ctx context.Context) (map[string]int, error) {
	list, err := r.At(r.cr("").Obj()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for i := range list.Items {
		version, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "release", "chartVersion")
		counts[version]++
	}
	return counts, nil
}

// waitAt waits until at least n resources have a chart version.
func (r *rolling) waitAt(version string, n int) {
	r.T().Helper()
	r.Wait(fmt.Sprintf("%d to be at %s", n, version), func(ctx context.Context) error {
		counts, err := r.versions(ctx)
		if err == nil && counts[version] < n {
			err = fmt.Errorf("chart versions are %v", counts)
		}
		return err
	})
}

// waitUpdate waits until condition UpdateAvailable reports why a resource has
// not received version 0.2.0.
func (r *rolling) waitUpdate(cr *unstructured.Unstructured, reason string, wantText ...string) api.Status {
	r.T().Helper()
	status := r.WaitCondition(cr, "UpdateAvailable", metav1.ConditionTrue, reason)
	message := harness.Condition(status, "UpdateAvailable").Message
	for _, text := range wantText {
		if !strings.Contains(message, text) {
			r.T().Errorf("the message of UpdateAvailable of %s is %q, want %q", cr.GetName(), message, text)
		}
	}
	return status
}

// expectPhases waits until the metrics report these numbers of resources.
func (r *rolling) expectPhases(want map[string]int) {
	r.T().Helper()
	r.Wait("the metrics to report the numbers", func(context.Context) error {
		for phase, n := range want {
			if got := r.metrics.Sum("chartwright_rollout_resources", map[string]string{"position": phase}); got != float64(n) {
				return fmt.Errorf("%v are %s, want %d", got, phase, n)
			}
		}
		return nil
	})
}

// fence creates a resource and waits until it is deleted. By then, all earlier
// actions have started.
func (r *rolling) fence() {
	r.T().Helper()
	fence := r.cr("fence").Obj()
	r.Create(fence)
	r.WaitReady(fence)
	r.Delete(fence)
	r.WaitGone(fence)
}

// A failed upgrade of one tenant, possibly on purpose, stops the rollout in
// that tenant's namespace, but in no other, although that namespace is the
// first in the queue.
func TestRollout_FailureStopsOnlyItsNamespace(t *testing.T) {
	t.Parallel()
	r := newRolling(t, map[string]any{"maxConcurrent": 1})
	r.patchAll = true
	others := r.In(r.NewNamespace("others"))
	r.serve("0.1.0")
	fails, after := r.cr("web-20").Obj(), r.cr("web-21").Obj()
	r.Create(fails, after)
	r.WaitReady(fails, after)
	first, second := r.cr("web-00").Obj(), r.cr("web-01").Obj()
	others.Create(first, second)
	others.WaitReady(first, second)

	r.serve("0.2.0")
	others.WaitRevision(first, 2)
	others.WaitRevision(second, 2)
	others.WaitReady(first, second)
	r.WaitCondition(fails, "Ready", metav1.ConditionFalse, "ObjectFailed")
	r.waitUpdate(after, "RolloutStopped", "upgrades failed, in this namespace or in several")
}

// A new chart is rolled out to many resources while the operator is killed
// repeatedly. There are never more concurrent upgrades than allowed, and one
// failure stops the rollout until it is resolved.
func TestRollout_StopsAtFailureAndContinues(t *testing.T) {
	t.Parallel()
	const all, most = 35, 5
	r := newRolling(t, map[string]any{"maxConcurrent": most})
	r.serve("0.1.0")
	crs := r.create(all)
	held, paused := r.cr("held").Obj(), r.cr("paused").Obj()
	r.Create(held, paused)
	r.WaitReady(held, paused)
	r.SetSpec(r.cr("held").Set("replicas", 2).Obj())
	r.WaitRevision(held, 2)
	r.Annotate(held, "rollback-to", "1")
	r.WaitRevision(held, 3)
	r.Annotate(paused, "pause", "true")
	r.WaitCondition(paused, "Paused", metav1.ConditionTrue, "Paused")
	under := watchRollout(r.Env)

	r.serve("0.2.0")
	r.waitAt("0.2.0", 7)
	r.waitPending()
	r.crash()
	r.WaitCondition(crs[20], "Ready", metav1.ConditionFalse, "ObjectFailed")
	last := crs[all-1]
	status := r.waitUpdate(last, "RolloutStopped", "Chart workloads-0.2.0 will replace 0.1.0, at position 35 of 35", "upgrades failed")
	if update := status.Update; update == nil || update.Chart != "workloads-0.2.0" || update.ChartVersion != "0.2.0" || update.Place != all || update.Of != all {
		t.Errorf("the update is %+v", update)
	}
	if event := r.WaitEvent(crs[20], "RolloutStopped"); event.Type != "Warning" || !strings.Contains(event.Note, "The rollout of chart workloads-0.2.0 has stopped in ") {
		t.Errorf("the event is %+v", event)
	}
	for _, cr := range crs {
		if n := r.CountEvents(cr, "RolloutStopped"); n != 0 && cr != crs[20] {
			t.Errorf("%s did not fail, but has the event, too", cr.GetName())
		}
	}
	if !strings.Contains(r.operator.Log(), "rollout stopped by failed upgrades") {
		t.Error("the log does not contain the stop")
	}
	// Queued releases are still ready.
	if ready := harness.Condition(status, "Ready"); ready.Status != metav1.ConditionTrue || ready.Reason != "Deployed" {
		t.Errorf("Ready is %+v", ready)
	}
	// The rollout is still stopped in another process.
	r.crash()
	r.fence()
	counts, err := r.versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.expectPhases(map[string]int{"done": counts["0.2.0"] - 1, "moving": 0, "failed": 1, "waiting": all - counts["0.2.0"], "skipped": 2})

	// A user's edit is applied immediately, with the new chart.
	edited := crs[30]
	r.SetSpec(r.cr(edited.GetName()).Set("replicas", 2).Obj())
	if status := r.WaitRevision(edited, 2); status.Release.ChartVersion != "0.2.0" || status.Update != nil {
		t.Errorf("the edited release is %+v, its update is %+v", status.Release, status.Update)
	}
	r.waitUpdate(crs[all-1], "RolloutStopped")

	// The rollout continues when the failed release is corrected.
	r.SetSpec(r.cr("web-20").Set("account", "default").Obj())
	r.waitAt("0.2.0", all)
	r.WaitReady(crs...)
	for _, cr := range crs {
		if status := r.Status(cr); status.Update != nil || harness.Condition(status, "UpdateAvailable") != nil {
			t.Errorf("%s still has an update: %+v", cr.GetName(), status.Update)
		}
	}
	// What users have edited takes no place from others.
	if count, who := under(edited.GetName(), "web-20"); count > most {
		t.Errorf("%d concurrent upgrades: %v", count, who)
	}

	r.expectPhases(map[string]int{"done": all, "moving": 0, "failed": 0, "waiting": 0, "skipped": 2})

	if !strings.Contains(r.operator.Log(), "rollout continues") {
		t.Error("the log does not contain the continuation")
	}
	// Held and paused releases are skipped and report it.
	r.waitUpdate(held, "Held", "when the hold ends")
	r.waitUpdate(paused, "Paused", "when the pause ends")
	r.WaitReady(held, paused)
	r.Unannotate(paused, "pause")
	r.WaitRevision(paused, 2)
	r.Annotate(held, "rollback-to", "none")
	r.WaitRevision(held, 4)
}

// A pause in the watches file or on the kind's CRD keeps all queued releases
// waiting, except those that a user edits.
func TestRollout_Pause(t *testing.T) {
	t.Parallel()
	r := newRolling(t, nil)
	r.serve("0.1.0")
	crs := r.create(3)
	definition := "crd/workloads." + r.kind.Group
	r.Kubectl("annotate", definition, api.AnnotationRolloutPaused+"=true")
	r.serve("0.2.0")
	for _, cr := range crs {
		r.waitUpdate(cr, "RolloutPaused", "when the rollout is resumed")
	}
	r.Annotate(crs[1], "reconcile-requested-at", "now")
	r.WaitRevision(crs[1], 2)
	r.fence()
	for _, cr := range []*unstructured.Unstructured{crs[0], crs[2]} {
		if status := r.Status(cr); status.Release.Revision != 1 {
			t.Errorf("%s has revision %d", cr.GetName(), status.Release.Revision)
		}
	}
	// Drift is corrected meanwhile, with the deployed chart.
	r.Kubectl("delete", "deployment", crs[0].GetName())
	r.Kubectl("wait", "--for=create", "deployment/"+crs[0].GetName(), harness.Timeout)

	r.Kubectl("annotate", definition, api.AnnotationRolloutPaused+"-")
	for _, cr := range crs {
		r.WaitRevision(cr, 2)
	}
}

// Override values belong to the operator, like the chart: a change of an
// override value is rolled out through the queue and is not an edit.
func TestRollout_OverrideValues(t *testing.T) {
	t.Parallel()
	r := newRolling(t, map[string]any{"paused": true})
	r.replicas = "1"
	r.serve("0.1.0")
	web := r.create(1)[0]
	r.replicas = "2"
	r.serve("0.1.0")
	r.waitUpdate(web, "RolloutPaused", "other files or overrideValues")
	r.ExpectRevisions(web.GetName(), "1 deployed")
	r.policy = nil
	r.serve("0.1.0")
	r.WaitRevision(web, 2)
	waitRunning(r.Env, web.GetName(), 2)
}

// A chart that is older than the deployed one is refused if the kind does not
// allow downgrades. The release stays deployed.
func TestRollout_RefusesDowngrade(t *testing.T) {
	t.Parallel()
	r := newRolling(t, map[string]any{"allowDowngrade": false})
	r.serve("0.2.0")
	web := r.create(1)[0]
	r.serve("0.1.0")
	status := r.waitUpdate(web, "DowngradeRefused", "The operator has chart workloads-0.1.0, which is older than 0.2.0, and rollout.allowDowngrade is false")
	if ready := harness.Condition(status, "Ready"); ready.Status != metav1.ConditionTrue {
		t.Errorf("Ready is %+v", ready)
	}
	r.SetSpec(r.cr(web.GetName()).Set("replicas", 2).Obj())
	status = r.WaitCondition(web, "Ready", metav1.ConditionFalse, "DowngradeRefused")
	if message := harness.Condition(status, "Ready").Message; !strings.Contains(message, "which is older than the deployed 0.2.0") || !strings.Contains(message, "run an operator that has the newer chart") {
		t.Errorf("the message of Ready is %q", message)
	}
	r.WaitEvent(web, "DowngradeRefused")
	r.ExpectRevisions(web.GetName(), "1 deployed")
	r.serve("0.2.0")
	r.WaitRevision(web, 2)

	// An allowed downgrade is rolled out through the same queue.
	r.policy = nil
	r.serve("0.1.0")
	if status := r.WaitRevision(web, 3); status.Release.ChartVersion != "0.1.0" {
		t.Errorf("the release is %+v", status.Release)
	}
}

// The duration depends on the machine and its load.
func TestRollout_AThousandReleases(t *testing.T) {
	if !testenv.Long() {
		t.Skip("part of make check-long (soak)")
	}
	const all = 1000
	env := harness.New(t)
	kind := env.NewKind("Plain")
	env.InstallCRD(kind)
	first := harness.Chart("plain")
	second := copyChart(env, first, map[string][2]string{"Chart.yaml": {"version: 1.2.3", "version: 1.3.0"}, "templates/configmaps.yaml": {"data:\n", "data:\n  chart: later\n"}})
	r := &rolling{Env: env, kind: kind, account: env.NewAccount(), metrics: env.NewMetrics(), charts: map[string]string{"1.2.3": first, "1.3.0": second}}
	r.serve("1.2.3")
	for i := range all {
		r.Create(r.cr(fmt.Sprintf("web-%04d", i)).Obj())
	}
	wait := func(version string, n int) {
		r.T().Helper()
		r.Wait(fmt.Sprintf("%d to be at %s", n, version), func(context.Context) error {
			if done := r.metrics.Sum("chartwright_rollout_resources", map[string]string{"position": "done"}); done < float64(n) {
				return fmt.Errorf("%v are", done)
			}
			return nil
		})
	}
	wait("1.2.3", all)
	r.waitAt("1.2.3", all)
	audit := r.Audit(r.operator.User())
	began := time.Now()
	r.serve("1.3.0")
	wait("1.3.0", 300)
	r.crash()
	wait("1.3.0", all)
	counts, err := r.versions(t.Context())
	if err != nil || counts["1.3.0"] != all {
		t.Errorf("chart versions are %v (%v)", counts, err)
	}
	t.Logf("%d in %s, with one crash; %.1f writes each", all, time.Since(began).Round(time.Second), float64(len(audit.Writes("")))/all)
}
