package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The tests of this file try how users and other clients may lose data.

var withClaim = map[string]any{"claims": []any{"a"}}

// createWithClaim creates a custom resource, and returns it with its claim.
func (l losses) createWithClaim() (web, claim *unstructured.Unstructured, uid types.UID) {
	l.T().Helper()
	web, claim = l.cr("web", withClaim), claimNamed("web-a")
	l.Create(web)
	l.WaitReady(web)
	return web, claim, l.Get(claim).GetUID()
}

// expectUID checks that an object was neither deleted nor replaced.
func expectUID(env *harness.Env, object *unstructured.Unstructured, uid types.UID) {
	env.T().Helper()
	if live := env.Get(object); live.GetUID() != uid || live.GetDeletionTimestamp() != nil {
		env.T().Errorf("%s %s was replaced or is being deleted: %v", live.GetKind(), live.GetName(), live.Object["metadata"])
	}
}

// copyWithManagers creates a copy of an object in another namespace, with its labels, annotations and
// field managers, as a restore from a backup does.
func copyWithManagers(env *harness.Env, object *unstructured.Unstructured, namespace string) {
	env.T().Helper()
	there := env.In(namespace)
	live := env.Get(object)
	managers := live.GetManagedFields()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace", "ownerReferences", "finalizers", "generation"} {
		unstructured.RemoveNestedField(live.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(live.Object, "status")
	there.Create(live)
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/metadata/managedFields", "value": managers}})
	if err != nil {
		env.T().Fatal(err)
	}
	there.Patch(object, string(patch))
}

// A user removes the finalizer of a deleted custom resource. A new one of the same name, whose
// spec has no claim, waits for an approval.
func TestDataLoss_FinalizerRemoved(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	web, claim, uid := l.createWithClaim()
	l.Annotate(web, "pause", "including-deletion")
	l.Delete(web)
	l.Patch(web, `[{"op": "remove", "path": "/metadata/finalizers"}]`)
	l.WaitGone(web)
	l.Create(l.cr("web", nil))
	waitApproval(l.Env, web, "delete PersistentVolumeClaim "+l.Namespace+"/web-a")
	expectUID(l.Env, claim, uid)
}

// A user protects an object of the release. Argo CD deletes custom resources in the foreground.
func TestDataLoss_ForegroundDeletion(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	web, config := l.cr("web", nil), harness.ConfigMap("web")
	l.Create(web)
	l.WaitReady(web)
	uid := l.Get(config).GetUID()
	l.Kubectl("annotate", "configmap", "web", "chartwright.dev/protect=true")
	l.Wait("the ownerReference to be removed", func(context.Context) error {
		if references := l.Get(config).GetOwnerReferences(); len(references) > 0 {
			return fmt.Errorf("the ownerReferences are %v", references)
		}
		return nil
	})
	l.Kubectl("delete", l.kind.Resource()+"/web", "--cascade=foreground")
	l.WaitGone(web)
	expectUID(l.Env, config, uid)
}

// A backup of a namespace is restored into another namespace. The original still exists.
func TestDataLoss_RestoredIntoOtherNamespace(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	web, claim, config := l.cr("web", withClaim), claimNamed("web-a"), harness.ConfigMap("web")
	l.Create(web)
	l.WaitReady(web)
	there := l.In(l.NewNamespace("copy"))
	record := harness.Secret("sh.helm.release.v1.web.v1")
	copies := []*unstructured.Unstructured{claim, config, record}
	uids := make([]types.UID, len(copies))
	for i, object := range copies {
		copyWithManagers(l.Env, object, there.Namespace)
		uids[i] = there.Get(object).GetUID()
	}
	expectCopies := func() {
		t.Helper()
		for i, object := range copies {
			expectUID(there, object, uids[i])
		}
	}
	l.SetSpec(l.cr("web", map[string]any{"claims": []any{"a"}, "message": "two"}))
	l.WaitRevision(web, 2)
	expectCopies()
	restored := l.cr("web", withClaim)
	there.Create(restored)
	there.WaitEvent(restored, "Installed")
	expectCopies()
	l.Delete(web)
	l.WaitGone(web, config)
	expectCopies()
	there.Delete(restored)
	there.WaitGone(restored)
	expectCopies()
}

// A custom resource is deleted and created again at once, with other values. The claim of the
// first one stays, also after an upgrade of the second one.
func TestDataLoss_RecreatedAtOnce(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	web, claim, uid := l.createWithClaim()
	l.Delete(web)
	l.Wait("the name to be free", func(ctx context.Context) error {
		_, err := l.At(web).Create(ctx, l.cr("web", map[string]any{"claims": []any{"b"}}), metav1.CreateOptions{})
		return err
	})
	l.WaitReady(web)
	l.SetSpec(l.cr("web", map[string]any{"claims": []any{"b"}, "message": "two"}))
	l.WaitRevision(web, 2)
	expectUID(l.Env, claim, uid)

	// The second custom resource adopts the claim, and then drops it.
	l.SetSpec(l.cr("web", map[string]any{"claims": []any{"a", "b"}}))
	l.WaitRevision(web, 3)
	l.SetSpec(l.cr("web", map[string]any{"claims": []any{"b"}}))
	waitApproval(l.Env, web, "delete PersistentVolumeClaim "+l.Namespace+"/web-a")
	expectUID(l.Env, claim, uid)
}

// A user deletes the release records, and then the custom resource.
func TestDataLoss_RecordsDeleted(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	web := l.cr("web", map[string]any{"claims": []any{"a"}, "set.name": "a", "set.replicas": 1, "set.whenDeleted": "Delete"})
	claim, ofSet := claimNamed("web-a"), claimNamed("data-web-a-0")
	l.Create(web)
	l.WaitReady(web)
	l.Wait("the claim of the StatefulSet", func(ctx context.Context) error {
		_, err := l.At(ofSet).Get(ctx, ofSet.GetName(), metav1.GetOptions{})
		return err
	})
	uid, uidOfSet := l.Get(claim).GetUID(), l.Get(ofSet).GetUID()
	l.Annotate(web, "pause", "including-deletion")
	l.Kubectl("delete", "secret", "-l", "owner=helm,name=web")
	l.Delete(web)
	l.Kubectl("annotate", l.kind.Resource()+"/web", "chartwright.dev/pause-")
	l.WaitGone(web, harness.ConfigMap("web"), harness.Object("apps/v1", "StatefulSet", "web-a"))
	expectUID(l.Env, claim, uid)
	expectUID(l.Env, ofSet, uidOfSet)
}

// A custom resource renders a claim that belongs to another custom resource of the same name, in
// the namespace of the other one. Its deletion does not delete the claim.
func TestDataLoss_ClaimOfSameNameInOtherNamespace(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	there := l.In(l.NewNamespace("other"))
	web, other, claim := l.cr("web", map[string]any{"claims": []any{"a"}, "in": there.Namespace}), l.cr("web", withClaim), claimNamed("web-a")
	l.Create(web)
	l.WaitReady(web)
	uid := there.Get(claim).GetUID()
	there.Create(other)
	there.WaitCondition(other, "Ready", metav1.ConditionFalse, "ObjectConflict")
	there.Delete(other)
	there.WaitGone(other)
	expectUID(there, claim, uid)
	l.SetSpec(l.cr("web", map[string]any{"claims": []any{"a"}, "in": there.Namespace, "message": "two"}))
	l.WaitRevision(web, 2)
	expectUID(there, claim, uid)
}

// The namespace of the custom resource is deleted. The release is in another namespace.
func TestDataLoss_NamespaceOfCustomResource(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesMovable)
	team, claim := l.In(l.NewNamespace("team")), claimNamed("web-a")
	web := harness.MakeCR(l.kind, "web").Set("claims", []any{"a"}).Set("protect", true).Set("target", l.Namespace).Obj()
	team.Create(web)
	team.WaitReady(web)
	uid, protected := l.Get(claim).GetUID(), l.Get(harness.ConfigMap("web")).GetUID()
	l.Kubectl("delete", "namespace", team.Namespace, "--wait=false")
	team.WaitGone(web)
	expectUID(l.Env, claim, uid)
	expectUID(l.Env, harness.ConfigMap("web"), protected)
}

// A StatefulSet with whenScaled: Delete starts with a higher ordinal.
func TestDataLoss_HigherOrdinal(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	values := map[string]any{"set.name": "a", "set.replicas": 1, "set.whenScaled": "Delete"}
	web, claim := l.cr("web", values), claimNamed("data-web-a-0")
	l.Create(web)
	l.WaitReady(web)
	l.Kubectl("rollout", "status", "statefulset/web-a")
	uid := l.Get(claim).GetUID()
	values["set.start"] = 1
	l.SetSpec(l.cr("web", values))
	plan := waitApproval(l.Env, web, "scale down StatefulSet "+l.Namespace+"/web-a (1 replicas from ordinal 1 instead of 1 from ordinal 0")
	expectUID(l.Env, claim, uid)
	l.Annotate(web, "approve", plan.Digest)
	l.WaitRevision(web, 2)
	l.WaitGone(claim)
}
