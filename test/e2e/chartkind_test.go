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
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestChartKind_DeliversVersionsByRollout pushes four versions of a chart. The third one
// fails for every custom resource.
func TestChartKind_DeliversVersionsByRollout(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Kettle")
	r := startRegistry(env)
	r.push("1.0.0", nil)
	operator := r.operator(harness.Options{}, kind)
	ck := createChartKind(env, kind, r.chart(), map[string]any{"rollout": map[string]any{"maxConcurrent": int64(1), "stopAfterNamespaces": int64(1)}})
	waitChartKind(env, ck, "Ready", "Serving", "plain 1.0.0")
	waitChartKind(env, ck, "Pulled", "Pulled", "1.0.0 of oci://"+r.host+"/charts/plain")
	waitChartKind(env, ck, "CRDEstablished", "Established", "")
	waitChartKind(env, ck, "PermissionsComplete", "Complete", "")
	operator.WaitReadyz(200, kind.GroupKind().String()+": Serving\n")

	var webs []*unstructured.Unstructured
	for i := range 4 {
		web := harness.MakeCR(kind, fmt.Sprintf("web-%d", i)).Set("message", "hi").Obj()
		webs = append(webs, web)
		env.Create(web)
	}
	env.WaitReady(webs...)

	// The plan fetches the chart that the operator serves.
	user, _ := administrator(env)
	target := strings.ToLower(kind.Kind) + "." + kind.Group + "/web-0"
	output := user.ChartwrightWith(`{"message": "planned"}`, "plan", target, "-f", "-", "--plain-http")
	if want := "revision 2 of release web-0 (plain-1.0.0)"; output.Code != 2 || !strings.Contains(output.Stdout, want) || !strings.Contains(output.Stdout, "data.message: hi -> planned") {
		t.Errorf("plan exits with %d, want 2 and %q:\n%s%s", output.Code, want, output.Stdout, output.Stderr)
	}

	began := time.Now()
	r.push("2.0.0", nil)
	waitChartVersions(env, webs, "2.0.0", 1)
	t.Logf("from helm push to the first custom resource on the new version: %s", time.Since(began).Round(100*time.Millisecond))
	waitChartVersions(env, webs, "2.0.0", len(webs))
	env.WaitReady(webs...)

	r.push("3.0.0", map[string][2]string{"templates/configmaps.yaml": {"data:", `{{ fail "broken" }}`}})
	waitChartKind(env, ck, "Ready", "Serving", "plain 3.0.0")
	stopped := 0
	env.Wait("the rollout to stop", func(context.Context) error {
		stopped = 0
		for _, web := range webs {
			for _, condition := range env.Status(web).Conditions {
				if condition.Type == api.ConditionUpdateAvailable && condition.Reason == api.ReasonRolloutStopped {
					stopped++
				}
			}
		}
		if stopped < len(webs)-1 {
			return fmt.Errorf("%d custom resources wait", stopped)
		}
		return nil
	})
	env.WaitCondition(webs[0], api.ConditionReady, metav1.ConditionFalse, api.ReasonRenderFailed)
	for _, web := range webs {
		if version := env.Status(web).Release.ChartVersion; version != "2.0.0" {
			t.Errorf("%s has the version %s", web.GetName(), version)
		}
	}

	r.push("3.0.1", nil)
	waitChartVersions(env, webs, "3.0.1", len(webs))
	env.WaitReady(webs...)
}

// waitChartVersions waits until so many custom resources have a version of the chart.
func waitChartVersions(env *harness.Env, crs []*unstructured.Unstructured, version string, count int) {
	env.T().Helper()
	env.Wait(fmt.Sprintf("%d custom resources with chart %s", count, version), func(context.Context) error {
		have := 0
		for _, cr := range crs {
			if status := env.Status(cr); status.Release != nil && status.Release.ChartVersion == version {
				have++
			}
		}
		if have < count {
			return fmt.Errorf("%d have it", have)
		}
		return nil
	})
}

// TestChartKind_BadChartsKeepLastGoodOne: a chart that does not load, and CRDs that would
// break custom resources.
func TestChartKind_BadChartsKeepLastGoodOne(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	r := startRegistry(env)
	_, ck, web := r.serveKettle()
	r.push("2.0.0", map[string][2]string{"templates/configmaps.yaml": {"data:", "{{ if }}"}})
	waitChartKind(env, ck, "Ready", "InvalidChart", "the kind is still served with plain 1.0.0")
	mergePatch(env, web, `{"spec": {"message": "two"}}`)
	env.WaitRevision(web, 2)
	expectData(t, env, "web-0", "message", "two")
}

// TestChartKind_ServesFromCacheWithoutNetwork restarts an operator whose registry is gone.
func TestChartKind_ServesFromCacheWithoutNetwork(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	r := startRegistry(env)
	operator, ck, web := r.serveKettle()

	operator.Stop()
	r.stop()
	mergePatch(env, web, `{"spec": {"message": "two"}}`)
	// The status is a report: without it, the same is served.
	mergePatch(env, ck, `{"status": null}`, "status")
	operator.Start()
	env.WaitRevision(web, 2)
	expectData(t, env, "web-0", "message", "two")
	waitChartKind(env, ck, "Pulled", "Unreachable", r.host+" cannot be reached")
	waitChartKind(env, ck, "Ready", "Serving", "plain 1.0.0")
}

// TestChartKind_DeletedWithCustomResources: the ChartKind remains until the last custom
// resource is deleted, or orphans them.
func TestChartKind_DeletedWithCustomResources(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	waits, orphans := env.NewKind("Wait"), env.NewKind("Orphan")
	r := startRegistry(env)
	r.push("1.0.0", nil)
	operator := r.operator(harness.Options{}, waits, orphans)
	waiting, orphaning := createChartKind(env, waits, r.chart(), nil), createChartKind(env, orphans, r.chart(), map[string]any{"deletionPolicy": "Orphan"})
	one, other := harness.MakeCR(waits, "one").Obj(), harness.MakeCR(orphans, "other").Obj()
	for _, ck := range []*unstructured.Unstructured{waiting, orphaning} {
		waitChartKind(env, ck, "Ready", "Serving", "plain 1.0.0")
	}
	env.Create(one, other)
	env.WaitReady(one, other)

	env.Delete(waiting, orphaning)
	waitChartKind(env, waiting, "Ready", "Terminating", "1 custom resource remains")
	env.WaitGone(orphaning)
	// The kind is still served.
	mergePatch(env, one, `{"spec": {"message": "edited"}}`)
	env.WaitRevision(one, 2)
	// Also after a restart.
	operator.Stop()
	operator.Start()
	mergePatch(env, one, `{"spec": {"message": "edited again"}}`)
	env.WaitRevision(one, 3)
	env.Delete(one)
	env.WaitGone(one, waiting)
	env.ExpectRevisions("one", "")

	// An edit of the orphaned custom resource has no effect, and its deletion is carried out.
	mergePatch(env, other, `{"spec": {"message": "edited"}}`)
	expectData(t, env, "other-0", "message", "hello")
	env.ExpectRevisions("other", "1 deployed")
	env.Delete(other)
	env.WaitGone(other)
	for _, kind := range []harness.Kind{waits, orphans} {
		if _, err := env.TryKubectl("get", "crd", kind.Resource()); err != nil {
			t.Errorf("the CRD of a deleted ChartKind: %v", err)
		}
	}
}

// TestChartKind_TakesNothingOver: kinds of files, and CRDs of others.
func TestChartKind_TakesNothingOver(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	filed, foreign := env.NewKind("Filed"), env.NewKind("Foreign")
	env.InstallCRD(filed)
	env.InstallCRD(foreign)
	before := env.Kubectl("get", "crd", foreign.Resource(), "-o", "jsonpath={.metadata.generation} {.metadata.labels} {.spec.versions}")
	r := startRegistry(env)
	r.push("9.0.0", nil)
	r.operator(harness.Options{Watches: env.Watches(harness.MakeEntry(filed, harness.Chart("plain")))})
	conflict := createChartKind(env, filed, r.chart(), nil)
	waitChartKind(env, conflict, "Ready", "KindConflict", filed.GroupKind().String()+" is already served by ")
	web := harness.MakeCR(filed, "web").Obj()
	env.Create(web)
	if status := env.WaitReady(web); status.Release.Chart != "plain-1.2.3" {
		t.Errorf("the release is %+v", status.Release)
	}

	ck := createChartKind(env, foreign, r.chart(), nil)
	waitChartKind(env, ck, "Ready", "CRDForeign", "the CustomResourceDefinition "+foreign.Resource()+" exists and is not managed by this operator")
	if after := env.Kubectl("get", "crd", foreign.Resource(), "-o", "jsonpath={.metadata.generation} {.metadata.labels} {.spec.versions}"); after != before {
		t.Errorf("the CRD was\n%s\nand is\n%s", before, after)
	}
}

// TestChartKind_CredentialsStaySecret: with wrong and with valid credentials.
func TestChartKind_CredentialsStaySecret(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Kettle")
	r := startRegistry(env)
	r.push("1.0.0", nil)
	r.private.Store(true)
	operator := r.operator(harness.Options{}, kind)
	chart := r.chart()
	ck := createChartKind(env, kind, chart, nil)
	waitChartKind(env, ck, "Ready", "Unauthorized", "set spec.chart.secretRef")

	secret := env.Namespace + "-registry"
	system := env.In(harness.SystemNamespace)
	system.Kubectl("create", "secret", "generic", secret, "--type=kubernetes.io/basic-auth", "--from-literal=username="+canaryUser, "--from-literal=password="+canaryPassword)
	t.Cleanup(func() { _, _ = system.TryKubectl("delete", "secret", secret) })
	mergePatch(env, ck, `{"spec": {"chart": {"secretRef": {"name": "`+secret+`"}}}}`)
	waitChartKind(env, ck, "Ready", "PullFailed", "the annotation chartwright.dev/host is missing")
	system.Kubectl("annotate", "secret", secret, "chartwright.dev/host=other.example.com")
	waitChartKind(env, ck, "Ready", "PullFailed", "has the host other.example.com, and the chart is from "+r.host)
	system.Kubectl("annotate", "--overwrite", "secret", secret, "chartwright.dev/host="+r.host)
	waitChartKind(env, ck, "Ready", "Serving", "plain 1.0.0")
	system.Kubectl("patch", "secret", secret, "--patch", `{"stringData": {"password": "`+canaryPassword+`-wrong"}}`)
	waitChartKind(env, ck, "Pulled", "Unauthorized", "rejected the credentials")
	waitChartKind(env, ck, "Ready", "Serving", "plain 1.0.0")
	expectNoCanary(env, operator, ck)
}

// TestChartKind_ReportsMissingPermissions: the operator's role lacks the rules of the kind.
func TestChartKind_ReportsMissingPermissions(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	known, unknown := env.NewKind("Known"), env.NewKind("Unknown")
	r := startRegistry(env)
	r.push("1.0.0", nil)
	operator := r.operator(harness.Options{}, known).AllowDenials()
	ck := createChartKind(env, unknown, r.chart(), nil)
	found := waitChartKind(env, ck, "PermissionsComplete", "RulesMissing", `"`+strings.ToLower(unknown.Kind)+`s"`)
	t.Log(found.Message)
	waitChartKind(env, ck, "Ready", "NotServed", "see PermissionsComplete")
	if event := env.In("default").WaitEvent(ck, "RulesMissing"); event.Type != "Warning" {
		t.Errorf("the event is %+v", event)
	}
	env.GrantListed(operator, strings.ReplaceAll(found.Message, "}, {", "}\n{"))
	waitChartKind(env, ck, "Ready", "Serving", "plain 1.0.0")
	web := harness.MakeCR(unknown, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
}

// TestChartKind_DisabledMakesNoRequest: without the flag, ChartKinds do not exist for the
// operator.
func TestChartKind_DisabledMakesNoRequest(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	installChartKinds(env)
	kind := env.NewKind("Kettle")
	env.InstallCRD(kind)
	operator := env.NewOperator(harness.Options{Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("plain")))})
	audit := env.Audit(operator.User())
	operator.Start()
	ck := createChartKind(env, env.NewKind("Other"), map[string]any{"oci": "oci://127.0.0.1:1/charts/plain"}, nil)
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	live, err := env.At(ck).Get(t.Context(), ck.GetName(), metav1.GetOptions{})
	if err != nil || live.Object["status"] != nil || len(live.GetFinalizers()) > 0 {
		t.Errorf("the ChartKind is %v, %v", live, err)
	}
	watches, _ := audit.WatchesAndLeases()
	for _, request := range append(watches, audit.Requests()...) {
		if strings.Contains(request.String(), "chartkinds") {
			t.Errorf("request: %s", request)
		}
	}
}
