package helm

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// onDemand updates the index with the existing Secrets when their kind is needed.
type onDemand struct {
	dependents
	w *world
}

func (d onDemand) EnsureWatched(ctx context.Context, _ types.UID, _ string, kinds []schema.GroupVersionKind) error {
	for _, kind := range kinds {
		if kind.Kind != "Secret" {
			continue
		}
		list, err := d.w.plain.CoreV1().Secrets(d.w.namespace).List(ctx, metav1.ListOptions{LabelSelector: api.LabelOwnerUID + ",owner!=helm"})
		if err != nil {
			return err
		}
		for i := range list.Items {
			d.Put(apply.StateOf(kind.GroupKind(), &list.Items[i]))
		}
	}
	return nil
}

// The newest failed revision does not contain the objects of earlier ones, and a new
// process has not watched any of them.
func TestUninstall_DeletesObjectsOfFailedRevisions(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().with("templates/left.yaml", `
{{ if .Values.bad }}
apiVersion: v1
kind: Secret
metadata: {name: left}
{{ end }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: Not_a_name, annotations: {helm.sh/hook: "post-install,pre-upgrade"}}
`).load(t)
	if err := w.helm.Install(t.Context(), w.request(c, "one", bad(valuesOf("a=1")))); err == nil {
		t.Fatal("the hook did not fail")
	}
	two := w.request(c, "two", valuesOf("a=2"))
	if err := w.helm.Upgrade(t.Context(), two); err == nil {
		t.Fatal("the hook did not fail")
	}
	equal(t, "the revisions", []string{"v2 failed", "v1 failed"}, w.statuses())
	secret := func() error {
		_, err := w.plain.CoreV1().Secrets(w.namespace).Get(t.Context(), "left", metav1.GetOptions{})
		return err
	}
	if err := secret(); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.helm.config.Inventory = onDemand{w.objects, w}
	w.must(w.helm.Uninstall(t.Context(), two))
	if err := secret(); !apierrors.IsNotFound(err) {
		t.Errorf("an object of the first revision still exists: %v", err)
	}
	equal(t, "the objects", []string{}, w.configMaps())
}
