package helm

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A person may ask that an object be kept, too, as with Helm, whether the
// operator has seen the object or not.
func TestPruneKeepsWhatAPersonKeeps(t *testing.T) {
	for _, known := range []bool{true, false} {
		w := newWorld(t)
		c := mapsChart().load(t)
		w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))))
		patch := []byte(`{"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}`)
		if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		w.watch()
		if !known {
			for _, state := range w.objects.OwnedBy(w.owner.UID) {
				w.objects.Remove(state)
			}
		}
		w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", nil)))
		equal(t, "what is left", []string{"a=1"}, w.configMaps())
	}
}
