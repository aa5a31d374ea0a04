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

// elsewhere moves the world to a namespace that does not exist.
func (w *world) elsewhere() {
	w.namespace += "-new"
}

// goes tells whether the namespace is gone or going: no controller ends one
// here.
func (w *world) goes() bool {
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

func TestNamespaceThatIsMade(t *testing.T) {
	w := newWorld(t)
	w.elsewhere()
	c := mapsChart().load(t)
	r := w.inNewNamespace(c)
	r.CreateNamespace = false
	if err := w.helm.Install(t.Context(), r); err == nil || !strings.Contains(err.Error(), w.namespace) {
		t.Errorf("with no namespace, and none to be made: %v", err)
	}
	w.must(w.helm.Install(t.Context(), w.inNewNamespace(c)))
	namespace, err := w.plain.CoreV1().Namespaces().Get(t.Context(), w.namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "its label", string(w.owner.UID), namespace.Labels[api.LabelCreatedFor])
	equal(t, "its owner's label", "", namespace.Labels[api.LabelOwnerUID])
	w.watch()
	w.must(w.helm.Uninstall(t.Context(), w.inNewNamespace(c)))
	if !w.goes() {
		t.Error("it stays")
	}
}

func TestNamespaceThatWasThere(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.inNewNamespace(c)))
	w.watch()
	w.must(w.helm.Uninstall(t.Context(), w.inNewNamespace(c)))
	if w.goes() {
		t.Error("it is deleted")
	}
}

// TestNamespaceOfOthers: what other releases are in stays, and a person is told.
func TestNamespaceOfOthers(t *testing.T) {
	w := newWorld(t)
	w.elsewhere()
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
	var told []string
	r := w.inNewNamespace(c)
	r.Notifier = warnFunc(func(reason, what string) { told = append(told, reason+": "+what) })
	w.must(w.helm.Uninstall(t.Context(), r))
	if w.goes() {
		t.Error("it is deleted")
	}
	equal(t, "what is told", []string{"NamespaceKept: Namespace " + w.namespace + " was made for this release and stays, since other releases are in it: guest"}, told)
	equal(t, "the release", []string{}, w.statuses())
}

// TestNamespaceAfterACut: wherever the process ends, the namespace goes in the
// end.
func TestNamespaceAfterACut(t *testing.T) {
	c := mapsChart().load(t)
	for at := int64(1); ; at++ {
		w := newWorld(t)
		w.elsewhere()
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
		if !w.goes() {
			t.Errorf("cut at request %d, it stays", at)
		}
	}
}
