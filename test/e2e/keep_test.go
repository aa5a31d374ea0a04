package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

func claimNamed(name string) *unstructured.Unstructured {
	return harness.Object("v1", "PersistentVolumeClaim", name)
}

// definingAllowed are additional keys of an entry for the chart "defining".
var definingAllowed = harness.Entry{
	"allow": map[string]any{
		"clusterScoped": []string{"CustomResourceDefinition.apiextensions.k8s.io", "ClusterRole.rbac.authorization.k8s.io"},
	},
	// No release has a widget.
	"rbac": []any{map[string]any{"apiGroups": []string{everythingWidget.Group}, "resources": []string{"widgets"}, "template": "templates/objects.yaml"}},
}

func keepClaim(env *harness.Env, name string) {
	env.T().Helper()
	env.Kubectl("annotate", "pvc", name, "helm.sh/resource-policy=keep")
}

// expectReleased checks that a claim is the same object, without marks of a release.
func expectReleased(env *harness.Env, name string, uid types.UID) {
	env.T().Helper()
	live := env.Get(claimNamed(name))
	if live.GetUID() != uid || live.GetDeletionTimestamp() != nil {
		env.T().Errorf("claim %s was replaced or is being deleted", name)
	}
	if len(live.GetOwnerReferences()) > 0 || live.GetLabels()[api.LabelOwnerUID] != "" || live.GetLabels()[api.LabelOperator] != "" || live.GetAnnotations()[api.AnnotationOwner] != "" {
		env.T().Errorf("claim %s still belongs to its custom resource: owners %v, labels %v, annotations %v", name, live.GetOwnerReferences(), live.GetLabels(), live.GetAnnotations())
	}
}

// deleteAndCollect deletes custom resources, and waits until the garbage collector has
// deleted what they own.
func deleteAndCollect(env *harness.Env, crs ...*unstructured.Unstructured) {
	env.T().Helper()
	// The garbage collector is done when the other objects are deleted.
	var collected []*unstructured.Unstructured
	for _, of := range crs {
		live := env.Get(of)
		mark := harness.ConfigMap("collected-" + of.GetName())
		mark.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: live.GetAPIVersion(), Kind: live.GetKind(), Name: live.GetName(), UID: live.GetUID()}})
		env.Create(mark)
		collected = append(collected, mark)
	}
	env.Delete(crs...)
	env.WaitGone(crs...)
	env.WaitGone(collected...)
}

// A claim is marked with keep and is dropped from the spec, and the custom
// resource is deleted later: the claim and its data remain.
func TestKeep_ObjectOutlivesCustomResource(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(keepingKind)
	cr := func(name string, claim bool) *unstructured.Unstructured {
		return harness.MakeCR(kind, name).Set("claim", claim).Obj()
	}

	upgraded, back, again := cr("upgraded", true), cr("back", false), cr("again", true)
	env.Create(upgraded, back, again)
	env.WaitReady(upgraded, back, again)
	env.SetSpec(cr("back", true))
	env.WaitRevision(back, 2)
	uids := map[string]types.UID{}
	for _, name := range []string{"upgraded", "back", "again"} {
		keepClaim(env, name)
		uids[name] = env.Get(claimNamed(name)).GetUID()
	}

	// Both an upgrade and a rollback drop the claim.
	for _, name := range []string{"upgraded", "again"} {
		env.SetSpec(cr(name, false))
	}
	env.Annotate(back, "rollback-to", "1")
	env.WaitRevision(upgraded, 2)
	env.WaitRevision(again, 2)
	env.WaitRevision(back, 3)
	for _, name := range []string{"upgraded", "back", "again"} {
		expectReleased(env, name, uids[name])
	}

	// When the chart renders the claim again, the release owns it again without
	// recreating it.
	env.SetSpec(cr("again", true))
	env.WaitRevision(again, 3)
	if live := env.Get(claimNamed("again")); live.GetUID() != uids["again"] || len(live.GetOwnerReferences()) > 0 || live.GetLabels()[api.LabelOwnerUID] == "" {
		t.Errorf("the claim that the chart renders again has UID %s, owners %v and labels %v", live.GetUID(), live.GetOwnerReferences(), live.GetLabels())
	}
	env.SetSpec(cr("again", false))
	env.WaitRevision(again, 4)
	expectReleased(env, "again", uids["again"])

	deleteAndCollect(env, upgraded, back, again)
	for name, uid := range uids {
		expectReleased(env, name, uid)
	}
}
