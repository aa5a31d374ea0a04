package helm

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

func newTestBuilder(t *testing.T) *builder {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[string]meta.RESTScope{"ConfigMap": meta.RESTScopeNamespace, "Secret": meta.RESTScopeNamespace, "Namespace": meta.RESTScopeRoot} {
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: kind}, scope)
	}
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	return &builder{
		mapper:    mapper,
		clients:   newBoundClients(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, http.DefaultClient),
		namespace: "apps",
		ctx:       t.Context(),
		built:     map[string]engine.ResourceList{},
	}
}

func build(t *testing.T, b *builder, manifest string) engine.ResourceList {
	t.Helper()
	list, err := b.build(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// places returns the kind, namespace and name of each object.
func places(list engine.ResourceList) []string {
	found := []string{}
	for _, info := range list {
		found = append(found, info.Mapping.GroupVersionKind.Kind+" "+info.Namespace+"/"+info.Name)
	}
	return found
}

func content(t *testing.T, list engine.ResourceList, i int) map[string]any {
	t.Helper()
	object, ok := list[i].Object.(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("object %d is a %T", i, list[i].Object)
	}
	return object.Object
}

func TestBuild(t *testing.T) {
	for _, test := range []struct {
		name, manifest string
		want           []string
	}{
		{"nothing", "", []string{}},
		{"comments and empty documents", "---\n# a comment\n---\n\n---\nnull\n---\n{}\n", []string{}},
		{"one", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", []string{"ConfigMap apps/a"}},
		{"several", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\n", []string{"ConfigMap apps/a", "Deployment apps/b"}},
		{"another namespace", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n", []string{"ConfigMap b/a"}},
		{"cluster-scoped", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", []string{"Namespace /a"}},
		{"cluster-scoped with a namespace", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b}\n", []string{"Namespace /a"}},
		{"a List", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n", []string{"ConfigMap apps/a", "Secret apps/b"}},
		{"a ConfigMapList", "apiVersion: v1\nkind: ConfigMapList\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n", []string{"ConfigMap apps/a"}},
		{"an empty List", "apiVersion: v1\nkind: List\nitems: []\n", []string{}},
		{"JSON", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`, []string{"ConfigMap apps/a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			list := build(t, newTestBuilder(t), test.manifest)
			if diff := cmp.Diff(test.want, places(list)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for i, info := range list {
				if got, _, _ := unstructured.NestedString(content(t, list, i), "metadata", "namespace"); got != info.Namespace {
					t.Errorf("%s: the object itself is in namespace %q", info.Name, got)
				}
				if info.Client == nil {
					t.Errorf("%s: Helm's ownership check has no client", info.Name)
				}
			}
		})
	}
}

func TestBuild_RejectsInvalidObjects(t *testing.T) {
	for _, test := range []struct{ name, manifest, want string }{
		{"no YAML", "a: [", "the manifest is not YAML"},
		{"a text", "hello\n", "a document that is not an object"},
		{"a list", "- a\n", "a document that is not an object"},
		{"no kind", "apiVersion: v1\nmetadata: {name: a}\n", `an object named "a" has no apiVersion or kind`},
		{"no apiVersion", "kind: ConfigMap\nmetadata: {name: a}\n", `an object named "a" has no apiVersion or kind`},
		{"no name", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n", "a ConfigMap has no metadata.name"},
		{"a generated name", "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\n", "a ConfigMap has no metadata.name"},
		{"no name in a List", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap}\n", "a ConfigMap has no metadata.name"},
		{"an unknown kind", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n", "Thing a: no matches for kind"},
		{"an unknown version", "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: a}\n", "Deployment a: no matches for kind"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newTestBuilder(t)
			if _, err := b.build(test.manifest); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// The manifest would expand to gigabytes.
func TestBuild_RejectsAliasBombs(t *testing.T) {
	bomb := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na: &a " + strings.Repeat("x", 500_000) + "\nb: [" + strings.Repeat("*a,", 150_000) + "*a]\n"
	if _, err := newTestBuilder(t).build(bomb); !errors.Is(err, boundedyaml.ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}

func TestBuild_SkipsUnknownKinds(t *testing.T) {
	b := newTestBuilder(t)
	b.skipUnknown = true
	list := build(t, b, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
	if diff := cmp.Diff([]string{"ConfigMap apps/b"}, places(list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBuild_KeepsContent(t *testing.T) {
	list := build(t, newTestBuilder(t), `apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  replicas: 3
  large: 9007199254740993
  fraction: 0.5
  text: |
    first
    ---
    second
  quoted: "8080"
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
data:
  manifest: |
    apiVersion: v1
    ---
    kind: Secret
`)
	if diff := cmp.Diff([]string{"Deployment apps/a", "ConfigMap apps/b"}, places(list)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	want := map[string]any{"replicas": int64(3), "large": int64(9007199254740993), "fraction": 0.5, "text": "first\n---\nsecond\n", "quoted": "8080"}
	if diff := cmp.Diff(want, content(t, list, 0)["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBuild_ReturnsCopies(t *testing.T) {
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"
	b := newTestBuilder(t)
	first := build(t, b, manifest)
	content(t, first, 0)["data"] = "changed"
	first[0].Name = "changed"
	second := build(t, b, manifest)
	if second[0].Name != "a" || cmp.Diff(map[string]any{"k": "v"}, content(t, second, 0)["data"]) != "" {
		t.Errorf("the second build contains changes of the first: %+v", second[0])
	}
}

// Helm calls the client in its own goroutines, where a panic would end the process.
func TestKubeClient_TurnsPanicsIntoErrors(t *testing.T) {
	k := &kubeClient{ctx: t.Context(), Request: Request{Target: Target{Namespace: "apps"}}, log: &logBuffer{redact: NoOp{}.Redact}}
	list := build(t, newTestBuilder(t), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	for name, call := range map[string]func() (*engine.Result, error){
		"Build": func() (*engine.Result, error) {
			_, err := k.Build(strings.NewReader(""), false)
			return &engine.Result{}, err
		},
		"Create": func() (*engine.Result, error) { return k.Create(list) },
		"Update": func() (*engine.Result, error) { return k.Update(nil, list) },
		"prune":  func() (*engine.Result, error) { return k.Update(list, nil) },
		"WaitForDelete": func() (*engine.Result, error) {
			broken := engine.ResourceList{{Mapping: list[0].Mapping}}
			return &engine.Result{}, k.WaitForDelete(broken, time.Minute)
		},
		"DeleteHooks": func() (*engine.Result, error) {
			result, errs := k.DeleteHooks(list)
			if len(errs) != 1 {
				t.Fatalf("%d errors", len(errs))
			}
			return result, errs[0]
		},
		"WatchUntilReady": func() (*engine.Result, error) {
			job := &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}}
			return &engine.Result{}, k.WatchUntilReady(engine.ResourceList{{Mapping: job}}, time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := call()
			if err == nil || !strings.HasPrefix(err.Error(), "internal error: ") {
				t.Errorf("error %v, want an internal error", err)
			}
			if result == nil {
				t.Error("the result is nil, but Helm reads it")
			}
		})
	}
	d := &release.Driver{}
	for name, call := range map[string]func() error{
		"Get":    func() error { _, err := d.Get("a"); return err },
		"Query":  func() error { _, err := d.Query(map[string]string{"name": "a"}); return err },
		"Create": func() error { return d.Create("a", aRelease()) },
		"Update": func() error { return d.Update("a", aRelease()) },
		"Delete": func() error { _, err := d.Delete("a"); return err },
	} {
		t.Run("driver "+name, func(t *testing.T) {
			if err := call(); err == nil || !strings.HasPrefix(err.Error(), "internal error: ") {
				t.Errorf("error %v, want an internal error", err)
			}
		})
	}
}
