package helm

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/watches"
)

// ofRelease adds the annotations of another release to an object.
func (w *world) ofRelease(name string) {
	w.Helper()
	patch := []byte(`{"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "theirs", "meta.helm.sh/release-namespace": "elsewhere"}}}`)
	if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Patch(w.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "helm"}); err != nil {
		w.Fatal(err)
	}
}

// drop deletes a ConfigMap.
func (w *world) drop(name string) {
	w.Helper()
	if err := w.plain.CoreV1().ConfigMaps(w.namespace).Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

// version returns the resourceVersion of a ConfigMap, which changes with each write.
func (w *world) version(name string) string {
	w.Helper()
	live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return live.ResourceVersion
}

// takeovers holds the ways to change the owner of an object.
var takeovers = map[string]func(*world){
	"created by another custom resource": func(w *world) { w.drop("shared"); w.make("shared"); w.setForeignOwner("shared") },
	"created by another release":         func(w *world) { w.drop("shared"); w.make("shared"); w.ofRelease("shared") },
	"taken over by another release":      func(w *world) { w.ofRelease("shared") },
}

// TestActions_RefuseForeignObjects runs every action on a release whose earlier
// manifest contains the object.
func TestActions_RefuseForeignObjects(t *testing.T) {
	c := mapsChart().load(t)
	for name, take := range takeovers {
		for action, do := range map[string]func(*world) error{
			"upgrade": func(w *world) error {
				return w.helm.Upgrade(w.Context(), w.request(c, "two", valuesOf("a=2", "shared=2")))
			},
			"rollback": func(w *world) error { return w.helm.Rollback(w.Context(), w.rollbackRequest(c, backTo(1, 1)), 1) },
		} {
			t.Run(action+" where "+name, func(t *testing.T) {
				w := newWorld(t)
				w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "shared=1"))))
				take(w)
				w.watch()
				version := w.version("shared")
				p := &disturbance{}
				w.net.armed.Store(p)
				err := do(w)
				w.net.armed.Store(nil)
				if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "ConfigMap "+w.namespace+"/shared") {
					t.Errorf("%v, want ErrConflict with the object", err)
				}
				if written := writes(p.log()); len(written) > 0 {
					t.Errorf("it wrote %v", written)
				}
				if w.version("shared") != version {
					t.Error("it was taken over")
				}
				equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())
			})
		}
	}
}

// Another user may have created an object since a revision removed it.
func TestRollback_RefusesObjectsTakenByOthers(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "shared=1"))))
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))))
	w.make("shared")
	w.setForeignOwner("shared")
	w.watch()
	version := w.version("shared")
	if err := w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 2)), 1); !errors.Is(err, ErrConflict) {
		t.Errorf("%v, want ErrConflict", err)
	}
	equal(t, "the revisions", []string{"v2 deployed", "v1 superseded"}, w.statuses())
	equal(t, "the objects", []string{"a=2", "shared="}, w.configMaps())
	if w.version("shared") != version {
		t.Error("it was written")
	}
	w.drop("shared")
	w.must(w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 2)), 1))
	equal(t, "missing objects are recreated", []string{"a=1", "shared=1"}, w.configMaps())
}

func TestTakeOwnership_FromReleasesOnly(t *testing.T) {
	c := mapsChart().load(t)
	for name, take := range takeovers {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "shared=1"))))
			take(w)
			w.watch()
			r := w.request(c, "two", valuesOf("a=2", "shared=2"))
			r.Allow.TakeOwnership = watches.TakeOwnershipOnRequest
			if err := w.helm.Upgrade(t.Context(), r); !errors.Is(err, ErrConflict) {
				t.Errorf("without takeOwnership: %v, want ErrConflict", err)
			}
			r.TakeOwnership = true
			err := w.helm.Upgrade(t.Context(), r)
			if strings.Contains(name, "custom resource") {
				if !errors.Is(err, ErrConflict) {
					t.Errorf("%v, want ErrConflict", err)
				}
				return
			}
			w.must(err)
			equal(t, "the objects", []string{"a=2", "shared=2"}, w.configMaps())
		})
	}
}

// Verify corrects owned objects and reports foreign ones as drifted.
func TestVerify_KeepsForeignObjects(t *testing.T) {
	c := mapsChart().load(t)
	for name, take := range takeovers {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.request(c, "one", valuesOf("a=1", "shared=1"))
			w.must(w.helm.Install(t.Context(), r))
			w.drop("a")
			take(w)
			version := w.version("shared")
			if strings.HasPrefix(name, "taken over") {
				// A new process does not know more than the labels show.
				w.watch()
			} else {
				w.restart()
			}
			if err := w.helm.Verify(t.Context(), r); !errors.Is(err, apply.ErrForeign) || !strings.Contains(err.Error(), "shared") {
				t.Errorf("%v, want ErrForeign with the object", err)
			}
			w.watch()
			if w.version("shared") != version {
				t.Error("it was taken over")
			}
			if !slices.Contains(w.configMaps(), "a=1") {
				t.Errorf("the drifted object was not corrected: %v", w.configMaps())
			}
			missed := apply.Key{Kind: "ConfigMap", Namespace: w.namespace, Name: "shared"}
			if drift := w.objects.Drift(w.owner.UID); len(drift) != 1 || drift[0].Key != missed {
				t.Errorf("drifted is %v, want the foreign object", drift)
			}
			if _, err := w.helm.Repair(t.Context(), r, map[apply.Key]bool{missed: true}); !errors.Is(err, apply.ErrForeign) {
				t.Errorf("a repair: %v, want ErrForeign", err)
			}
			w.drop("shared")
			w.watch()
			if _, err := w.helm.Repair(t.Context(), r, map[apply.Key]bool{missed: true}); err != nil {
				t.Error(err)
			}
			w.watch()
			if drift := w.objects.Drift(w.owner.UID); len(drift) > 0 {
				t.Errorf("after the repair, drifted is %v", drift)
			}
			equal(t, "the objects", []string{"a=1", "shared=1"}, w.configMaps())
		})
	}
}

// The release is not changed.
func TestAdopt_RefusesForeignObjects(t *testing.T) {
	for name, take := range map[string]func(*world, string){"a custom resource": (*world).setForeignOwner, "a release": (*world).ofRelease} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.leftBySDK(2, w.owner.UID)
			take(w, "a")
			p := &disturbance{}
			w.net.armed.Store(p)
			err := w.helm.Adopt(t.Context(), w.request(mapsChart().load(t), "one", valuesOf("a=1")))
			w.net.armed.Store(nil)
			if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "ConfigMap "+w.namespace+"/a") {
				t.Errorf("%v, want ErrConflict with the object", err)
			}
			if written := writes(p.log()); len(written) > 0 {
				t.Errorf("it wrote %v", written)
			}
		})
	}
}

// Only the object itself shows its owner. An object with the owner's labels is deleted
// by the garbage collector anyway.
func TestUninstall_KeepsForeignObjects(t *testing.T) {
	for name, take := range takeovers {
		if strings.HasPrefix(name, "taken over") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.request(mapsChart().load(t), "one", valuesOf("a=1", "shared=1"))
			w.must(w.helm.Install(t.Context(), r))
			take(w)
			w.watch()
			w.must(w.helm.Uninstall(t.Context(), r))
			w.version("shared")
			equal(t, "the revisions", []string{}, w.statuses())
		})
	}
}

// The ownership check costs a request only for objects that are not in the inventory.
func TestOwnershipCheck_SkipsKnownObjects(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	one := w.request(c, "one", valuesOf("a=1", "b=1"))
	w.must(w.helm.Install(t.Context(), one))
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2", "b=2"))))
	for name, do := range map[string]func() error{
		"upgrade":  func() error { return w.helm.Upgrade(t.Context(), w.request(c, "three", valuesOf("a=3", "b=3"))) },
		"rollback": func() error { return w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 3)), 1) },
		"verify":   func() error { return w.helm.Verify(t.Context(), one) },
	} {
		p := &disturbance{}
		w.net.armed.Store(p)
		err := do()
		w.net.armed.Store(nil)
		w.must(err)
		for _, request := range p.log() {
			if strings.HasPrefix(request, fmt.Sprintf("%s /api/v1/namespaces/%s/configmaps/", http.MethodGet, w.namespace)) {
				t.Errorf("%s: it sent %s", name, request)
			}
		}
	}
}
