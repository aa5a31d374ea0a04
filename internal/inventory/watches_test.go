package inventory

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// What the tests watch.
var (
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secrets    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	roles      = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	unheardOf  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "UnheardOf"}
)

// Among the labels of whatever is ours.
var ours = map[string]string{api.LabelOwnerUID: string(web), api.LabelOperator: "chartwright"}

// watched is an inventory over a real API server, through which others write.
type watched struct {
	Inventory
	objects dynamic.Interface
	// told gets the owners whose objects are damaged.
	told chan types.UID
	// changed gets the owners whose objects' health, or the knowledge of it, has
	// changed.
	changed chan types.UID
	// requests counts the watches that were begun, by path.
	requests sync.Map
	// waiting are the drops that are due after linger.
	waiting []func()
	waits   []time.Duration
}

func newWatched(t *testing.T, config, others *rest.Config) *watched {
	t.Helper()
	w := &watched{told: make(chan types.UID, 100), changed: make(chan types.UID, 1000), objects: dynamic.NewForConfigOrDie(others)}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.URL.Query().Has("watch") {
				n, _ := w.requests.LoadOrStore(request.URL.Path, new(atomic.Int64))
				n.(*atomic.Int64).Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, client)
	if err != nil {
		t.Fatal(err)
	}
	index := NewIndex(func(owner types.UID) { w.told <- owner }, func(owner types.UID) { w.changed <- owner })
	index.SetReleaseNamespace(web, "default")
	w.Inventory = Inventory{Index: index, Watches: NewWatches(index, func(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
		return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	})}
	dependents, err := cache.New(config, w.Options("", cache.Options{
		HTTPClient:           client,
		Mapper:               mapper,
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{api.LabelOperator: "chartwright"}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	w.AddNamespace("", dependents)
	w.after = func(wait time.Duration, drop func()) *time.Timer {
		w.waits = append(w.waits, wait)
		w.waiting = append(w.waiting, drop)
		return time.NewTimer(time.Hour)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- dependents.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// watchesOf returns how many watches were begun of a resource.
func (w *watched) watchesOf(path string) int64 {
	n, ok := w.requests.Load(path)
	if !ok {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

func (w *watched) maps() dynamic.ResourceInterface {
	return w.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
}

// write applies an object in somebody's name.
func (w *watched) write(t *testing.T, manager string, object *unstructured.Unstructured) apply.State {
	t.Helper()
	written, err := w.maps().Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	return apply.StateOf(configMaps.GroupKind(), written)
}

// patch changes an object as somebody does with kubectl.
func (w *watched) patch(t *testing.T, name, patch string) {
	t.Helper()
	if _, err := w.maps().Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
}

func (w *watched) delete(t *testing.T, name string) {
	t.Helper()
	if err := w.maps().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// hears waits until the index tells of damage to web's objects.
func (w *watched) hears(t *testing.T, what string) {
	t.Helper()
	select {
	case owner := <-w.told:
		if owner != web {
			t.Fatalf("%s: told of %q", what, owner)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: nobody was told", what)
	}
}

// need is Need where it is to succeed.
func (w *watched) need(t *testing.T, owner types.UID, kinds ...schema.GroupVersionKind) {
	t.Helper()
	if err := w.EnsureWatched(t.Context(), owner, "", kinds); err != nil {
		t.Fatal(err)
	}
}

func TestWatches(t *testing.T) {
	env := server(t)
	t.Run("events", func(t *testing.T) { testEvents(t, newWatched(t, env.Config, env.Config)) })
	t.Run("use", func(t *testing.T) { testUse(t, newWatched(t, env.Config, env.Config)) })
	t.Run("rights", func(t *testing.T) { testRights(t, env) })
	t.Run("a kind that appears later", func(t *testing.T) { testLaterKind(t, env) })
	t.Run("memory", func(t *testing.T) { testMemory(t, newWatched(t, env.Config, env.Config)) })
}

// testEvents damages what is watched.
func testEvents(t *testing.T, w *watched) {
	before := w.write(t, api.FieldManager, configMap("before", ours))
	w.write(t, api.FieldManager, configMap("foreign", map[string]string{api.LabelOwnerUID: string(web), api.LabelOperator: "another"}))
	copied := w.write(t, "a-controller", configMap("copied", ours))
	w.need(t, web, configMaps)
	// What Need returned from is known: no event needs to be waited for.
	if got, ok := w.Get(before.Key); !ok || got != before {
		t.Errorf("the object that was there before: %+v, %v", got, ok)
	}
	if got, ok := w.Get(copied.Key); !ok || got != copied || got.Managed {
		t.Errorf("the copy: %+v, %v", got, ok)
	}
	if got, ok := w.Get(apply.Key{Kind: "ConfigMap", Namespace: "default", Name: "foreign"}); ok {
		t.Errorf("another operator's object: %+v", got)
	}
	if owned := w.OwnedBy(web); len(owned) != 1 {
		t.Errorf("owned: %+v", owned)
	}
	if !w.RestoreExpected(web, Recorded{Digest: apply.Digest([]apply.State{before})}) {
		t.Error("what the record says is not recalled")
	}

	drifts := func(want string) {
		t.Helper()
		if got := (&listened{Index: w.Index}).drifts(web); got != want {
			t.Errorf("damaged: %q, want %q", got, want)
		}
	}
	repair := func() {
		t.Helper()
		s := w.write(t, api.FieldManager, configMap("before", ours))
		w.Put(s)
		w.ExpectOne(web, s)
		drifts("")
	}
	const itself, gone = "before", "before gone"
	for _, damage := range []struct{ what, patch, drift string }{
		{"a field is changed", `{"data":{"a":"2"}}`, itself},
		{"a field is removed", `{"data":{"a":null}}`, itself},
		{"the owner label is removed", `{"metadata":{"labels":{"` + api.LabelOwnerUID + `":null}}}`, itself},
		{"the operator label is removed", `{"metadata":{"labels":{"` + api.LabelOperator + `":null}}}`, gone},
		{"the managed fields are wiped", `{"metadata":{"managedFields":[{}]}}`, gone},
	} {
		w.patch(t, "before", damage.patch)
		w.hears(t, damage.what)
		drifts(damage.drift)
		repair()
	}
	w.delete(t, "before")
	w.hears(t, "it is deleted")
	drifts(gone)
	repair()
	// What is not ours comes before something that is, and tells nobody.
	w.patch(t, "before", `{"data":{"b":"2"},"metadata":{"labels":{"b":"2"},"finalizers":["example.com/b"]}}`)
	w.delete(t, "copied")
	w.patch(t, "before", `{"metadata":{"finalizers":null}}`)
	w.patch(t, "before", `{"data":{"a":"3"}}`)
	w.hears(t, "a field is changed")
	drifts(itself)
	if len(w.told) > 0 {
		t.Error("told of what is not ours")
	}
	if n := w.watchesOf("/api/v1/configmaps"); n != 1 {
		t.Errorf("%d watches were begun, want 1", n)
	}
}

// testUse counts who needs a watch.
func testUse(t *testing.T, w *watched) {
	const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	watched := func(want int64) {
		t.Helper()
		if got := w.watchesOf(path); got != want {
			t.Errorf("%d watches were begun, want %d", got, want)
		}
	}
	fire := func() {
		t.Helper()
		if len(w.waiting) != 1 || w.waits[0] != idleTimeout {
			t.Fatalf("drops are due after %v, want one after %v", w.waits, idleTimeout)
		}
		w.waiting[0]()
		w.waiting, w.waits = nil, nil
	}
	w.need(t, web, configMaps, roles)
	w.need(t, other, roles)
	w.need(t, other, roles)
	watched(1)
	if got := w.Kinds(web); !reflect.DeepEqual(got, []schema.GroupVersionKind{configMaps, roles}) {
		t.Errorf("web needs %v", got)
	}

	w.need(t, web, configMaps)
	if len(w.waiting) > 0 {
		t.Error("a watch that others need is to be dropped")
	}
	w.Forget(other)
	if got := w.Kinds(other); got != nil {
		t.Errorf("an owner that is gone needs %v", got)
	}
	w.Forget(other)
	// Somebody needs it in time.
	w.need(t, other, roles)
	fire()
	watched(1)
	if len(w.kinds) != 2 {
		t.Errorf("%d kinds are watched, want 2", len(w.kinds))
	}

	w.need(t, other)
	fire()
	if len(w.kinds) != 1 || len(w.byOwner) != 1 {
		t.Errorf("%d kinds are watched for %d owners, want 1 for 1", len(w.kinds), len(w.byOwner))
	}
	w.need(t, other, roles)
	watched(2)

	// A drop that is late must not take a watch that was begun after it.
	w.Forget(other)
	late := w.waiting[0]
	fire()
	w.need(t, other, roles)
	watched(3)
	late()
	if len(w.kinds) != 2 {
		t.Errorf("%d kinds are watched, want 2", len(w.kinds))
	}
}

// testRights watches what there is no right to, and what there is not.
func testRights(t *testing.T, env *envtest.Environment) {
	user, err := env.AddUser(envtest.User{Name: "limited"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	admin := kubernetes.NewForConfigOrDie(env.Config).RbacV1()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "limited"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "limited"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "limited"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "limited"}},
	}
	if _, err := admin.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w := newWatched(t, user.Config(), env.Config)
	s := w.write(t, api.FieldManager, configMap("rights", ours))

	began := time.Now()
	err = w.EnsureWatched(t.Context(), web, "", []schema.GroupVersionKind{unheardOf, secrets, roles, configMaps})
	if took := time.Since(began); took > watchStartTimeout+20*time.Second {
		t.Errorf("it took %s, want little more than %s", took, watchStartTimeout)
	}
	if !errors.Is(err, ErrUnwatched) {
		t.Fatalf("got %v, want ErrUnwatched", err)
	}
	for _, gvk := range []schema.GroupVersionKind{unheardOf, secrets, roles} {
		if !strings.Contains(err.Error(), gvk.GroupKind().String()) {
			t.Errorf("%v does not name %s", err, gvk.GroupKind())
		}
	}
	if strings.Contains(err.Error(), "ConfigMap") {
		t.Errorf("%v names what is watched", err)
	}
	w.Expect(web, []apply.State{s})
	w.patch(t, "rights", `{"data":{"a":"2"}}`)
	w.hears(t, "a field is changed")

	ended, end := context.WithCancel(t.Context())
	end()
	if err := w.EnsureWatched(ended, web, "", []schema.GroupVersionKind{secrets}); !errors.Is(err, ErrUnwatched) {
		t.Errorf("after the context has ended: %v", err)
	}
}

// testLaterKind watches a kind as soon as it is there.
func testLaterKind(t *testing.T, env *envtest.Environment) {
	w := newWatched(t, env.Config, env.Config)
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Later"}
	if err := w.EnsureWatched(t.Context(), web, "", []schema.GroupVersionKind{gvk}); !errors.Is(err, ErrUnwatched) {
		t.Fatalf("got %v, want ErrUnwatched", err)
	}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "laters.example.com"},
		"spec": map[string]any{
			"group": gvk.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": gvk.Kind, "plural": "laters"},
			"versions": []any{map[string]any{
				"name": gvk.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
	crds := w.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := w.EnsureWatched(ctx, web, "", []schema.GroupVersionKind{gvk})
		if errors.Is(err, ErrUnwatched) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		t.Error(err)
	}
}
