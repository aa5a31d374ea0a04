package helm

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/helm/engine"
)

// upgradeCase holds two versions of the manifest of one object.
type upgradeCase struct {
	name     string
	from, to string
	// helmRefuses reports that Helm's own patch fails, unlike the operator's apply.
	helmRefuses bool
	// differs explains why the two results differ.
	differs string
}

// manifestChart returns a chart that renders .Values.manifest.
func manifestChart() files {
	return small().with("templates/config.yaml", "{{ .Values.manifest }}").with("values.yaml", "").with("values.schema.json", "{}")
}

// byHelm creates and updates the object of a case with Helm's own client, and returns
// the result of the last successful step.
func (w *world) byHelm(test upgradeCase) (*unstructured.Unstructured, error) {
	w.Helper()
	shared, err := rest.HTTPClientFor(apiServer.config)
	if err != nil {
		w.Fatal(err)
	}
	build := &builder{
		mapper: apiServer.mapper, namespace: w.namespace, built: map[string]engine.ResourceList{},
		// Some requests are sent after the end of the test.
		clients: newBoundClients(context.Background(), apiServer.config, shared),
	}
	client := engine.NewHelmClient()
	original, err := build.build(w.filled(test.from))
	if err != nil {
		w.Fatal(err)
	}
	final := original
	w.Cleanup(func() { client.Delete(original) })
	if _, err := client.Create(original); err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	if test.to != "" {
		// Helm patches against the stored manifest.
		original, _ = build.build(w.filled(test.from))
		target, err := build.build(w.filled(test.to))
		if err != nil {
			w.Fatal(err)
		}
		final = target
		if _, err := client.Update(original, target); err != nil {
			return nil, fmt.Errorf("update: %w", err)
		}
	}
	return w.live(final), nil
}

// byApply is like byHelm, with an install and an upgrade of the operator.
func (w *world) byApply(test upgradeCase) (*unstructured.Unstructured, error) {
	w.Helper()
	c := manifestChart().load(w.T)
	request := func(digest, manifest string) Request {
		r := w.request(c, digest, map[string]any{"manifest": w.filled(manifest)})
		r.Allow.Everything = true
		return r
	}
	w.Cleanup(func() {
		if err := w.helm.Uninstall(context.Background(), request("", "")); err != nil {
			w.Error(err)
		}
	})
	if err := w.helm.Install(w.Context(), request("one", test.from)); err != nil {
		return nil, fmt.Errorf("install: %w", err)
	}
	last := test.from
	w.watch()
	if test.to != "" {
		last = test.to
		if err := w.helm.Upgrade(w.Context(), request("two", test.to)); err != nil {
			return nil, fmt.Errorf("upgrade: %w", err)
		}
		w.watch()
	}
	build := &builder{
		mapper: apiServer.mapper, namespace: w.namespace, built: map[string]engine.ResourceList{},
		clients: newBoundClients(w.Context(), apiServer.config, http.DefaultClient),
	}
	list, err := build.build(w.filled(last))
	if err != nil {
		w.Fatal(err)
	}
	if test.to != "" {
		r := request("two", "")
		r.Verify = true
		if err := w.helm.Verify(w.Context(), r); err != nil {
			w.Errorf("verify: %v", err)
		}
	}
	return w.live(list), nil
}

// filled replaces placeholders for the names of cluster-scoped objects.
func (w *world) filled(manifest string) string {
	return strings.ReplaceAll(manifest, "NAME", w.namespace)
}

// live returns the live state of the first object of a list.
func (w *world) live(list engine.ResourceList) *unstructured.Unstructured {
	w.Helper()
	client, err := dynamic.NewForConfig(apiServer.config)
	if err != nil {
		w.Fatal(err)
	}
	found, err := client.Resource(list[0].Mapping.Resource).Namespace(list[0].Namespace).Get(w.Context(), list[0].Name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// content returns the fields that a manifest can set.
func (w *world) content(object *unstructured.Unstructured) map[string]any {
	content := maps.Clone(object.Object)
	delete(content, "metadata")
	delete(content, "status")
	return content
}

// compare runs a case with Helm and with the operator, each in its own namespace.
func compare(t *testing.T, test upgradeCase) {
	t.Helper()
	helmWorld, applyWorld := newWorld(t), newWorld(t)
	want, helmErr := helmWorld.byHelm(test)
	got, err := applyWorld.byApply(test)
	switch {
	case test.helmRefuses:
		if helmErr == nil || err != nil {
			t.Errorf("want only Helm to fail; Helm: %v; apply: %v", helmErr, err)
		}
		return
	case helmErr != nil:
		if !strings.Contains(helmErr.Error(), " is invalid: ") && !strings.Contains(helmErr.Error(), " cannot be handled as a ") {
			t.Errorf("Helm failed for another reason: %v", helmErr)
		}
		if err == nil {
			t.Errorf("only Helm fails: %v", helmErr)
		}
		return
	case err != nil:
		t.Fatalf("only apply fails: %v", err)
	}
	replacer := strings.NewReplacer(helmWorld.namespace, "NAME", applyWorld.namespace, "NAME")
	diff := cmp.Diff(neutral(replacer, helmWorld.content(want)), neutral(replacer, applyWorld.content(got)))
	if (diff != "") != (test.differs != "") {
		t.Errorf("differs from Helm's result (%q was expected) (-Helm +apply):\n%s", test.differs, diff)
	}
}

// neutral replaces the names of namespaces and the values that the API server
// allocates.
func neutral(replacer *strings.Replacer, value any) any {
	switch typed := value.(type) {
	case string:
		return replacer.Replace(typed)
	case []any:
		list := make([]any, len(typed))
		for i := range typed {
			list[i] = neutral(replacer, typed[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(typed))
		for key, field := range typed {
			switch key {
			case "clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort":
				if text, ok := field.(string); !ok || text != "None" {
					field = "allocated"
				}
			case "controller-uid", "batch.kubernetes.io/controller-uid":
				field = "a UID"
			}
			object[key] = neutral(replacer, field)
		}
		return object
	}
	return value
}

// TestApply_AcceptsWhatHelmAccepts changes the member of every union of the built-in
// kinds.
func TestApply_AcceptsWhatHelmAccepts(t *testing.T) {
	for _, test := range unionCases() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			compare(t, test)
		})
	}
}

// TestApply_ConvertsValuesLikeHelm tests values of unexpected types.
func TestApply_ConvertsValuesLikeHelm(t *testing.T) {
	for _, test := range valueCases() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			compare(t, test)
		})
	}
}
