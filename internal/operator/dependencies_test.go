package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/dependencies"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/operator/leader"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/internal/watches"
)

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// dependent is a custom resource that depends on objects, with running watches.
type dependent struct {
	*dependencyWatches
	client.Client
	t       *testing.T
	ctx     context.Context
	changed chan struct{}
}

// newDependent starts the watches for a custom resource of the kind App, which depends on
// the given kinds.
func newDependent(t *testing.T, config *rest.Config, on ...schema.GroupVersionKind) *dependent {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	scheme := runtime.NewScheme()
	for _, register := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := register(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, MapperProvider: newMapper, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	d := &dependent{Client: c, t: t, ctx: ctx, changed: make(chan struct{}, 1)}
	store := dependencies.NewStore(func(types.UID) {
		select {
		case d.changed <- struct{}{}:
		default: // a signal is already pending
		}
	})
	all := newScopes([]string{"default"})
	all[0].ready.set()
	caches := informers{manager: mgr, scopes: all, tasks: &sync.WaitGroup{}, logger: logr.Discard()}
	d.dependencyWatches = newDependencyWatches(caches, store, func(kind catalog.Kind) []schema.GroupVersionKind {
		if kind.Kind == "App" {
			return on
		}
		return nil
	})
	d.until = ctx
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		caches.tasks.Wait()
	})
	return d
}

func kindOf(gvk schema.GroupVersionKind) catalog.Kind {
	return catalog.Kind{Watch: watches.Watch{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}}
}

var appKind = kindOf(schema.GroupVersionKind{Group: "apps.example.com", Version: "v1", Kind: "App"})

// dependsOn sets the only dependency of the custom resource, in the namespace "default".
func (d *dependent) dependsOn(gvk schema.GroupVersionKind, name string) {
	key := dependencies.Key{GroupKind: appKind.GVK().GroupKind(), NamespacedName: types.NamespacedName{Namespace: "default", Name: "app"}}
	d.store.Set(dependencies.User{Key: key, UID: "app"}, []dependencies.Ref{{Kind: gvk, Namespace: "default", Name: name}})
}

// expectWaits waits until the custom resource waits with a message, "" for nothing. It
// relies on notifications.
func (d *dependent) expectWaits(want string) {
	d.t.Helper()
	for {
		got := ""
		if waits := d.store.Check("app", time.Now()).Waits; waits != nil {
			got = waits.Message
		}
		if got == want || want != "" && strings.HasSuffix(got, want) {
			return
		}
		select {
		case <-d.changed:
		case <-d.ctx.Done():
			d.t.Fatalf("waits with %q, want %q", got, want)
		}
	}
}

// create creates an object, and deletes it after the test.
func (d *dependent) create(object client.Object) {
	d.t.Helper()
	if err := d.Create(d.ctx, object); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := client.IgnoreNotFound(d.Delete(context.Background(), object)); err != nil {
			d.t.Error(err)
		}
	})
}

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

func TestDependencyWatches_OtherKinds(t *testing.T) {
	env := testenv.Shared(t)
	d := newDependent(t, env.Config, configMaps, valuesfrom.SecretKind)
	d.startKind(d.ctx, appKind)
	for gvk, object := range map[schema.GroupVersionKind]client.Object{
		configMaps: &corev1.ConfigMap{ObjectMeta: objectMeta("object")}, valuesfrom.SecretKind: &corev1.Secret{ObjectMeta: objectMeta("object")},
	} {
		d.dependsOn(gvk, "object")
		d.expectWaits("not found")
		d.create(object)
		d.expectWaits("")
		if err := d.Delete(d.ctx, object); err != nil {
			t.Fatal(err)
		}
		d.expectWaits("not found")
	}
}

// TestDependencyWatches_Secrets expects that the operator neither reads the content of
// Secrets for dependencies, nor holds release records.
func TestDependencyWatches_Secrets(t *testing.T) {
	env := testenv.Shared(t)
	d := newDependent(t, env.Config, valuesfrom.SecretKind)
	if _, ok := d.describe(valuesfrom.SecretKind).object.(*metav1.PartialObjectMetadata); !ok {
		t.Errorf("the watch has objects of type %T", d.describe(valuesfrom.SecretKind).object)
	}
	d.create(&corev1.Secret{ObjectMeta: objectMeta("record"), Type: release.SecretType})
	d.create(&corev1.Secret{ObjectMeta: objectMeta("credentials")})
	d.dependsOn(valuesfrom.SecretKind, "credentials")
	d.startKind(d.ctx, appKind)
	d.expectWaits("")
	d.dependsOn(valuesfrom.SecretKind, "record")
	d.expectWaits("not found")
}

func TestDependencyWatches_MissingPermission(t *testing.T) {
	env := testenv.Shared(t)
	user, err := env.AddUser(envtest.User{Name: "restricted"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := newDependent(t, user.Config(), configMaps)
	d.dependsOn(configMaps, "object")
	d.startKind(d.ctx, appKind)
	d.expectWaits(`the operator lacks the permission: add to the rules of the operator's role: {apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"]}`)
}

// TestDependencyWatches_LostPermission expects that a dependency is not ready while its watch is
// forbidden, although the watch has worked before.
func TestDependencyWatches_LostPermission(t *testing.T) {
	env := testenv.Shared(t)
	config := rest.CopyConfig(env.Config)
	var forbidden atomic.Bool
	var mu sync.Mutex
	cut := func() {}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return leader.RoundTripFunc(func(request *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(request.URL.Path, "/configmaps") || request.Method != http.MethodGet {
				return next.RoundTrip(request)
			}
			if forbidden.Load() {
				body := `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no"}`
				return &http.Response{
					StatusCode: http.StatusForbidden, Request: request, Body: io.NopCloser(strings.NewReader(body)),
					Header: http.Header{"Content-Type": {"application/json"}},
				}, nil
			}
			ctx, cancel := context.WithCancel(request.Context())
			mu.Lock()
			defer mu.Unlock()
			cut = cancel
			return next.RoundTrip(request.WithContext(ctx))
		})
	})
	d := newDependent(t, config, configMaps)
	d.create(&corev1.ConfigMap{ObjectMeta: objectMeta("object")})
	d.dependsOn(configMaps, "object")
	d.startKind(d.ctx, appKind)
	d.expectWaits("")
	forbidden.Store(true)
	mu.Lock()
	cut()
	mu.Unlock()
	d.expectWaits(`the operator lacks the permission: add to the rules of the operator's role: {apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"]}`)
	forbidden.Store(false)
	d.expectWaits("")
}

// TestOutage_EndsWithoutFailures expects that the failures of a watch count as ended soon after
// one failure, and not between the later attempts of a reflector.
func TestOutage_EndsWithoutFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o outage
		var ended atomic.Int32
		o.again(func() { ended.Add(1) })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if ended.Load() != 1 {
			t.Errorf("after one failure, ended %d times", ended.Load())
		}
		o = outage{}
		for wait := 800 * time.Millisecond; wait < 30*time.Second; wait *= 2 {
			o.again(func() { ended.Add(1) })
			time.Sleep(2 * wait)
		}
		o.again(func() { ended.Add(1) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if ended.Load() != 1 {
			t.Errorf("ended %d times during the failures", ended.Load()-1)
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if ended.Load() != 2 {
			t.Errorf("ended %d times after the failures", ended.Load()-1)
		}
	})
}

// TestDependencyWatches_DiscoveryFails expects that a watch starts when the API server
// answers again.
func TestDependencyWatches_DiscoveryFails(t *testing.T) {
	env := testenv.Shared(t)
	config := rest.CopyConfig(env.Config)
	var requests atomic.Int32
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return leader.RoundTripFunc(func(request *http.Request) (*http.Response, error) {
			if request.URL.Path == "/api/v1" && requests.Add(1) == 1 {
				return nil, errors.New("the network is down")
			}
			return next.RoundTrip(request)
		})
	})
	d := newDependent(t, config, configMaps)
	d.dependsOn(configMaps, "object")
	d.startKind(d.ctx, appKind)
	d.expectWaits("the network is down")
	d.expectWaits("not found")
}

// laterGroups counts the groups of TestDependencyWatches_KindServedLater, whose runs share an
// API server.
var laterGroups atomic.Int32

// TestDependencyWatches_KindServedLater installs the CRD after the watch was started. The
// kind is cluster-scoped, and the operator may not watch all of its namespaces.
func TestDependencyWatches_KindServedLater(t *testing.T) {
	env := testenv.Shared(t)
	gvk := schema.GroupVersionKind{Group: fmt.Sprintf("later-%d.example.com", laterGroups.Add(1)), Version: "v1", Kind: "Leaf"}
	d := newDependent(t, env.Config, gvk)
	for _, scope := range d.scopes {
		scope.ready = newLatch()
		scope.forbidden.set()
	}
	d.dependsOn(gvk, "leaf")
	d.startKind(d.ctx, appKind)
	d.expectWaits(fmt.Sprintf("no matches for kind %q in version %q", gvk.Kind, gvk.GroupVersion()))
	anything := true
	if _, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: "leaves." + gvk.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Leaf", Plural: "leaves"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}},
			}},
		},
	}}}); err != nil {
		t.Fatal(err)
	}
	key := dependencies.Key{GroupKind: appKind.GVK().GroupKind()}
	d.store.Set(dependencies.User{Key: key, UID: "app"}, []dependencies.Ref{{Kind: gvk, Name: "leaf"}})
	d.retryUnserved()
	d.expectWaits("not found")
	leaf := &unstructured.Unstructured{}
	leaf.SetGroupVersionKind(gvk)
	leaf.SetName("leaf")
	leaf.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": "growing"}}}
	d.create(leaf)
	d.expectWaits("growing")
}

// TestDependencyWatches_KindBeginsAndEndsToBeServed expects that a kind has exactly one
// watch: that of its controller, or that of its dependents.
func TestDependencyWatches_KindBeginsAndEndsToBeServed(t *testing.T) {
	env := testenv.Shared(t)
	d := newDependent(t, env.Config, configMaps)
	d.create(&corev1.ConfigMap{ObjectMeta: objectMeta("object")})
	d.dependsOn(configMaps, "object")
	d.serve(appKind)
	d.startKind(d.ctx, appKind)
	d.expectWaits("")

	kind := kindOf(configMaps)
	d.serve(kind)
	d.expectWaits("the objects are not listed yet")
	d.unwatched(kind, "no permission")
	d.expectWaits("no permission")
	d.startKind(d.ctx, appKind)
	if keys := slices.Collect(maps.Keys(d.running)); len(keys) > 0 {
		t.Errorf("watches %v", keys)
	}
	filled, err := d.startCache(d.ctx, d.cacheOptions(d.scopes[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.feedServed(d.ctx, kind, []cache.Cache{filled}); err != nil {
		t.Fatal(err)
	}
	d.expectWaits("the operator has not reconciled it yet")

	d.remove(configMaps.GroupKind(), []*kindState{{gk: appKind.GVK().GroupKind(), kind: appKind}})
	d.expectWaits("")
	if keys := slices.Collect(maps.Keys(d.running)); !slices.Equal(keys, []schema.GroupVersionKind{configMaps}) {
		t.Errorf("watches %v", keys)
	}
}

// TestDependencyWatches_DependentsAreKnown expects that a deletion waits until all custom
// resources of a kind that may depend on it were reconciled, or the kind has none.
func TestDependencyWatches_DependentsAreKnown(t *testing.T) {
	env := testenv.Shared(t)
	d := newDependent(t, env.Config, configMaps)
	appOfConfigMaps := kindOf(configMaps)
	d.keysOf = func(catalog.Kind) []schema.GroupVersionKind { return []schema.GroupVersionKind{valuesfrom.SecretKind} }
	object := &corev1.ConfigMap{ObjectMeta: objectMeta("object")}
	d.create(object)
	secret := dependencies.Key{GroupKind: valuesfrom.SecretKind.GroupKind(), NamespacedName: types.NamespacedName{Namespace: "default", Name: "s"}}
	expectBlocked := func(want bool) {
		t.Helper()
		if blocking, _ := d.store.Dependents(secret, time.Now()); (len(blocking) > 0) != want {
			t.Errorf("blocked by %v, want any: %t", blocking, want)
		}
	}
	d.serve(appOfConfigMaps)
	expectBlocked(true)
	d.waits(appOfConfigMaps)
	expectBlocked(false)

	d.serve(appOfConfigMaps)
	filled, err := d.startCache(d.ctx, d.cacheOptions(d.scopes[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.feedServed(d.ctx, appOfConfigMaps, []cache.Cache{filled}); err != nil {
		t.Fatal(err)
	}
	expectBlocked(true)
	list := &corev1.ConfigMapList{}
	if err := d.List(d.ctx, list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		expectBlocked(true)
		d.store.Forget(list.Items[i].GetUID())
	}
	expectBlocked(false)
}
