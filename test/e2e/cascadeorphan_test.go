package e2e

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// deleteOrphaning runs kubectl delete --cascade=orphan.
func deleteOrphaning(env *harness.Env, kind harness.Kind, name string) {
	env.T().Helper()
	env.Kubectl("delete", kind.Resource(), name, "--cascade=orphan", "--wait=false")
}

// waitCollected waits until the garbage collector has removed the finalizer orphan.
func waitCollected(env *harness.Env, cr *unstructured.Unstructured) {
	env.T().Helper()
	env.Wait("the garbage collector to remove the finalizer orphan", func(context.Context) error {
		if live := env.Get(cr); live.GetDeletionTimestamp() == nil || slices.Contains(live.GetFinalizers(), metav1.FinalizerOrphanDependents) {
			return errors.New("the custom resource has the finalizer, or is not being deleted")
		}
		return nil
	})
}

// expectLeft checks that ConfigMaps remain without an owner and are not being
// deleted.
func expectLeft(env *harness.Env, names ...string) {
	env.T().Helper()
	for _, name := range names {
		if live := env.Get(harness.ConfigMap(name)); len(live.GetOwnerReferences()) > 0 || live.GetDeletionTimestamp() != nil {
			env.T().Errorf("%s has owners %v and deletion timestamp %v", name, live.GetOwnerReferences(), live.GetDeletionTimestamp())
		}
	}
}

func TestCascadeOrphan_KeepsReleaseAndObjects(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	web := harness.MakeCR(kind, "web").Set("count", 2).Obj()
	env.Create(web)
	env.WaitReady(web)
	deleteOrphaning(env, kind, "web")
	env.WaitGone(web)
	env.WaitEvent(web, "Orphaned")
	fenceOf(env, kind)
	env.ExpectRevisions("web", "1 deployed")
	expectLeft(env, "web-0", "web-1")

	env.Create(harness.MakeCR(kind, "web").Set("count", 2).Obj())
	env.WaitRevision(web, 1)
	env.ExpectRevisions("web", "1 deployed")
}

// The objects of a chart with delete hooks have no ownerReference, so that only
// the finalizer shows that the deletion orphans them.
func TestCascadeOrphan_KeepsObjectsWithoutOwnerReference(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	web := oneRevision(env, kind, "web")
	deleteOrphaning(env, kind, "web")
	env.WaitGone(web.cr)
	fenceOf(env, kind)
	env.ExpectRevisions("web", "1 deployed")
	expectLeft(env, "web")
}
