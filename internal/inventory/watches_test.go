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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/testenv"
)

// Kinds that the tests watch.
var (
	configMaps  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secrets     = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	roles       = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	unknownKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Unknown"}
)

// ownerLabels are the labels of the objects of web.
var ownerLabels = map[string]string{api.LabelOwnerUID: string(web), api.LabelOperator: "chartwright"}

// serverWatches is an inventory that watches an API server, with a client for other writes.
type serverWatches struct {
	Inventory
	config  *rest.Config
	objects dynamic.Interface
	// notified receives the owners of objects that have drifted.
	notified chan types.UID
	// changed receives the owners of objects whose health has changed.
	changed chan types.UID
	// requests counts the watch requests by path.
	requests sync.Map
	// timers are the functions of the running timers, and durations their durations.
	timers    []func()
	durations []time.Duration
}

func newServerWatches(t *testing.T, config, others *rest.Config) *serverWatches {
	t.Helper()
	w := &serverWatches{config: config, notified: make(chan types.UID, 100), changed: make(chan types.UID, 1000), objects: dynamic.NewForConfigOrDie(others)}
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
	index := NewIndex(func(owner types.UID) { w.notified <- owner }, func(owner types.UID) { w.changed <- owner })
	index.SetReleaseNamespace(web, "default")
	index.HealthConfig.Rules = NewRuleSet(nil)
	w.Inventory = Inventory{Index: index, Watches: NewWatches(index, func(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
		if gvk.Version == "" {
			now, err := apiutil.NewDynamicRESTMapper(config, client)
			if err != nil {
				return nil, err
			}
			return now.RESTMapping(gvk.GroupKind())
		}
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
		w.durations = append(w.durations, wait)
		w.timers = append(w.timers, drop)
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

// watchesOf returns the number of watch requests for a path.
func (w *serverWatches) watchesOf(path string) int64 {
	n, ok := w.requests.Load(path)
	if !ok {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

func (w *serverWatches) maps() dynamic.ResourceInterface {
	return w.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
}

// write applies an object with the given field manager.
func (w *serverWatches) write(t *testing.T, manager string, object *unstructured.Unstructured) apply.State {
	t.Helper()
	written, err := w.maps().Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	return apply.StateOf(configMaps.GroupKind(), written)
}

// patch patches an object with the field manager of kubectl.
func (w *serverWatches) patch(t *testing.T, name, patch string) {
	t.Helper()
	if _, err := w.maps().Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
}

func (w *serverWatches) delete(t *testing.T, name string) {
	t.Helper()
	if err := w.maps().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitForDrift waits for a drift notification for web.
func (w *serverWatches) waitForDrift(t *testing.T, what string) {
	t.Helper()
	if owner := testenv.Receive(t, what, w.notified); owner != web {
		t.Fatalf("%s: got a notification for %q", what, owner)
	}
}

// ensureWatched calls EnsureWatched, which must succeed.
func (w *serverWatches) ensureWatched(t *testing.T, owner types.UID, kinds ...schema.GroupVersionKind) {
	t.Helper()
	if err := w.EnsureWatched(t.Context(), owner, "", kinds); err != nil {
		t.Fatal(err)
	}
}

func TestWatches_APIServer(t *testing.T) {
	env := testenv.Shared(t)
	t.Run("events", func(t *testing.T) { testEvents(t, newServerWatches(t, env.Config, env.Config)) })
	t.Run("use", func(t *testing.T) { testUse(t, newServerWatches(t, env.Config, env.Config)) })
	t.Run("missing permissions", func(t *testing.T) { testMissingPermissions(t, env) })
	t.Run("kind created later", func(t *testing.T) { testLaterKind(t, env) })
	t.Run("version that ends", func(t *testing.T) { testEndedVersion(t, newServerWatches(t, env.Config, env.Config)) })
	t.Run("memory", func(t *testing.T) { testMemory(t, newServerWatches(t, env.Config, env.Config)) })
}

// testEvents changes watched objects.
func testEvents(t *testing.T, w *serverWatches) {
	before := w.write(t, api.FieldManager, configMap("before", ownerLabels))
	w.write(t, api.FieldManager, configMap("foreign", map[string]string{api.LabelOwnerUID: string(web), api.LabelOperator: "another"}))
	copied := w.write(t, "a-controller", configMap("copied", ownerLabels))
	w.ensureWatched(t, web, configMaps)
	// Once EnsureWatched has returned, the index has all objects.
	if got, ok := w.Get(before.Key); !ok || got != before {
		t.Errorf("the object from before the watch: %+v, %v", got, ok)
	}
	if got, ok := w.Get(copied.Key); !ok || got != copied || got.Managed {
		t.Errorf("the object with copied labels: %+v, %v", got, ok)
	}
	if got, ok := w.Get(apply.Key{Kind: "ConfigMap", Namespace: "default", Name: "foreign"}); ok {
		t.Errorf("object of another operator: %+v", got)
	}
	if owned := w.OwnedBy(web); len(owned) != 1 {
		t.Errorf("owned: %+v", owned)
	}
	if !w.RestoreExpected(web, Recorded{Digest: apply.Digest([]apply.State{before})}) {
		t.Error("the expected state was not restored")
	}

	driftNames := func(want string) {
		t.Helper()
		if got := (&recordingIndex{Index: w.Index}).driftNames(web); got != want {
			t.Errorf("got drift %q, want %q", got, want)
		}
	}
	repair := func() {
		t.Helper()
		s := w.write(t, api.FieldManager, configMap("before", ownerLabels))
		w.Put(s)
		w.ExpectOne(web, s)
		driftNames("")
	}
	const itself, gone = "before", "before gone"
	for _, change := range []struct{ what, patch, drift string }{
		{"field changed", `{"data":{"a":"2"}}`, itself},
		{"field removed", `{"data":{"a":null}}`, itself},
		{"owner label removed", `{"metadata":{"labels":{"` + api.LabelOwnerUID + `":null}}}`, itself},
		{"operator label removed", `{"metadata":{"labels":{"` + api.LabelOperator + `":null}}}`, gone},
		{"managed fields removed", `{"metadata":{"managedFields":[{}]}}`, gone},
	} {
		w.patch(t, "before", change.patch)
		w.waitForDrift(t, change.what)
		driftNames(change.drift)
		repair()
	}
	w.delete(t, "before")
	w.waitForDrift(t, "deleted")
	driftNames(gone)
	repair()
	// Changes of other fields cause no notification, in contrast to the one that follows.
	w.patch(t, "before", `{"data":{"b":"2"},"metadata":{"labels":{"b":"2"},"finalizers":["example.com/b"]}}`)
	w.delete(t, "copied")
	w.patch(t, "before", `{"metadata":{"finalizers":null}}`)
	w.patch(t, "before", `{"data":{"a":"3"}}`)
	w.waitForDrift(t, "field changed")
	driftNames(itself)
	if len(w.notified) > 0 {
		t.Error("got a notification for fields of another manager")
	}
	if n := w.watchesOf("/api/v1/configmaps"); n != 1 {
		t.Errorf("got %d watch requests, want 1", n)
	}
}

// testUse checks that a watch ends after its last owner.
func testUse(t *testing.T, w *serverWatches) {
	const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	serverWatches := func(want int64) {
		t.Helper()
		if got := w.watchesOf(path); got != want {
			t.Errorf("got %d watch requests, want %d", got, want)
		}
	}
	fire := func() {
		t.Helper()
		if len(w.timers) != 1 || w.durations[0] != idleTimeout {
			t.Fatalf("got timers of %v, want one of %v", w.durations, idleTimeout)
		}
		w.timers[0]()
		w.timers, w.durations = nil, nil
	}
	w.ensureWatched(t, web, configMaps, roles)
	w.ensureWatched(t, other, roles)
	w.ensureWatched(t, other, roles)
	serverWatches(1)
	if got := w.Kinds(web); !reflect.DeepEqual(got, []schema.GroupVersionKind{configMaps, roles}) {
		t.Errorf("got kinds %v for web", got)
	}

	w.ensureWatched(t, web, configMaps)
	if len(w.timers) > 0 {
		t.Error("a timer was started for a watch with another owner")
	}
	w.Forget(other)
	if got := w.Kinds(other); got != nil {
		t.Errorf("got kinds %v for a deleted owner", got)
	}
	w.Forget(other)
	// An owner uses the watch before the timer fires.
	w.ensureWatched(t, other, roles)
	fire()
	serverWatches(1)
	if len(w.kinds) != 2 {
		t.Errorf("%d kinds are watched, want 2", len(w.kinds))
	}

	w.ensureWatched(t, other)
	fire()
	if len(w.kinds) != 1 || len(w.byOwner) != 1 {
		t.Errorf("%d kinds are watched for %d owners, want 1 for 1", len(w.kinds), len(w.byOwner))
	}
	w.ensureWatched(t, other, roles)
	serverWatches(2)

	// A late timer must not end a watch that was started after it.
	w.Forget(other)
	late := w.timers[0]
	fire()
	w.ensureWatched(t, other, roles)
	serverWatches(3)
	late()
	if len(w.kinds) != 2 {
		t.Errorf("%d kinds are watched, want 2", len(w.kinds))
	}
}

// testMissingPermissions watches kinds without permission, and one that does not exist.
func testMissingPermissions(t *testing.T, env *envtest.Environment) {
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
	w := newServerWatches(t, user.Config(), env.Config)
	s := w.write(t, api.FieldManager, configMap("rights", ownerLabels))

	err = w.EnsureWatched(t.Context(), web, "", []schema.GroupVersionKind{unknownKind, secrets, roles, configMaps})
	if !errors.Is(err, ErrUnwatched) {
		t.Fatalf("got %v, want ErrUnwatched", err)
	}
	for _, gvk := range []schema.GroupVersionKind{unknownKind, secrets, roles} {
		if !strings.Contains(err.Error(), gvk.GroupKind().String()) {
			t.Errorf("%v does not name %s", err, gvk.GroupKind())
		}
	}
	if strings.Contains(err.Error(), "ConfigMap") {
		t.Errorf("%v names a watched kind", err)
	}
	w.Expect(web, []apply.State{s})
	w.patch(t, "rights", `{"data":{"a":"2"}}`)
	w.waitForDrift(t, "field changed")

	ended, end := context.WithCancel(t.Context())
	end()
	if err := w.EnsureWatched(ended, web, "", []schema.GroupVersionKind{secrets}); !errors.Is(err, ErrUnwatched) {
		t.Errorf("with an ended context: %v", err)
	}
}

// testLaterKind watches a kind whose CRD is created later.
func testLaterKind(t *testing.T, env *envtest.Environment) {
	w := newServerWatches(t, env.Config, env.Config)
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
	testenv.Until(t, "the watch of the kind", func() error {
		err := w.EnsureWatched(t.Context(), web, "", []schema.GroupVersionKind{gvk})
		if err != nil && !errors.Is(err, ErrUnwatched) {
			t.Fatal(err)
		}
		return err
	})
}

// testEndedVersion ends the version of a kind that is watched.
func testEndedVersion(t *testing.T, w *serverWatches) {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Mover"}
	version := func(name string, served bool) map[string]any {
		return map[string]any{
			"name": name, "served": served, "storage": name == "v1",
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}
	}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "movers.example.com"},
		"spec": map[string]any{
			"group": gvk.Group, "scope": "Namespaced", "names": map[string]any{"kind": gvk.Kind, "plural": "movers"},
			"versions": []any{version("v1beta1", true), version("v1", true)},
		},
	}}
	crds := w.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	movers := w.objects.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "movers"}).Namespace("default")
	states := map[string]apply.State{}
	for _, name := range []string{"changed", "deleted"} {
		mover := configMap(name, ownerLabels)
		mover.SetAPIVersion("example.com/v1")
		mover.SetKind("Mover")
		testenv.Until(t, "the kind", func() error {
			live, err := movers.Apply(t.Context(), name, mover, metav1.ApplyOptions{FieldManager: api.FieldManager, Force: true})
			if err == nil {
				states[name] = apply.StateOf(gvk.GroupKind(), live)
			}
			return err
		})
	}
	testenv.Until(t, "the watch of the version", func() error { return w.EnsureWatched(t.Context(), web, "", []schema.GroupVersionKind{gvk}) })
	before := w.watchesOf("/apis/example.com/v1/movers")

	ended := []byte(`[{"op": "replace", "path": "/spec/versions/0/served", "value": false}]`)
	if _, err := crds.Patch(t.Context(), "movers.example.com", types.JSONPatchType, ended, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := movers.Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "the watch of the served version", func() error {
		if w.watchesOf("/apis/example.com/v1/movers") == before {
			return errors.New("not watched")
		}
		return nil
	})
	live, err := movers.Patch(t.Context(), "changed", types.MergePatchType, []byte(`{"data":{"a":"2"}}`), metav1.PatchOptions{FieldManager: "kubectl"})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "the change and the deletion", func() error {
		changed, _ := w.Get(states["changed"].Key)
		if _, exists := w.Get(states["deleted"].Key); exists || changed.ResourceVersion != live.GetResourceVersion() {
			return errors.New("not observed")
		}
		return nil
	})
	// Also for a release that was recorded before the version ended.
	for owner, recorded := range map[types.UID]string{web: "v1", other: "v1beta1"} {
		gvk.Version = recorded
		w.ensureWatched(t, owner, gvk)
	}
	if unwatched := w.AllUnwatched(); len(unwatched) > 0 {
		t.Errorf("not watched: %v", unwatched)
	}

	// A watch that starts after the version ended.
	started := newServerWatches(t, w.config, w.config)
	started.ensureWatched(t, web, schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Mover"})
	if _, exists := started.Get(states["changed"].Key); !exists {
		t.Error("the object is not in the index of another operator")
	}
}
