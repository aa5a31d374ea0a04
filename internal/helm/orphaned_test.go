package helm

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/release"
)

// removeOwnerReferences removes the ownerReferences from ConfigMaps, as the garbage collector
// does.
func (w *world) removeOwnerReferences(names ...string) {
	w.Helper()
	for _, name := range names {
		if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Patch(w.Context(), name, types.MergePatchType, []byte(`{"metadata": {"ownerReferences": null}}`), metav1.PatchOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

// reinventory replaces the inventory on the newest record.
func (w *world) reinventory(text string) {
	w.Helper()
	patch := `{"metadata": {"annotations": {"` + release.AnnotationInventory + `": ` + text + `}}}`
	if _, err := w.plain.CoreV1().Secrets(w.namespace).Patch(w.Context(), w.newest().Secret, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
	w.watch()
}

// The uninstall is refused if the garbage collector has removed all expected
// ownerReferences.
func TestUninstall_RefusesOrphanedRelease(t *testing.T) {
	for _, test := range []struct {
		name   string
		chart  files
		happen func(*world, *Request)
		stays  bool
	}{
		{"all references are removed", mapsChart(), func(w *world, _ *Request) { w.removeOwnerReferences("a", "b") }, true},
		{"all are removed, and the inventory is empty", mapsChart(), func(w *world, _ *Request) {
			w.removeOwnerReferences("a", "b")
			w.restart()
			for _, state := range w.objects.OwnedBy(w.owner.UID) {
				w.objects.Remove(state)
			}
		}, true},
		{"all are removed, and the record is from an older operator", mapsChart(), func(w *world, _ *Request) {
			w.removeOwnerReferences("a", "b")
			w.reinventory(`"{\"digest\": \"2-1\"}"`)
		}, true},
		{"the record is from an older operator, and of another chart", mapsChart(), func(w *world, r *Request) {
			w.removeOwnerReferences("a", "b")
			w.reinventory(`"{\"digest\": \"2-1\"}"`)
			r.Digests.Chart = "another"
		}, false},
		{"all are removed, and an older operator has applied guarded objects", mapsChart(), func(w *world, r *Request) {
			w.removeOwnerReferences("a", "b")
			r.Guard.Kinds = []string{"ConfigMap"}
		}, true},
		{"the garbage collector has deleted the objects that are not guarded", mapsChart().with("templates/claim.yaml", claimManifest), func(w *world, _ *Request) {
			for _, name := range []string{"a", "b"} {
				w.must(w.plain.CoreV1().ConfigMaps(w.namespace).Delete(w.Context(), name, metav1.DeleteOptions{}))
			}
		}, false},
		{"one reference is left", mapsChart(), func(w *world, _ *Request) { w.removeOwnerReferences("a") }, false},
		{"the resource is not being deleted", mapsChart(), func(w *world, r *Request) {
			w.removeOwnerReferences("a", "b")
			r.Deleting = false
		}, false},
		{"no object ever had a reference", hookedChart("post-delete"), func(*world, *Request) {}, false},
		{"all objects are deleted", mapsChart(), func(w *world, _ *Request) {
			for _, name := range []string{"a", "b"} {
				w.must(w.plain.CoreV1().ConfigMaps(w.namespace).Delete(w.Context(), name, metav1.DeleteOptions{}))
			}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			c := test.chart.load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))))
			r := w.request(c, "", nil)
			r.Deleting = true
			test.happen(w, &r)
			err := w.helm.Uninstall(t.Context(), r)
			if errors.Is(err, ErrOrphaned) != test.stays || !test.stays && err != nil {
				t.Errorf("the uninstall ends with %v", err)
			}
			if objects := len(w.configMaps()); (objects == 2) != test.stays {
				t.Errorf("%d objects are left", objects)
			}
			if left := len(w.statuses()); (left == 1) != test.stays {
				t.Errorf("%d records are left", left)
			}
		})
	}
}

func TestUninstall_OrphanCheckCostsOneRequest(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1", "c=1"))))
	reads := func() (found int) {
		r := w.request(c, "", nil)
		r.Deleting = true
		p := &disturbance{fails: func(request *http.Request) bool { return request.Method == http.MethodDelete }}
		w.net.armed.Store(p)
		_ = w.helm.Uninstall(t.Context(), r)
		w.net.armed.Store(nil)
		for _, request := range p.log() {
			if strings.HasPrefix(request, http.MethodGet) && strings.Contains(request, "/configmaps/") {
				found++
			}
		}
		return found
	}
	if n := reads(); n != 1 {
		t.Errorf("%d objects are read", n)
	}
}

// A record is deleted by the name of its Secret, regardless of its content.
func TestUninstall_DeletesRecordWithForeignContent(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	secrets := w.plain.CoreV1().Secrets(w.namespace)
	copied, err := secrets.Get(t.Context(), release.SecretName("web", 1), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	copied.ObjectMeta = metav1.ObjectMeta{Name: release.SecretName("web", 9), Labels: copied.Labels, Annotations: copied.Annotations}
	copied.Labels["version"] = "9"
	if _, err := secrets.Create(t.Context(), copied, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.watch()
	r := w.request(c, "", nil)
	r.Deleting = true
	w.must(w.helm.Uninstall(t.Context(), r))
	equal(t, "the revisions", []string{}, w.statuses())
}
