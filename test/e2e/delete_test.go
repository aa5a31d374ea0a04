package e2e

import (
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestDelete_RemovesEverything(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web := harness.MakeOvhNginx("web").Obj()
	env.Create(web)
	env.WaitReady(web)
	env.SetSpec(harness.MakeOvhNginx("web").Replicas(2).Obj())
	env.WaitRevision(web, 2)

	env.Delete(web)

	env.WaitGone(web)
	env.ExpectRevisions("web", "")
	env.WaitGone(harness.Deployment("web"), harness.Service("web"))
	if event := env.WaitEvent(web, "Uninstalled"); event.Type != "Normal" || event.Note != "Release web is uninstalled" {
		t.Errorf("event is %+v", event)
	}
}

func TestDelete_ForegroundRemovesEverything(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web := harness.MakeOvhNginx("web").Obj()
	env.Create(web)
	env.WaitReady(web)

	env.Kubectl("delete", "ovhnginx", "web", "--cascade=foreground", harness.Timeout)

	env.ExpectRevisions("web", "")
	env.WaitGone(web, harness.Deployment("web"), harness.Service("web"))
}

func TestDelete_NameCanBeReused(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	for range 3 {
		web := harness.MakeCR(kind, "web").Obj()
		env.Create(web)
		env.WaitReady(web)
		env.ExpectRevisions("web", "1 deployed")
		env.Delete(web)
		env.WaitGone(web)
		env.ExpectRevisions("web", "")
	}
}

func TestDelete_NamespaceWithResources(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	env.Create(harness.MakeCR(kind, "a").Obj(), harness.MakeCR(kind, "b").Obj())
	env.WaitReady(harness.MakeCR(kind, "a").Obj(), harness.MakeCR(kind, "b").Obj())
	env.Annotate(harness.MakeCR(kind, "b").Obj(), "pause", "including-deletion")
	env.Kubectl("delete", "namespace", env.Namespace, harness.Timeout)
}
