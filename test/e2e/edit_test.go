package e2e

import (
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestEdit_SpecCreatesOneRevision(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web := harness.MakePodSet("web").Replicas(1).Obj()
	env.Create(web)
	env.WaitReady(web)

	env.SetSpec(harness.MakePodSet("web").Replicas(2).Obj())

	status := env.WaitRevision(web, 2)
	waitPods(env, "web", 2)
	env.ExpectRevisions("web", "1 superseded, 2 deployed")
	if deployed := harness.Condition(status, "Deployed"); deployed == nil || deployed.Reason != "UpgradeSuccessful" {
		t.Errorf("condition Deployed is %+v, want UpgradeSuccessful", deployed)
	}
	if len(status.History) != 2 || status.History[0].Revision != 2 || status.History[1].Status != "superseded" {
		t.Errorf("history is %+v, want 2 and 1", status.History)
	}
	if event := env.WaitEvent(web, "Upgraded"); event.Type != "Normal" {
		t.Errorf("event is %+v", event)
	}
}

func TestEdit_ManyEditsEndAtTheLast(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	web := harness.MakeCR(kind, "web").Set("count", 1).Obj()
	env.Create(web)
	for count := 2; count <= 6; count++ {
		env.SetSpec(harness.MakeCR(kind, "web").Set("count", count).Obj())
	}
	env.WaitReady(web)
	env.Get(harness.ConfigMap("web-5"))
	env.SetSpec(harness.MakeCR(kind, "web").Set("count", 1).Obj())
	env.WaitReady(web)
	env.WaitGone(harness.ConfigMap("web-5"), harness.ConfigMap("web-1"))
	env.Get(harness.ConfigMap("web-0"))
}

// Changes outside the spec create no revision, and the operator does not write
// at all.
func TestEdit_OutsideSpecChangesNothing(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	const manifest = `{"apiVersion": "app.example.com/v1alpha1", "kind": "PodSet", "metadata": {"name": "web"}, "spec": {"replicas": 2}}`
	env.KubectlWith(manifest, "apply", "-f", "-")
	web := harness.MakePodSet("web").Obj()
	env.WaitReady(web)
	env.WaitEvent(web, "Installed")
	waitField(env, web, "replicas", "2")

	for _, edit := range []struct {
		what  string
		stdin string
		args  []string
	}{
		{"the same manifest applied again", manifest, []string{"apply", "-f", "-"}},
		{"the same manifest applied by server-side apply", manifest, []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}},
		{"a label", "", []string{"label", "podset", "web", "team=blue"}},
		{"a foreign annotation", "", []string{"annotate", "podset", "web", "example.com/note=seen"}},
	} {
		audit := env.Audit(harness.System.User())
		env.KubectlWith(edit.stdin, edit.args...)
		fence(env)
		if writes := audit.Writes("fence"); len(writes) > 0 {
			t.Errorf("%s: the operator wrote %v", edit.what, writes)
		}
	}
	env.ExpectRevisions("web", "1 deployed")
	if revision := env.Status(web); revision.Release.Revision != 1 {
		t.Errorf("revision is %d", revision.Release.Revision)
	}
}

// fence creates a PodSet and waits until it is deleted. By then, the operator
// has processed all earlier events.
func fence(env *harness.Env) {
	env.T().Helper()
	cr := harness.MakePodSet("fence").Replicas(0).Obj()
	env.Create(cr)
	env.WaitReady(cr)
	env.Delete(cr)
	env.WaitGone(cr)
}
