package helm

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
)

// keep sets the keep policy on a ConfigMap as a user does. The watch reports it if seen
// is set.
func (w *world) keep(name string, seen bool) {
	w.Helper()
	patch := []byte(`{"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}`)
	live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Patch(w.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if live.Labels[api.LabelOwnerUID] == "" || len(live.OwnerReferences) != 1 {
		w.Fatalf("%s has the labels %v and the owners %v before", name, live.Labels, live.OwnerReferences)
	}
	if seen {
		w.watch()
	}
}

// isReleased fails the test unless a ConfigMap has Helm's labels and annotations but
// nothing that refers to the custom resource.
func (w *world) isReleased(what, name string) {
	w.Helper()
	live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Errorf("%s: %v", what, err)
		return
	}
	if len(live.OwnerReferences) > 0 || live.Labels[api.LabelOwnerUID] != "" || live.Labels[api.LabelOperator] != "" ||
		live.Annotations[api.AnnotationOwner] != "" || live.Annotations[api.AnnotationApplied] != "" {
		w.Errorf("%s: %s has the owners %v, labels %v and annotations %v", what, name, live.OwnerReferences, live.Labels, live.Annotations)
	}
	if live.Annotations["meta.helm.sh/release-name"] != "web" || live.Labels["app.kubernetes.io/managed-by"] != "Helm" {
		w.Errorf("%s: %s has lost Helm's label or annotations: %v, %v", what, name, live.Labels, live.Annotations)
	}
	for _, state := range w.objects.OwnedBy(w.owner.UID) {
		if state.Name == name {
			w.Errorf("%s: the inventory has %s as owned", what, name)
		}
	}
}

// A user may set the keep policy on the live object, as with Helm, even if the operator
// has not seen the object or the annotation. The object must no longer refer to the
// custom resource, with which the garbage collector would delete it.
func TestPrune_DisownsObjectsThatUserKeeps(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"known":                   func(w *world) { w.keep("a", true) },
		"annotation not observed": func(w *world) { w.keep("a", false) },
		"unknown to inventory": func(w *world) {
			w.keep("a", true)
			for _, state := range w.objects.OwnedBy(w.owner.UID) {
				w.objects.Remove(state)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := mapsChart().load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))))
			prepare(w)
			w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", nil)))
			equal(t, "the remaining objects", []string{"a=1"}, w.configMaps())
			w.isReleased("after the upgrade", "a")

			// The release may own the object again.
			before := w.uid("a")
			w.must(w.helm.Upgrade(t.Context(), w.request(c, "three", valuesOf("a=3"))))
			live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "a", metav1.GetOptions{})
			if err != nil || live.UID != before || live.Data["value"] != "3" || live.Labels[api.LabelOwnerUID] != string(w.owner.UID) || len(live.OwnerReferences) != 1 {
				t.Errorf("rendered again: %v, %+v", err, live)
			}
			w.watch()
			if drift := w.objects.Drift(w.owner.UID); len(drift) > 0 {
				t.Errorf("rendered again, it counts as drifted: %v", drift)
			}
			w.must(w.helm.Rollback(t.Context(), w.request(c, "four", nil), 2))
			w.isReleased("after the rollback", "a")
			w.must(w.helm.Uninstall(t.Context(), w.request(c, "", nil)))
			equal(t, "the objects after the uninstall", []string{"a=3"}, w.configMaps())
		})
	}
}

// A failed revision or an earlier version of the operator may have left kept objects
// that refer to the custom resource.
func TestUninstall_DisownsKeptObjects(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))))
	w.keep("a", true)
	tied, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("b=1"))))
	live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	live.Labels, live.Annotations, live.OwnerReferences = tied.Labels, tied.Annotations, tied.OwnerReferences
	if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.must(w.helm.Uninstall(t.Context(), w.request(c, "", nil)))
	equal(t, "the remaining objects", []string{"a=1"}, w.configMaps())
	w.isReleased("after the uninstall", "a")
}
