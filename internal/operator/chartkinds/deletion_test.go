package chartkinds

import (
	"errors"
	"fmt"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chartkind"
)

// testDeletes: a ChartKind remains until its custom resources are deleted.
func testDeletes(w *world) {
	w.push("1.0.0", template)
	stop := w.start(true, nil)
	defer stop()
	for _, name := range []string{"waits", "orphans", "others", "unserved"} {
		policy := map[string]string{"orphans": "deletionPolicy: Orphan"}[name]
		w.create(name, policy)
		w.waitFor(name, chartkind.ConditionReady, chartkind.ReasonServing, "web 1.0.0")
		w.installCRD(name)
	}
	one, other := w.createCR("waits", api.Finalizer), w.createCR("orphans", api.Finalizer)
	// Another operator manages this custom resource.
	w.createCR("others", "other.example.com/finalizer")
	for _, name := range []string{"waits", "orphans", "others"} {
		if err := w.server.Delete(w.t.Context(), w.get(name)); err != nil {
			w.t.Fatal(err)
		}
	}
	w.waitFor("waits", chartkind.ConditionReady, chartkind.ReasonTerminating, "1 custom resource remains")
	w.waitGone("orphans")
	w.waitGone("others")
	if w.kinds.version("waits") != "1.0.0" {
		w.t.Errorf("served is %q", w.kinds.version("waits"))
	}
	if err := w.server.Get(w.t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		w.t.Errorf("the orphaned custom resource: %v", err)
	}
	// Neither an edit of the version nor a conflict of names ends the protection.
	w.patch("waits", `{"spec": {"names": {"version": "v9"}}}`)
	w.waitFor("waits", chartkind.ConditionReady, chartkind.ReasonTerminating, "1 custom resource remains")
	w.kinds.setConflict("the short name w is taken")
	w.patch("waits", `{"spec": {"maxHistory": 4}}`)
	w.waitFor("waits", chartkind.ConditionReady, chartkind.ReasonTerminating, "1 custom resource remains, and the operator does not serve the kind: the short name w is taken")
	w.kinds.setConflict("")
	w.deleteCR(one)
	w.waitGone("waits")
	// A CRD that was deleted first.
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "webs.unserved.example.com"}}
	if err := envtest.UninstallCRDs(w.config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.server.Delete(w.t.Context(), w.get("unserved")); err != nil {
		w.t.Fatal(err)
	}
	w.waitGone("unserved")
}

// waitGone waits until a ChartKind is deleted and its kind is no longer served.
func (w *world) waitGone(name string) {
	w.t.Helper()
	w.wait(name+" to be deleted", func() (string, error) {
		if object := w.get(name); object != nil {
			return fmt.Sprint(object.Object["status"]), errors.New("not yet")
		}
		if version := w.kinds.version(name); version != "" {
			return version, errors.New("it is still served")
		}
		return "", nil
	})
}

// installCRD installs the CRD of a ChartKind's kind.
func (w *world) installCRD(name string) {
	w.t.Helper()
	definition, _, err := crd.Generate(w.kinds.kinds[name])
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(w.config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) createCR(name string, finalizers ...string) *unstructured.Unstructured {
	w.t.Helper()
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(schema.GroupVersionKind{Group: name + ".example.com", Version: "v1", Kind: "Web"})
	cr.SetNamespace("default")
	cr.SetName("a")
	cr.SetFinalizers(finalizers)
	if err := w.server.Create(w.t.Context(), cr); err != nil {
		w.t.Fatal(err)
	}
	return cr
}

// deleteCR deletes a custom resource as the operator does: it removes the finalizer.
func (w *world) deleteCR(cr *unstructured.Unstructured) {
	w.t.Helper()
	err := w.server.Delete(w.t.Context(), cr)
	if err := errors.Join(err, w.server.Patch(w.t.Context(), cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`)))); err != nil {
		w.t.Fatal(err)
	}
}

// testUncounted: the operator's role lacks the rule to list the custom resources.
func testUncounted(w *world) {
	w.push("1.0.0", template)
	config := rest.CopyConfig(w.config)
	config.Impersonate.UserName = "reader"
	stop := w.start(true, func(c *Config) { c.Metadata = metadata.NewForConfigOrDie(config) })
	defer stop()
	w.create("uncounted", "")
	w.waitFor("uncounted", chartkind.ConditionReady, chartkind.ReasonServing, "web 1.0.0")
	w.installCRD("uncounted")
	cr := w.createCR("uncounted", api.Finalizer)
	if err := w.server.Delete(w.t.Context(), w.get("uncounted")); err != nil {
		w.t.Fatal(err)
	}
	w.waitFor("uncounted", chartkind.ConditionReady, chartkind.ReasonTerminating, "the custom resources cannot be counted: add to the rules of the operator's role: "+
		`{apiGroups: ["uncounted.example.com"], resources: ["webs"], verbs: ["list", "watch"]}`)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "uncounted"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"uncounted.example.com"}, Resources: []string{"webs"}, Verbs: []string{"list", "watch"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "uncounted"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "uncounted"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reader"}},
	}
	if err := errors.Join(w.server.Create(w.t.Context(), role), w.server.Create(w.t.Context(), binding)); err != nil {
		w.t.Fatal(err)
	}
	w.waitFor("uncounted", chartkind.ConditionReady, chartkind.ReasonTerminating, "1 custom resource remains: the kind is served")
	w.deleteCR(cr)
	w.waitGone("uncounted")
}

func TestAgain(t *testing.T) {
	now := time.Now()
	failed, past := chartkind.False(chartkind.ReasonCRDFailed, ""), now.Add(-time.Hour)
	loaded := &version{}
	for name, test := range map[string]struct {
		s     served
		facts chartkind.Facts
		want  time.Duration
	}{
		"interval":              {s: served{due: now.Add(time.Minute)}, want: time.Minute},
		"passed":                {s: served{due: past}, want: time.Second},
		"CRD":                   {s: served{due: now.Add(time.Minute), crd: failed, crdDue: now.Add(5 * time.Second), current: loaded}, want: 5 * time.Second},
		"CRD, then a conflict":  {s: served{due: now.Add(time.Minute), crd: failed, crdDue: past, current: loaded}, facts: chartkind.Facts{Conflict: "taken"}, want: time.Minute},
		"CRD, without a chart":  {s: served{due: now.Add(time.Minute), crd: failed, crdDue: past}, want: time.Minute},
		"refused":               {s: served{due: past}, facts: chartkind.Facts{Refused: chartkind.False(chartkind.ReasonInvalidSpec, "")}, want: 0},
		"refused and uncounted": {facts: chartkind.Facts{Refused: chartkind.False(chartkind.ReasonInvalidSpec, ""), Deleted: true, Uncounted: "no rule"}, want: crdRetry},
	} {
		if got := test.s.again(test.facts, now); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}
