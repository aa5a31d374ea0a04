package e2e

import (
	"fmt"
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

// A claim is marked with keep and is dropped from the spec, and the custom
// resource is deleted later: the claim and its data remain.
func TestKeep_ObjectOutlivesCustomResource(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Keeping")
	env.InstallCRD(kind)
	operator := env.NewOperator(harness.Options{
		AllNamespaces: true, Account: env.NewAccount(),
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("defining")).With("allow", map[string]any{
			"clusterScoped": []string{"CustomResourceDefinition.apiextensions.k8s.io", "ClusterRole.rbac.authorization.k8s.io"},
		}).With("rbac", []any{
			// No release in this test has a widget.
			map[string]any{"apiGroups": []string{kind.Group}, "resources": []string{"widgets"}, "template": "templates/objects.yaml"},
		})),
	}).Start()
	cr := func(name string, claim bool) *unstructured.Unstructured {
		return harness.MakeCR(kind, name).Set("claim", claim).Obj()
	}
	keep := func(name string) {
		t.Helper()
		env.Kubectl("annotate", "pvc", name, "helm.sh/resource-policy=keep")
	}
	released := func(name string) {
		t.Helper()
		live := env.Get(claimNamed(name))
		if len(live.GetOwnerReferences()) > 0 || live.GetLabels()[api.LabelOwnerUID] != "" || live.GetLabels()[api.LabelOperator] != "" || live.GetAnnotations()[api.AnnotationOwner] != "" {
			t.Errorf("claim %s still belongs to its custom resource: owners %v, labels %v, annotations %v", name, live.GetOwnerReferences(), live.GetLabels(), live.GetAnnotations())
		}
	}

	upgraded, back, again, before := cr("upgraded", true), cr("back", false), cr("again", true), cr("before", true)
	env.Create(upgraded, back, again, before)
	env.WaitReady(upgraded, back, again, before)
	env.SetSpec(cr("back", true))
	env.WaitRevision(back, 2)
	uids := map[string]types.UID{}
	for _, name := range []string{"upgraded", "back", "again", "before"} {
		keep(name)
		uids[name] = env.Get(claimNamed(name)).GetUID()
	}

	// Both an upgrade and a rollback drop the claim.
	for _, name := range []string{"upgraded", "again", "before"} {
		env.SetSpec(cr(name, false))
	}
	env.Annotate(back, "rollback-to", "1")
	env.WaitRevision(upgraded, 2)
	env.WaitRevision(again, 2)
	env.WaitRevision(before, 2)
	env.WaitRevision(back, 3)
	for _, name := range []string{"upgraded", "back", "again", "before"} {
		released(name)
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
	released("again")

	// Operators before this version did not remove the ownerReference. The
	// operator watches claims, because another release has a claim.
	other := cr("other", true)
	env.Create(other)
	env.WaitReady(other)
	owner := env.Get(before)
	operator.Kill()
	env.Patch(claimNamed("before"), fmt.Sprintf(`[
		{"op": "add", "path": "/metadata/labels/chartwright.dev~1owner-uid", "value": %q},
		{"op": "add", "path": "/metadata/labels/chartwright.dev~1operator", "value": %q},
		{"op": "add", "path": "/metadata/ownerReferences", "value": [{"apiVersion": %q, "kind": %q, "name": "before", "uid": %q}]}
	]`, owner.GetUID(), env.Namespace, owner.GetAPIVersion(), owner.GetKind(), owner.GetUID()))
	operator.Start()

	// The garbage collector is done when the other objects are deleted.
	var collected []*unstructured.Unstructured
	for _, of := range []*unstructured.Unstructured{upgraded, back, again, before} {
		live := env.Get(of)
		mark := harness.ConfigMap("collected-" + of.GetName())
		mark.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: live.GetAPIVersion(), Kind: live.GetKind(), Name: live.GetName(), UID: live.GetUID()}})
		env.Create(mark)
		collected = append(collected, mark)
	}
	env.Delete(upgraded, back, again, before)
	env.WaitGone(upgraded, back, again, before)
	env.WaitGone(collected...)
	for name, uid := range uids {
		live := env.Get(claimNamed(name))
		if live.GetUID() != uid || live.GetDeletionTimestamp() != nil {
			t.Errorf("claim %s was replaced or is being deleted", name)
		}
		released(name)
	}
}
