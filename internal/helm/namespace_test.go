package helm

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
)

// moveToNewNamespace moves the world to a namespace that does not exist.
func (w *world) moveToNewNamespace() {
	w.namespace += "-new"
}

// namespaceDeleted reports whether the namespace is deleted or terminating; no controller completes
// the deletion in these tests.
func (w *world) namespaceDeleted() bool {
	w.Helper()
	namespace, err := w.plain.CoreV1().Namespaces().Get(w.Context(), w.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true
	}
	if err != nil {
		w.Fatal(err)
	}
	return namespace.DeletionTimestamp != nil
}

func (w *world) inNewNamespace(c *chart.Chart) Request {
	r := w.request(c, "one", valuesOf("a=1"))
	r.CreateNamespace = true
	return r
}

func TestRemoveNamespace_DeletesCreatedNamespace(t *testing.T) {
	w := newWorld(t)
	w.moveToNewNamespace()
	c := mapsChart().load(t)
	r := w.inNewNamespace(c)
	r.CreateNamespace = false
	if err := w.helm.Install(t.Context(), r); err == nil || !strings.Contains(err.Error(), w.namespace) {
		t.Errorf("without a namespace and without createNamespace: %v", err)
	}
	w.must(w.helm.Install(t.Context(), w.inNewNamespace(c)))
	namespace, err := w.plain.CoreV1().Namespaces().Get(t.Context(), w.namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "its label", string(w.owner.UID), namespace.Labels[api.LabelCreatedFor])
	equal(t, "the label of its owner", "", namespace.Labels[api.LabelOwnerUID])
	w.watch()
	w.must(w.helm.Uninstall(t.Context(), w.inNewNamespace(c)))
	if !w.namespaceDeleted() {
		t.Error("it stays")
	}
}

func TestRemoveNamespace_KeepsExistingNamespace(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.inNewNamespace(c)))
	w.watch()
	w.must(w.helm.Uninstall(t.Context(), w.inNewNamespace(c)))
	if w.namespaceDeleted() {
		t.Error("it is deleted")
	}
}

func TestRemoveNamespace_KeepsNamespaceWithOtherReleases(t *testing.T) {
	w := newWorld(t)
	w.moveToNewNamespace()
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.inNewNamespace(c)))
	_, err := w.plain.CoreV1().Secrets(w.namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "sh.helm.release.v1.guest.v1", Labels: map[string]string{"owner": "helm", "name": "guest", "version": "1", "status": "deployed"}},
		Type:       "helm.sh/release.v1",
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.watch()
	var warnings []string
	r := w.inNewNamespace(c)
	r.Notifier = warnFunc(func(reason, what string) { warnings = append(warnings, reason+": "+what) })
	w.must(w.helm.Uninstall(t.Context(), r))
	if w.namespaceDeleted() {
		t.Error("it is deleted")
	}
	equal(t, "the warnings", []string{"NamespaceKept: Namespace " + w.namespace + " was created for this release and is not deleted because it contains other releases: guest"}, warnings)
	equal(t, "the release", []string{}, w.statuses())
}

// The namespace is deleted after an interruption at any request.
func TestRemoveNamespace_AfterInterruption(t *testing.T) {
	c := mapsChart().load(t)
	for at := int64(1); ; at++ {
		w := newWorld(t)
		w.moveToNewNamespace()
		w.must(w.helm.Install(t.Context(), w.inNewNamespace(c)))
		w.restart()
		p := &disturbance{at: at, dead: true}
		w.net.armed.Store(p)
		err := w.helm.Uninstall(t.Context(), w.inNewNamespace(c))
		if p.seen.Load() < at {
			if !slices.Contains(writes(p.log()), http.MethodDelete+" /api/v1/namespaces/"+w.namespace) {
				t.Errorf("the namespace was not deleted: %v", p.log())
			}
			w.must(err)
			break
		}
		w.restart()
		if len(w.statuses()) > 0 {
			w.must(w.helm.Uninstall(t.Context(), w.inNewNamespace(c)))
		}
		if !w.namespaceDeleted() {
			t.Errorf("interrupted at request %d, the namespace is not deleted", at)
		}
	}
}
