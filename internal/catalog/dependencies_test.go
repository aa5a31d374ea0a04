package catalog_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/dependencies"
	"github.com/chartwright/chartwright/internal/inventory/health"
)

// of returns the kind whose entry contains these lines.
func of(t *testing.T, lines ...string) catalog.Kind {
	t.Helper()
	kinds, err := own(t, lines...)
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0]
}

// dependent returns a custom resource, in no namespace if it is empty.
func dependent(namespace, annotation string, spec map[string]any) map[string]any {
	cr := unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	cr.SetName("web")
	if namespace != "" {
		cr.SetNamespace(namespace)
	}
	if annotation != "" {
		cr.SetAnnotations(map[string]string{"chartwright.dev/depends-on": annotation})
	}
	return cr.Object
}

// release is in another namespace than namespaced custom resources.
var release = types.NamespacedName{Namespace: "releases", Name: "web"}

var (
	database = schema.GroupVersionKind{Group: "a.com", Version: "v1", Kind: "Database"}
	service  = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	node     = schema.GroupVersionKind{Version: "v1", Kind: "Node"}
)

func TestDependenciesFor(t *testing.T) {
	kind := of(t,
		"allow:",
		"  dependsOn: {otherNamespaces: true, annotation: [{apiVersion: a.com/v1, kind: Database}, {apiVersion: v1, kind: Node}]}",
		"dependsOn:",
		"- {apiVersion: a.com/v1, kind: Database, name: '{{ get .spec \"database\" }}', namespace: '{{ get .spec \"namespace\" }}'}",
		"- {apiVersion: v1, kind: Service, selector: {matchLabels: {z: '1', app: '{{ .metadata.name }}'}, matchExpressions: [{key: b, operator: In, values: [y, x]}]}}",
		"- {apiVersion: v1, kind: Node, name: '{{ get .spec \"node\" }}'}",
		"- {apiVersion: v1, kind: Node, name: '{{ get .spec \"second\" }}'}",
	)
	services := dependencies.Ref{Kind: service, Namespace: "shop", Selector: "app=web,b in (x,y),z=1"}
	for _, test := range []struct {
		name, namespace, annotation string
		spec                        map[string]any
		want                        []dependencies.Ref
	}{
		{"names that render to nothing", "shop", "", map[string]any{}, []dependencies.Ref{services}},
		{"a name", "shop", "", map[string]any{"database": "main"}, []dependencies.Ref{{Kind: database, Namespace: "shop", Name: "main"}, services}},
		{"a namespace", "shop", "", map[string]any{"database": "main", "namespace": "data"}, []dependencies.Ref{{Kind: database, Namespace: "data", Name: "main"}, services}},
		{"a cluster-scoped kind", "shop", "", map[string]any{"node": "one"}, []dependencies.Ref{services, {Kind: node, Name: "one"}}},
		{"two names that render to the same", "shop", "", map[string]any{"node": "one", "second": "one"}, []dependencies.Ref{services, {Kind: node, Name: "one"}}},
		{"a cluster-scoped custom resource", "", "", map[string]any{"database": "main", "node": "one"}, []dependencies.Ref{
			{Kind: database, Namespace: "releases", Name: "main"},
			{Kind: service, Namespace: "releases", Selector: services.Selector},
			{Kind: node, Name: "one"},
		}},
		{"the annotation", "shop", "Database.a.com/main, Database.a.com/data/main, Node/one", map[string]any{}, []dependencies.Ref{
			services,
			{Kind: database, Namespace: "shop", Name: "main"},
			{Kind: database, Namespace: "data", Name: "main"},
			{Kind: node, Name: "one"},
		}},
		{"the annotation of a cluster-scoped custom resource", "", "Database.a.com/main", map[string]any{}, []dependencies.Ref{
			{Kind: service, Namespace: "releases", Selector: services.Selector},
			{Kind: database, Namespace: "releases", Name: "main"},
		}},
		{"the same object twice", "shop", "Database.a.com/main, Database.a.com/shop/main", map[string]any{"database": "main"}, []dependencies.Ref{
			{Kind: database, Namespace: "shop", Name: "main"}, services,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := kind.DependenciesFor(dependent(test.namespace, test.annotation, test.spec), release)
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	if label := kind.DependsOn[1].Selector.MatchLabels["app"]; label != "{{ .metadata.name }}" {
		t.Errorf("the selector of the entry was changed: app is %q", label)
	}
	if diff := cmp.Diff([]schema.GroupVersionKind{database, service, node}, kind.DependencyKinds()); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// TestDependenciesFor_Invalid expects errors that name the field or the item, and what is
// allowed.
func TestDependenciesFor_Invalid(t *testing.T) {
	const item = "dependsOn: [{apiVersion: a.com/v1, kind: Database, name: '{{ .spec.database }}'}]"
	const allowed = "allow: {dependsOn: {annotation: [{apiVersion: a.com/v1, kind: Database}, {apiVersion: v1, kind: Node}]}}"
	main := map[string]any{"database": "main"}
	for _, test := range []struct {
		name, entry, annotation string
		spec                    map[string]any
		want                    string
		// known is the number of dependencies before the invalid one.
		known int
	}{
		{"a missing field", item, "", map[string]any{}, "dependsOn[0].name: template: ", 0},
		{"an invalid name", item, "", map[string]any{"database": "a/b"}, `dependsOn[0].name: "a/b": a lowercase RFC 1123 subdomain`, 0},
		{"an invalid label", "dependsOn: [{apiVersion: v1, kind: Pod, selector: {matchLabels: {app: '{{ .spec.database }}'}}}]", "", map[string]any{"database": "a b"}, `dependsOn[0].selector.matchLabels: app: "a b": a valid label`, 0},
		{"an invalid namespace", "allow: {dependsOn: {otherNamespaces: true}}\n  dependsOn: [{apiVersion: v1, kind: Pod, name: a, namespace: '{{ .spec.database }}'}]", "", map[string]any{"database": "a.b"}, `dependsOn[0].namespace: "a.b": must not contain dots`, 0},
		{"a malformed annotation", allowed, "main", main, `annotation chartwright.dev/depends-on: "main": expected <kind>.<group>/<name>`, 0},
		{"no annotation is allowed", item, "Database.a.com/main", main, "annotation chartwright.dev/depends-on: Database.a.com/main: A does not allow the annotation: remove it, or add the kind to allow.dependsOn.annotation", 1},
		{"another kind", allowed, "Node/one, Database.b.com/main", nil, "annotation chartwright.dev/depends-on: Database.b.com/main: want one of the kinds Database.a.com, Node, which A has in allow.dependsOn.annotation", 1},
		{"another namespace", allowed, "Database.a.com/data/main", nil, "annotation chartwright.dev/depends-on: Database.a.com/data/main: want the namespace shop, because A does not set allow.dependsOn.otherNamespaces", 0},
		{"a namespace of a cluster-scoped kind", allowed, "Node/shop/one", nil, "annotation chartwright.dev/depends-on: Node/shop/one: Node is cluster-scoped: want Node/one", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			refs, err := of(t, test.entry).DependenciesFor(dependent("shop", test.annotation, test.spec), release)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || len(refs) != test.known {
				t.Errorf("got %v, %v, want %s", refs, err, test.want)
			}
		})
	}
	refs, err := of(t, allowed).DependenciesFor(dependent("shop", "Database.a.com/shop/main", nil), release)
	if diff := cmp.Diff([]dependencies.Ref{{Kind: database, Namespace: "shop", Name: "main"}}, refs); err != nil || diff != "" {
		t.Errorf("the own namespace: %v (-want +got):\n%s", err, diff)
	}
}

// TestDependenciesFor_Ready evaluates the expressions of each source of dependencies.
func TestDependenciesFor_Ready(t *testing.T) {
	kind := of(t,
		"allow: {dependsOn: {annotation: [{apiVersion: a.com/v1, kind: Database, ready: self.status.annotated}, {apiVersion: v1, kind: Service}]}}",
		"dependsOn:",
		"- {apiVersion: a.com/v1, kind: Database, name: main, ready: self.status.listed}",
	)
	refs, err := kind.DependenciesFor(dependent("shop", "Database.a.com/main, Database.a.com/other, Service/api", nil), release)
	if err != nil || len(refs) != 3 {
		t.Fatalf("%v, %v", refs, err)
	}
	again, err := kind.DependenciesFor(dependent("shop", "Database.a.com/main, Database.a.com/other, Service/api", nil), release)
	if err != nil || refs[0] != again[0] || refs[1] != again[1] {
		t.Errorf("the references differ: %v, %v", again, err)
	}
	for i, field := range []string{"listed", "annotated"} {
		for _, ready := range []bool{true, false} {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "a.com/v1", "kind": "Database", "status": map[string]any{field: ready}}}
			if got := health.Evaluate(o, health.Kind{Rule: refs[i].Ready}); got.Ready != ready {
				t.Errorf("%s is %v: got %+v", field, ready, got)
			}
		}
	}
	if refs[2].Ready != nil {
		t.Error("a kind without an expression has one")
	}
}

func TestDependencies_ErrorsHaveLines(t *testing.T) {
	_, err := own(t,
		"allow:",
		"  dependsOn:",
		"    otherNamespaces: true",
		"    annotation:",
		"    - {apiVersion: a.com/v1, kind: Cache, ready: 1 + 1}",
		"dependsOn:",
		"- apiVersion: v1",
		"  kind: Node",
		"  name: '{{ .spec'",
		"  namespace: kube-system",
		"- apiVersion: a.com/v1",
		"  kind: Database",
		"  ready: self.",
		"  selector: {matchLabels: {app: '{{ .spec'}}",
	)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"watches.yaml:8: allow.dependsOn.annotation[0].ready: got an expression of type int, want bool",
		"watches.yaml:13: dependsOn[0].name: not a template: ",
		"watches.yaml:14: dependsOn[0].namespace: Node is cluster-scoped: remove namespace",
		"watches.yaml:17: dependsOn[1].ready: column 6: Syntax error",
		"watches.yaml:18: dependsOn[1].selector.matchLabels: app: not a template: ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}

// TestDependenciesFor_ClusterScopedKindOfFile: a dependency on a cluster-scoped kind of the
// same file, or of the same entry, has no namespace.
func TestDependenciesFor_ClusterScopedKindOfFile(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "a"), chart("a"))
	write(t, folder, map[string]string{"watches.yaml": entry("A", "a", "  dependsOn: [{apiVersion: v1, kind: B, name: b}]\n") +
		entry("B", "a", "  scope: Cluster\n  releaseNamespace: b\n  dependsOn: [{apiVersion: v1, kind: B, name: '{{ get .spec \"next\" }}'}, {apiVersion: v1, kind: A, name: a}]\n")})
	kinds, err := catalog.FromFile(filepath.Join(folder, "watches.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	alone, err := catalog.FromEntry(kinds[1].Watch, kinds[1].Chart)
	if err != nil {
		t.Fatal(err)
	}
	kindA, kindB := schema.GroupVersionKind{Version: "v1", Kind: "A"}, schema.GroupVersionKind{Version: "v1", Kind: "B"}
	for _, test := range []struct {
		name      string
		kind      catalog.Kind
		namespace string
		want      []dependencies.Ref
	}{
		{"another entry", kinds[0], "shop", []dependencies.Ref{{Kind: kindB, Name: "b"}}},
		{"the same entry", kinds[1], "", []dependencies.Ref{{Kind: kindB, Name: "c"}, {Kind: kindA, Namespace: "releases", Name: "a"}}},
		{"an entry without a file", alone, "", []dependencies.Ref{{Kind: kindB, Name: "c"}, {Kind: kindA, Namespace: "releases", Name: "a"}}},
	} {
		got, err := test.kind.DependenciesFor(dependent(test.namespace, "", map[string]any{"next": "c"}), release)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
}
