package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The version of an object in the records of running releases is no longer served. The
// operator is not restarted.
func TestServedVersions_ReleasesContinue(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, widgets := env.Use(versionedKind), versionedWidget
	cr := func(name, version string) *unstructured.Unstructured {
		return harness.MakeCR(kind, name).Set("group", widgets.Group).Set("version", version).Obj()
	}
	web, left, deleted := cr("web", "v1"), cr("left", "v1"), cr("deleted", "v1")
	env.Create(web, left, deleted)
	env.WaitReady(web, left, deleted)
	widget := func(version, name string) *unstructured.Unstructured {
		return harness.Object(widgets.Group+"/"+version, "Widget", name)
	}
	corrected := func(version, name string) {
		t.Helper()
		env.Patch(widget(version, name), `[{"op": "replace", "path": "/spec/size", "value": 9}]`)
		env.Wait("the widget "+name+" to be corrected", func(ctx context.Context) error {
			live, err := env.At(widget(version, name)).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if size, _, _ := unstructured.NestedInt64(live.Object, "spec", "size"); size != 3 {
				return fmt.Errorf("its size is %d", size)
			}
			return nil
		})
	}
	// The operator has used the version for each kind of request.
	corrected("v1", "web")

	definitions := env.At(harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", ""))
	ended := `[{"op": "copy", "from": "/spec/versions/0", "path": "/spec/versions/1"},
		{"op": "replace", "path": "/spec/versions/1/name", "value": "v2"},
		{"op": "replace", "path": "/spec/versions/0/storage", "value": false},
		{"op": "replace", "path": "/spec/versions/0/served", "value": false}]`
	if _, err := definitions.Patch(t.Context(), widgets.Resource(), types.JSONPatchType, []byte(ended), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	env.WaitServed(harness.Kind{GroupVersionKind: widgets.GroupKind().WithVersion("v2")})
	uid := env.Get(widget("v2", "web")).GetUID()

	corrected("v2", "web")
	env.SetSpec(cr("web", "v2"))
	env.WaitRevision(web, 2)
	corrected("v2", "web")
	other := cr("other", "v2")
	env.Create(other)
	env.WaitReady(other)
	corrected("v2", "other")
	env.Annotate(web, "rollback-to", "1")
	env.WaitRevision(web, 3)
	corrected("v2", "web")
	if env.Get(widget("v2", "web")).GetUID() != uid {
		t.Error("the widget was replaced")
	}
	for _, running := range []*unstructured.Unstructured{web, other, left} {
		if c := harness.Condition(env.Status(running), "Unwatched"); c != nil {
			t.Errorf("%s is Unwatched: %s", running.GetName(), c.Message)
		}
	}

	env.Annotate(left, "deletion-policy", "orphan")
	env.Delete(left, deleted)
	env.WaitGone(left, deleted, widget("v2", "deleted"))
	for _, object := range []*unstructured.Unstructured{widget("v2", "left"), harness.ConfigMap("left")} {
		if live := env.Get(object); len(live.GetOwnerReferences()) > 0 || live.GetDeletionTimestamp() != nil {
			t.Errorf("%s %s has owners %v", live.GetKind(), live.GetName(), live.GetOwnerReferences())
		}
	}
}
