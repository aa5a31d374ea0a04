package plugin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/chartwright/chartwright/internal/api"
)

// treeKinds are the kinds of the cluster. Chartwright serves the first three.
var treeKinds = []metav1.APIResource{
	{Group: "example.com", Version: "v1", Kind: "App", Name: "apps", Namespaced: true},
	{Group: "example.com", Version: "v1", Kind: "Database", Name: "databases", Namespaced: true},
	{Group: "example.com", Version: "v1", Kind: "Zone", Name: "zones"},
	{Version: "v1", Kind: "Secret", Name: "secrets", Namespaced: true},
}

// node returns a custom resource that depends on others, written as "Kind name" or "Kind
// key=value" for a selector, in the namespace of the custom resource.
func node(kind, name string, dependsOn ...string) *crBuilder {
	m := makeCR(name)
	m.cr.SetAPIVersion("example.com/v1")
	m.cr.SetKind(kind)
	m.condition(api.ConditionReady, isTrue, api.ReasonDeployed, name+" is deployed").condition(api.ConditionDeployed, isTrue, api.ReasonInstallSuccessful, "")
	m.status.State = api.ReasonDeployed
	for _, text := range dependsOn {
		of, rest, _ := strings.Cut(text, " ")
		d := api.DependencyStatus{APIVersion: "example.com/v1", Kind: of, Namespace: "shop", Name: rest}
		if of == "Secret" {
			d.APIVersion = "v1"
		}
		if strings.Contains(rest, "=") {
			d.Name, d.Selector = "", rest
		}
		m.status.Dependencies = append(m.status.Dependencies, d)
	}
	return m
}

func (m *crBuilder) in(namespace string) *crBuilder {
	m.cr.SetNamespace(namespace)
	return m
}

func (m *crBuilder) labeled(key, value string) *crBuilder {
	m.cr.SetLabels(map[string]string{key: value})
	return m
}

func secretNamed(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "shop", "name": name}}}
}

// treeWorld is a cluster with objects. The first one is that of the command.
type treeWorld struct {
	t       *testing.T
	objects []runtime.Object
	client  *fake.FakeDynamicClient
}

func newTreeWorld(t *testing.T, crs ...*crBuilder) *treeWorld {
	t.Helper()
	w := &treeWorld{t: t}
	for _, cr := range crs {
		w.objects = append(w.objects, cr.obj(t))
	}
	return w.with()
}

// with adds objects.
func (w *treeWorld) with(objects ...runtime.Object) *treeWorld {
	w.objects = append(w.objects, objects...)
	lists := map[schema.GroupVersionResource]string{}
	for _, kind := range treeKinds {
		lists[schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Name}] = kind.Kind + "List"
	}
	w.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, w.objects...)
	return w
}

// forbid refuses a verb on a resource in a namespace, "" for all namespaces.
func (w *treeWorld) forbid(verb, resource, namespace string) *treeWorld {
	w.client.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		refused := apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no"))
		return action.GetNamespace() == namespace, nil, refused
	})
	return w
}

func (w *treeWorld) output() treeOutput {
	w.t.Helper()
	cr, _ := w.objects[0].(*unstructured.Unstructured)
	x := newTreeSearch(&session{dynamic: w.client, namespace: "shop"}, cr, treeKinds)
	x.listManaged(w.t.Context(), treeKinds[:3])
	x.readDependencies(w.t.Context())
	return x.output()
}

// expect compares the tree and the notes.
func (w *treeWorld) expect(tree string, missing ...string) {
	w.t.Helper()
	out := w.output()
	var text strings.Builder
	text.WriteString("\n")
	for _, row := range out.branch(out.Namespace).rows("", "") {
		_, _ = fmt.Fprintln(&text, strings.TrimRight(strings.Join([]string{row.name, row.state, row.text}, "  "), " "))
	}
	if diff := cmp.Diff(tree, text.String()); diff != "" {
		w.t.Errorf("the tree (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(missing, out.Missing); diff != "" {
		w.t.Errorf("what is missing (-want +got):\n%s", diff)
	}
}

func TestTree_ShowsBothDirections(t *testing.T) {
	waits := node("App", "shop", "Database db", "Secret key")
	waits.status.State, waits.status.Conditions[0].Status, waits.status.Conditions[0].Message = api.ReasonDependencyNotReady, isFalse, "Waits for\nDatabase db"
	edited := node("Database", "db", "Secret key", "Secret gone", "Zone eu", "Queue q")
	edited.cr.SetGeneration(2)
	edited.status.ObservedGeneration = 2
	zone := node("Zone", "eu").in("")
	zone.cr.SetGeneration(1)
	newTreeWorld(t, waits, edited, zone, node("App", "site", "App shop"), node("App", "other", "App shop").in("away"), node("App", "top", "App site"), node("App", "unrelated", "Database other")).
		with(secretNamed("key")).expect(`
App shop/shop  False  DependencyNotReady: Waits for Database db
├─ depends on
│  ├─ Database db  True  Deployed: db is deployed
│  │  ├─ Secret key  True
│  │  ├─ Secret gone  False  Missing: not found
│  │  ├─ Zone eu  Unknown  NotObserved: the operator did not observe the last edit or deletion yet (observed generation 0 of 1): if this persists, check that it is running
│  │  └─ Queue q  Unknown  the cluster does not have the kind
│  └─ Secret key  True
└─ needed by
   ├─ App away/other  True  Deployed: other is deployed
   └─ App site  True  Deployed: site is deployed
      └─ App top  True  Deployed: top is deployed
`)
	newTreeWorld(t, node("App", "alone")).expect(`
App shop/alone  True  Deployed: alone is deployed
├─ depends on    none
└─ needed by    none
`)
}

func TestTree_Selectors(t *testing.T) {
	newTreeWorld(t, node("App", "shop", "Database tier=main", "Database tier=none", "Database two"),
		node("Database", "two").labeled("tier", "main"), node("Database", "one").labeled("tier", "main"), node("Database", "three")).expect(`
App shop/shop  True  Deployed: shop is deployed
├─ depends on
│  ├─ Database one  True  Deployed: one is deployed
│  ├─ Database two  True  Deployed: two is deployed
│  └─ Database with the labels tier=none  False  Missing: no object matches
└─ needed by    none
`)
	newTreeWorld(t, node("Database", "one").labeled("tier", "main"), node("App", "shop", "Database tier=main", "Database one"), node("App", "away", "Database tier=main").in("away"), node("App", "no", "Database tier=other")).expect(`
Database shop/one  True  Deployed: one is deployed
├─ depends on    none
└─ needed by
   ├─ App away/away  True  Deployed: away is deployed
   └─ App shop  True  Deployed: shop is deployed
`)
}

// An object without a status is not ready if Chartwright serves its kind, and one that is
// being deleted is not ready either.
func TestTree_States(t *testing.T) {
	fresh := node("App", "fresh").obj(t)
	delete(fresh.Object, "status")
	foreign := node("Database", "foreign").obj(t)
	foreign.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "Starting", "message": "not yet"}}}
	newTreeWorld(t, node("App", "shop", "App fresh", "Database foreign", "App leaving"), node("App", "leaving").deleting()).
		with(fresh, foreign).expect(`
App shop/shop  True  Deployed: shop is deployed
├─ depends on
│  ├─ App fresh  Unknown  NotReported: no status reported yet
│  ├─ Database foreign  False  Starting: not yet
│  └─ App leaving  False  Uninstalling: being deleted since 2026-01-02T03:04:05Z; finalizers: chartwright.dev/uninstall, backup
└─ needed by    none
`)
}

// Cycles end, and what is below an object is shown once in each direction.
func TestTree_ShowsNothingTwice(t *testing.T) {
	newTreeWorld(t, node("App", "a", "App b", "App c"), node("App", "b", "App d"), node("App", "c", "App d"), node("App", "d", "App a", "Secret s")).
		with(secretNamed("s")).expect(`
App shop/a  True  Deployed: a is deployed
├─ depends on
│  ├─ App b  True  Deployed: b is deployed
│  │  └─ App d  True  Deployed: d is deployed
│  │     ├─ App a  True  already shown
│  │     └─ Secret s  True
│  └─ App c  True  Deployed: c is deployed
│     └─ App d  True  already shown
└─ needed by
   └─ App d  True  Deployed: d is deployed
      ├─ App b  True  Deployed: b is deployed
      │  └─ App a  True  already shown
      └─ App c  True  Deployed: c is deployed
         └─ App a  True  already shown
`)
}

func TestTree_MissingPermissions(t *testing.T) {
	w := newTreeWorld(t, node("App", "shop", "Database db", "Secret key", "Secret app=web"), node("Database", "db", "Secret key"), node("App", "site", "App shop"), node("App", "far", "App shop").in("away"))
	w.forbid("list", "apps", "").forbid("list", "databases", "").forbid("list", "databases", "shop").forbid("get", "secrets", "shop").forbid("list", "secrets", "shop")
	w.expect(`
App shop/shop  True  Deployed: shop is deployed
├─ depends on
│  ├─ Database db  True  Deployed: db is deployed
│  │  └─ Secret key  Unknown  Forbidden: you cannot get secrets
│  ├─ Secret key  Unknown  Forbidden: you cannot get secrets
│  └─ Secret with the labels app=web  Unknown  Forbidden: you cannot list secrets
└─ needed by
   └─ App site  True  Deployed: site is deployed
`, "1 kinds were listed only in namespace shop, because you cannot list them in all namespaces",
		"1 kinds were skipped because you cannot list them",
		`missing permission to get secrets in namespace shop, which is required to show its state; required rule: {apiGroups: [""], resources: ["secrets"], verbs: ["get"]}`,
		`missing permission to list secrets in namespace shop, which is required to show its state; required rule: {apiGroups: [""], resources: ["secrets"], verbs: ["list"]}`)
}

// The output and the requests are limited, and each object is read once, if it was not listed.
func TestTree_Limits(t *testing.T) {
	crs := []*crBuilder{node("App", "root")}
	for i := range 40 {
		mid := fmt.Sprintf("mid-%02d", i)
		if i < api.DependenciesLimit {
			crs[0].status.Dependencies = append(crs[0].status.Dependencies, api.DependencyStatus{APIVersion: "example.com/v1", Kind: "Database", Namespace: "shop", Name: mid})
		}
		var secrets []string
		for j := range 10 {
			secrets = append(secrets, fmt.Sprintf("Secret s-%d-%d", i, j), "Secret shared")
		}
		crs = append(crs, node("Database", mid, secrets...))
	}
	for i := range maxTreeNodes + 10 {
		crs = append(crs, node("App", fmt.Sprintf("user-%03d", i), "App root"))
	}
	w := newTreeWorld(t, crs...)
	out := w.output()
	if len(out.NeededBy) != maxTreeNodes {
		t.Errorf("%d dependents are shown", len(out.NeededBy))
	}
	if diff := cmp.Diff([]string{"the status of App root names at most 32 dependencies", "the tree shows at most 200 objects in each direction"}, out.Missing); diff != "" {
		t.Errorf("what is missing (-want +got):\n%s", diff)
	}
	read := map[string]int{}
	for _, action := range w.client.Actions() {
		if get, ok := action.(clienttesting.GetAction); ok {
			read[get.GetName()]++
		}
	}
	if len(read) < 100 || len(read) > maxTreeNodes || read["shared"] != 1 || read["s-0-0"] != 1 || read["mid-00"] != 0 {
		t.Errorf("%d objects were read: %v", len(read), read)
	}
}
