package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// rolling serves a kind by one version of a chart after another.
type rolling struct {
	*harness.Env
	kind    harness.Kind
	account harness.Account
	policy  map[string]any
	// everywhere serves all namespaces, and not only that of the test.
	patchAll bool
	// replicas is an override value, if any.
	replicas string
	// charts are the folders by version.
	charts   map[string]string
	operator *harness.Operator
	metrics  harness.Metrics
}

// newRolling serves nothing yet. By version 0.2.0 pods are made anew, and web-20
// has a Job that fails, unless its spec names an account.
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
	// The one that fails is not ready before: to kstatus a Job that runs is in
	// order. The others take long enough for the failure to be known.
	second = copyChart(env, second, map[string][2]string{
		"templates/all.yaml": {"  replicas: {{ .Values.replicas }}", `  minReadySeconds: {{ if and (eq .Release.Name "web-20") (not .Values.account) }}300{{ else }}2{{ end }}` + "\n  replicas: {{ .Values.replicas }}"},
	})
	second = copyChart(env, second, map[string][2]string{
		"templates/all.yaml": {"{{- if .Values.job.enabled }}", `{{- if and (eq .Release.Name "web-20") (not .Values.account) }}{{ $_ := set .Values "job" (dict "enabled" true "outcome" "failure") }}{{ end }}` + "\n{{- if .Values.job.enabled }}"},
	})
	return &rolling{Env: env, kind: kind, account: env.NewAccount(), policy: policy, metrics: env.NewMetrics(), charts: map[string]string{"0.1.0": first, "0.2.0": second}}
}

// serve ends the operator that runs, if any, and starts one with that version.
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

// crash ends the operator as a crash does, and starts it again.
func (r *rolling) crash() {
	r.T().Helper()
	r.operator.Kill()
	r.operator.Start()
}

func (r *rolling) cr(name string) harness.CR { return harness.MakeCR(r.kind, name) }

// create makes so many, web-00 and so on, and waits for them.
func (r *rolling) create(n int) (crs []*unstructured.Unstructured) {
	r.T().Helper()
	for i := range n {
		crs = append(crs, r.cr(fmt.Sprintf("web-%02d", i)).Obj())
	}
	r.Create(crs...)
	r.WaitReady(crs...)
	return crs
}

// versions counts the resources by the version of their chart.
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

// waitAt waits until at least so many are at a version.
func (r *rolling) waitAt(version string, n int) {
	r.T().Helper()
	r.Wait(fmt.Sprintf("%d to be at %s", n, version), func(ctx context.Context) error {
		counts, err := r.versions(ctx)
		if err == nil && counts[version] < n {
			err = fmt.Errorf("they are at %v", counts)
		}
		return err
	})
}

// waitUpdate waits until a resource says why it has not got version 0.2.0.
func (r *rolling) waitUpdate(cr *unstructured.Unstructured, reason string, says ...string) api.Status {
	r.T().Helper()
	status := r.WaitCondition(cr, "UpdateAvailable", metav1.ConditionTrue, reason)
	message := harness.Condition(status, "UpdateAvailable").Message
	for _, text := range says {
		if !strings.Contains(message, text) {
			r.T().Errorf("of %s UpdateAvailable says %q, expected %q", cr.GetName(), message, text)
		}
	}
	return status
}

// expectStandings waits until the metrics count the resources so.
func (r *rolling) expectStandings(want map[string]int) {
	r.T().Helper()
	r.Wait("the metrics to tell", func(context.Context) error {
		for standing, n := range want {
			if got := r.metrics.Sum("chartwright_rollout_resources", map[string]string{"standing": standing}); got != float64(n) {
				return fmt.Errorf("%v are %s, expected %d", got, standing, n)
			}
		}
		return nil
	})
}

// fence sees a resource from its beginning to its end: whatever was to be done
// before has begun.
func (r *rolling) fence() {
	r.T().Helper()
	fence := r.cr("fence").Obj()
	r.Create(fence)
	r.WaitReady(fence)
	r.Delete(fence)
	r.WaitGone(fence)
}

// A tenant whose upgrade fails, perhaps on purpose, withholds the new chart from
// its own namespace and from no other, though its namespace comes first.
func TestRollout_FailureInOneNamespaceSparesOthers(t *testing.T) {
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

// A new chart over many, of which one fails, while the operator is killed: never
// are more under way than may be, and one that fails stops the rest until it is
// mended.
func TestRollout(t *testing.T) {
	t.Parallel()
	const all, most = 50, 5
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
	r.crash()
	r.WaitCondition(crs[20], "Ready", metav1.ConditionFalse, "ObjectFailed")
	last := crs[all-1]
	status := r.waitUpdate(last, "RolloutStopped", "Chart workloads-0.2.0 will replace 0.1.0, at position 50 of 50", "upgrades failed")
	if update := status.Update; update == nil || update.Chart != "workloads-0.2.0" || update.ChartVersion != "0.2.0" || update.Place != all || update.Of != all {
		t.Errorf("the update is %+v", update)
	}
	if event := r.WaitEvent(crs[20], "RolloutStopped"); event.Type != "Warning" || !strings.Contains(event.Note, "The rollout of chart workloads-0.2.0 has stopped in ") {
		t.Errorf("the event is %+v", event)
	}
	if n := r.CountEvents(last, "RolloutStopped"); n != 0 {
		t.Errorf("%s, which waits, has the event, too", last.GetName())
	}
	if !strings.Contains(r.operator.Log(), "rollout stopped by failed upgrades") {
		t.Error("the log does not say so")
	}
	// What waits goes on serving.
	if ready := harness.Condition(status, "Ready"); ready.Status != metav1.ConditionTrue || ready.Reason != "Deployed" {
		t.Errorf("Ready is %+v", ready)
	}
	// It stays so, also under another process.
	r.crash()
	r.fence()
	counts, err := r.versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.expectStandings(map[string]int{"done": counts["0.2.0"] - 1, "moving": 0, "failed": 1, "waiting": all - counts["0.2.0"], "aside": 2})

	// A person's edit goes at once, and gets the new chart.
	edited := crs[40]
	r.SetSpec(r.cr(edited.GetName()).Set("replicas", 2).Obj())
	if status := r.WaitRevision(edited, 2); status.Release.ChartVersion != "0.2.0" || status.Update != nil {
		t.Errorf("what was edited is %+v, to come is %+v", status.Release, status.Update)
	}
	r.waitUpdate(crs[all-1], "RolloutStopped")

	// It goes on when the one that failed is mended.
	r.SetSpec(r.cr("web-20").Set("account", "default").Obj())
	r.waitAt("0.2.0", all)
	r.WaitReady(crs...)
	for _, cr := range crs {
		if status := r.Status(cr); status.Update != nil || harness.Condition(status, "UpdateAvailable") != nil {
			t.Errorf("of %s an update is available still: %+v", cr.GetName(), status.Update)
		}
	}
	if count, who := under(edited.GetName()); count > most {
		t.Errorf("%d were under way at a time: %v", count, who)
	}

	r.expectStandings(map[string]int{"done": all, "moving": 0, "failed": 0, "waiting": 0, "aside": 2})

	if !strings.Contains(r.operator.Log(), "rollout continues") {
		t.Error("the log does not say that it goes on")
	}
	// Who is held or paused was passed over, and says so.
	r.waitUpdate(held, "Held", "when the hold ends")
	r.waitUpdate(paused, "Paused", "when the pause ends")
	r.WaitReady(held, paused)
	r.Unannotate(paused, "pause")
	r.WaitRevision(paused, 2)
	r.Annotate(held, "rollback-to", "none")
	r.WaitRevision(held, 4)
}

// A pause that stands in the watches file or on the kind's CRD keeps all waiting
// but those that a person asks for.
func TestRolloutIsPaused(t *testing.T) {
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
			t.Errorf("%s is at revision %d", cr.GetName(), status.Release.Revision)
		}
	}
	// Damage is repaired meanwhile, by what runs.
	r.Kubectl("delete", "deployment", crs[0].GetName())
	r.Kubectl("wait", "--for=create", "deployment/"+crs[0].GetName(), "--timeout=30s")

	r.Kubectl("annotate", definition, api.AnnotationRolloutPaused+"-")
	for _, cr := range crs {
		r.WaitRevision(cr, 2)
	}
}

// What the watches file overrides is the operator's, as the chart is: another
// value waits in line, and is no edit.
func TestRolloutOfOverrides(t *testing.T) {
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

// A chart that is older than what runs is refused where the kind allows no
// downgrade; what runs goes on.
func TestRolloutRefusesADowngrade(t *testing.T) {
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
		t.Errorf("Ready says %q", message)
	}
	r.WaitEvent(web, "DowngradeRefused")
	r.ExpectRevisions(web.GetName(), "1 deployed")
	r.serve("0.2.0")
	r.WaitRevision(web, 2)

	// Where it is allowed, it goes through the same line.
	r.policy = nil
	r.serve("0.1.0")
	if status := r.WaitRevision(web, 3); status.Release.ChartVersion != "0.1.0" {
		t.Errorf("the release is %+v", status.Release)
	}
}

// How long it takes depends on the machine, and what else it does.
func TestRolloutOverAThousand(t *testing.T) {
	if os.Getenv("CHARTWRIGHT_LONG") == "" {
		t.Skip("takes long: set CHARTWRIGHT_LONG=1")
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
		r.WaitLong(fmt.Sprintf("%d to be at %s", n, version), 5*time.Minute, func(context.Context) error {
			if done := r.metrics.Sum("chartwright_rollout_resources", map[string]string{"standing": "done"}); done < float64(n) {
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
		t.Errorf("they are at %v (%v)", counts, err)
	}
	t.Logf("%d in %s, with a crash on the way; %.1f writes each", all, time.Since(began).Round(time.Second), float64(len(audit.Writes("")))/all)
}
