package helm

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/watches"
)

// Objects in crds/ that are no CRDs are created if they are missing. They belong to no release,
// and are neither changed nor deleted.
func TestCRDFolder_CreatesOtherObjects(t *testing.T) {
	w := newWorld(t)
	group := w.namespace + ".example.com"
	gauges := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gauges"}
	client, err := dynamic.NewForConfig(apiServer.config)
	if err != nil {
		t.Fatal(err)
	}
	classes := w.plain.SchedulingV1().PriorityClasses()
	t.Cleanup(func() {
		ctx := context.Background()
		_ = client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Delete(ctx, "gauges."+group, metav1.DeleteOptions{})
		_ = classes.Delete(ctx, w.namespace, metav1.DeleteOptions{})
	})
	// A custom resource comes before its CRD.
	c := mapsChart().
		with("crds/a.yaml", "# only a comment\n---\napiVersion: "+group+"/v1\nkind: Gauge\nmetadata: {name: folder}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: folder}\ndata: {from: chart}\n").
		with("crds/b.yaml", "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: "+w.namespace+"}\nvalue: 10\n").
		with("crds/c.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gauges."+group+"}\nspec: {group: "+group+", scope: Namespaced, names: {kind: Gauge, plural: gauges}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n").
		with("crds/notes.md", "not: [YAML").
		load(t)
	request := w.request(c, "one", valuesOf("a=1"))
	request.CRDs = watches.CRDsReplace
	folder := func() *corev1.ConfigMap {
		t.Helper()
		found, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "folder", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return found
	}

	err = w.helm.Install(w.Context(), request)
	if want := "crds/b.yaml: not allowed for this kind: PriorityClass " + w.namespace + " is cluster-scoped"; !errors.Is(err, ErrNotAllowed) || !strings.HasPrefix(err.Error(), want) {
		t.Fatalf("without allow: %v, want %s", err, want)
	}
	if _, err := client.Resource(gauges).Namespace(w.namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) || folder().Data != nil {
		t.Fatalf("a refused install has written objects: %v", err)
	}
	skipped := request
	skipped.CRDs = watches.CRDsSkip
	w.must(w.helm.Install(w.Context(), skipped))
	if folder().Data != nil {
		t.Fatal("crds: Skip creates an object")
	}

	request.Allow = watches.Allow{ClusterScoped: []string{"PriorityClass.scheduling.k8s.io"}}
	upgrade := func(digest string) {
		t.Helper()
		again := request
		again.Digests.Input, again.Values = digest, valuesOf("a="+digest)
		w.must(w.helm.Upgrade(w.Context(), again))
	}
	upgrade("two")
	if folder().Data["from"] != "chart" {
		t.Error("the ConfigMap is missing")
	}
	if _, err := classes.Get(t.Context(), w.namespace, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	var gauge *unstructured.Unstructured
	if gauge, err = client.Resource(gauges).Namespace(w.namespace).Get(t.Context(), "folder", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}

	theirs := folder()
	theirs.Data["from"] = "another user"
	if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Update(t.Context(), theirs, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.must(classes.Delete(t.Context(), w.namespace, metav1.DeleteOptions{}))
	upgrade("three")
	if folder().Data["from"] != "another user" {
		t.Error("an upgrade changes the ConfigMap")
	}
	if _, err := classes.Get(t.Context(), w.namespace, metav1.GetOptions{}); err != nil {
		t.Errorf("an upgrade does not create what is missing: %v", err)
	}

	w.must(w.helm.Uninstall(w.Context(), request))
	if folder().Data == nil {
		t.Error("the uninstall has deleted the ConfigMap")
	}
	if now, err := client.Resource(gauges).Namespace(w.namespace).Get(t.Context(), "folder", metav1.GetOptions{}); err != nil || now.GetUID() != gauge.GetUID() {
		t.Errorf("the custom resource is gone or another one: %v", err)
	}
}

// An object in crds/ cannot reach the Secret of the signing key either, even if the kind allows
// everything.
func TestCRDFolder_RefusesSigningKey(t *testing.T) {
	w := newWorld(t)
	w.helm.config.SigningKey = types.NamespacedName{Namespace: w.namespace, Name: "signing-key"}
	c := mapsChart().with("crds/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: folder}\ndata: {secret: signing-key}\n").load(t)
	request := w.request(c, "one", valuesOf("a=1"))
	request.CRDs, request.Allow = watches.CRDsCreate, watches.Allow{Everything: true}
	if err := w.helm.Install(w.Context(), request); !errors.Is(err, ErrNotAllowed) || !strings.Contains(err.Error(), "crds/a.yaml") {
		t.Errorf("got %v, want ErrNotAllowed with the file", err)
	}
}
