package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestOrphan_ReleaseIsAdoptedByNextResource(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	cr := func() harness.CR { return harness.MakeCR(kind, "web").Set("count", 2).Set("message", "two") }
	web := harness.MakeCR(kind, "web").Set("count", 2).Obj()
	env.Create(web)
	env.WaitReady(web)
	env.SetSpec(cr().Obj())
	env.WaitRevision(web, 2)
	before := env.Get(harness.ConfigMap("web-0")).GetUID()

	env.Annotate(web, "deletion-policy", "orphan")
	env.Delete(web)
	env.WaitGone(web)
	env.WaitEvent(web, "Orphaned")
	fenceOf(env, kind)
	env.ExpectRevisions("web", "1 superseded, 2 deployed")
	for _, name := range []string{"web-0", "web-1"} {
		if live := env.Get(harness.ConfigMap(name)); len(live.GetOwnerReferences()) > 0 || live.GetDeletionTimestamp() != nil {
			t.Errorf("%s has owners %v", name, live.GetOwnerReferences())
		}
	}

	env.Create(cr().Obj())
	env.WaitRevision(web, 2)
	env.ExpectRevisions("web", "1 superseded, 2 deployed")
	if live := env.Get(harness.ConfigMap("web-0")); live.GetUID() != before {
		t.Error("the ConfigMap was replaced")
	}
	// The new release owns the ConfigMap as the old one did.
	env.Patch(harness.ConfigMap("web-1"), messageChanged)
	waitData(env, "web-1", "message", "two")
	env.SetSpec(harness.MakeCR(kind, "web").Set("count", 1).Obj())
	env.WaitRevision(web, 3)
	env.WaitGone(harness.ConfigMap("web-1"))
	env.Delete(web)
	env.WaitGone(web, harness.ConfigMap("web-0"))
	env.ExpectRevisions("web", "")
}

func TestDeleteHook_FailingHookCanBeSkipped(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	web := ownedRelease{t, env, kind, harness.MakeCR(kind, "web").Set("message", "one").Set("hooks.pre-delete.fail", true).Obj(), "web"}
	env.Create(web.cr)
	web.follows(1, "one")
	tries := watchTries(env, "web-pre-delete")
	env.Delete(web.cr)
	status := env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "UninstallFailed")
	message := condition(t, status, "Ready").Message
	for _, wantText := range []string{"web-pre-delete", `chartwright.dev/uninstall-disable-hooks to "true"`} {
		if !strings.Contains(message, wantText) {
			t.Errorf("the message of Ready is %q, want %q", message, wantText)
		}
	}
	waitTries(env, tries, 3)
	if finalizers := env.Get(web.cr).GetFinalizers(); len(finalizers) != 1 || finalizers[0] != api.Finalizer {
		t.Errorf("finalizers are %v", finalizers)
	}
	expectData(t, env, "web", "message", "one")
	if n := env.CountEvents(web.cr, "UninstallFailed"); n != 1 {
		t.Errorf("%d events report it", n)
	}
	web.annotate("uninstall-disable-hooks", "true")
	env.WaitGone(web.cr, harness.ConfigMap("web"))
	env.ExpectRevisions("web", "")
}

// Hooks cannot run in a namespace that is being deleted, so that a release in
// it is uninstalled without hooks.
func TestDeleteHook_SkippedInTerminatingNamespace(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, elsewhere := env.Use(hooksElsewhere), env.NewNamespace("elsewhere")
	web := harness.MakeCR(kind, "web").Set("hooks.pre-delete", map[string]any{}).Obj()
	env.Create(web)
	env.WaitReady(web)
	// A finalizer keeps the namespace from being deleted at once.
	left := harness.ConfigMap("left")
	left.SetNamespace(elsewhere)
	left.SetFinalizers([]string{"test.chartwright.dev/hold"})
	env.Create(left)
	env.Kubectl("delete", "namespace", elsewhere, "--wait=false")
	env.Delete(web)
	env.WaitGone(web)
	if event := env.WaitEvent(web, "HooksSkipped"); event.Type != "Warning" || !strings.Contains(event.Note, "namespace "+elsewhere+" is being deleted") {
		t.Errorf("event is %+v", event)
	}
	env.Patch(left, `[{"op": "remove", "path": "/metadata/finalizers"}]`)
	env.WaitGone(harness.Object("v1", "Namespace", elsewhere))
}

func TestDelete_NamespaceOfResourcesWithDeleteHooks(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	for _, name := range []string{"a", "b"} {
		web := harness.MakeCR(kind, name).Set("hooks.pre-delete.node", newNodeLabel(env)).Set("hooks.post-delete", map[string]any{}).Obj()
		env.Create(web)
		env.WaitReady(web)
	}
	env.Kubectl("delete", "namespace", env.Namespace, harness.Timeout)
}

func TestDeleteHook_ForegroundRunsHooksBeforeDeletingObjects(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	node := newNodeLabel(env)
	web := harness.MakeCR(kind, "web").Set("hooks.pre-delete.node", node).Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Kubectl("delete", kind.Resource(), "web", "--cascade=foreground", "--wait=false")
	waitRunningHook(env, "web-pre-delete")
	// With an ownerReference, the garbage collector would delete it.
	if owners := env.Get(harness.ConfigMap("web")).GetOwnerReferences(); len(owners) > 0 {
		t.Errorf("the object has owners %v", owners)
	}
	env.Consistently("the object still exists", 2*time.Second, func(ctx context.Context) error {
		live, err := env.Typed.CoreV1().ConfigMaps(env.Namespace).Get(ctx, "web", metav1.GetOptions{})
		if err == nil && live.DeletionTimestamp != nil {
			err = errors.New("it is being deleted")
		}
		return err
	})
	labelNode(env, node)
	env.WaitGone(harness.ConfigMap("web"))
	env.WaitRevisions("web", "")
	// The garbage collector then deletes the custom resource itself.
	env.Wait("the finalizer to be removed", func(ctx context.Context) error {
		live, err := env.At(web).Get(ctx, "web", metav1.GetOptions{})
		if err == nil && slices.Contains(live.GetFinalizers(), api.Finalizer) {
			return errors.New("the finalizer is still set")
		}
		return client.IgnoreNotFound(err)
	})
}

func TestUninstall_ObjectsOfMissingKindCountAsDeleted(t *testing.T) {
	t.Parallel()
	e, _ := serveEverything(t)
	web := e.cr("web").Obj()
	e.Create(web)
	e.WaitReady(web)
	objects := e.settled("web")
	e.Kubectl("delete", "crd", e.widget.Resource(), harness.Timeout)
	e.remove(web)
	for _, name := range []string{"Deployment", "StatefulSet", "Service", "ConfigMap", "ClusterRole", "elsewhere"} {
		e.WaitGone(objects[name])
	}
	e.ExpectRevisions("web", "")
}

func TestDeleteHook_SkippedWithoutServiceAccount(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksAsAccountOfName)
	for _, name := range []string{"web", "api"} {
		env.Create(harness.Object("v1", "ServiceAccount", name))
		env.Kubectl("create", "role", name, "--verb=*", "--resource=configmaps,jobs.batch")
		env.Kubectl("create", "rolebinding", name, "--role="+name, fmt.Sprintf("--serviceaccount=%s:%s", env.Namespace, name))
		env.Create(harness.MakeCR(kind, name).Set("message", "one").Set("hooks.pre-delete", map[string]any{}).Obj())
	}
	web, other := harness.MakeCR(kind, "web").Obj(), harness.MakeCR(kind, "api").Obj()
	env.WaitReady(web, other)
	env.Kubectl("delete", "rolebinding,serviceaccount", "web")
	env.Delete(web, other)
	env.WaitGone(web, harness.ConfigMap("web"), other, harness.ConfigMap("api"))
	if event := env.WaitEvent(web, "HooksSkipped"); event.Type != "Warning" || !strings.Contains(event.Note, "service account "+env.Namespace+"/web does not exist") {
		t.Errorf("event is %+v", event)
	}
	expectNoHook(t, env, "web-pre-delete")
	expectHook(t, env, "api-pre-delete", "one")
	env.ExpectRevisions("web", "")
}
