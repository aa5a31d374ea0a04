package inventory

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory/health"
	"github.com/chartwright/chartwright/internal/testenv"
)

// badKind cannot be watched, and the lookup of hangKind blocks.
var (
	badKind  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Bad"}
	hangKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Hang"}
	goodKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Good"}
)

// fakeCache returns synced informers, and an error for badKind until healed is closed.
type fakeCache struct {
	cache.Cache
	healed chan struct{}
}

type fakeInformer struct{ cache.Informer }

type synced struct{ done chan struct{} }

func (s synced) Name() string          { return "" }
func (s synced) Done() <-chan struct{} { return s.done }

type registration struct{}

func (registration) HasSynced() bool { return true }
func (registration) HasSyncedChecker() toolscache.DoneChecker {
	done := make(chan struct{})
	close(done)
	return synced{done}
}

func (fakeInformer) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return registration{}, nil
}

func (c fakeCache) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if object.GetObjectKind().GroupVersionKind() == badKind {
		select {
		case <-c.healed:
		default:
			return nil, errors.New("no kind is registered")
		}
	}
	return fakeInformer{}, nil
}

// unwatchable is an inventory that cannot watch badKind and hangKind until heal closes
// healed. It belongs in a synctest bubble.
type unwatchable struct {
	Inventory
	healed  chan struct{}
	heal    func()
	changed chan types.UID
	retries chan func()
}

func newUnwatchable(t *testing.T) *unwatchable {
	t.Helper()
	u := &unwatchable{healed: make(chan struct{}), changed: make(chan types.UID, 100), retries: make(chan func(), 100)}
	index := NewIndex(func(types.UID) {}, func(owner types.UID) { u.changed <- owner })
	index.SetReleaseNamespace(web, "default")
	u.Inventory = Inventory{Index: index, Watches: NewWatches(index, func(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
		if gvk == hangKind {
			<-u.healed
		}
		if gvk.Version == "" {
			return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind()}
		}
		return &meta.RESTMapping{Resource: gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s"), Scope: meta.RESTScopeNamespace, GroupVersionKind: gvk}, nil
	})}
	u.after = func(_ time.Duration, do func()) *time.Timer {
		u.retries <- do
		return time.NewTimer(time.Hour)
	}
	u.AddNamespace("", fakeCache{healed: u.healed})
	u.heal = sync.OnceFunc(func() { close(u.healed) })
	t.Cleanup(u.heal)
	return u
}

// waitForOwner waits for a notification of the owner.
func (u *unwatchable) waitForOwner(t *testing.T, owner types.UID) {
	t.Helper()
	for testenv.Receive(t, "the notification of "+string(owner), u.changed) != owner {
		// Other owners may be notified first.
		continue
	}
}

func kindsOf(unwatched []Unwatched) (kinds []string) {
	for _, u := range unwatched {
		kinds = append(kinds, u.Kind)
	}
	return kinds
}

// Objects of a kind that cannot be watched count as ready. The owners are notified, and the
// watch is retried.
func TestEnsureWatched_WatchesOtherKindsWhileOneFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnwatchable(t)
		began := time.Now()
		err := u.EnsureWatched(t.Context(), web, "default", []schema.GroupVersionKind{badKind, hangKind, goodKind})
		if took := time.Since(began); took != watchStartTimeout {
			t.Errorf("EnsureWatched took %s, want %s", took, watchStartTimeout)
		}
		if !errors.Is(err, ErrUnwatched) || !strings.Contains(err.Error(), "Bad.example.com: no kind is registered") || !strings.Contains(err.Error(), "Hang.example.com: ") || strings.Contains(err.Error(), "Good") {
			t.Errorf("EnsureWatched returned %v", err)
		}
		if counts := u.Counts(); len(counts) != 1 {
			t.Errorf("got watched kinds %v, want goodKind", counts)
		}
		u.waitForOwner(t, web)
		if got := kindsOf(u.Unwatched(web, "default")); !slices.Equal(got, []string{"Bad"}) {
			t.Errorf("Unwatched returned %q", got)
		}
		if got := kindsOf(u.AllUnwatched()); !slices.Equal(got, []string{"Bad"}) {
			t.Errorf("AllUnwatched returned %q", got)
		}
		if got := u.Unwatched(other, "default"); len(got) > 0 {
			t.Errorf("Unwatched returned %v for another owner", got)
		}
		state := func(gvk schema.GroupVersionKind) apply.State {
			return apply.State{Key: apply.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: "default", Name: "a"}, UID: types.UID(gvk.Kind), ResourceVersion: "1", Owner: web, Managed: true}
		}
		bad, good := state(badKind), state(goodKind)
		u.Put(bad)
		u.Put(good)
		u.Expect(web, []apply.State{bad, good})
		if unready := u.Health(web, time.Now()).Unready; len(unready) != 1 || unready[0].Kind != "Good" {
			t.Errorf("got unready objects %v, want the object of goodKind", unready)
		}

		u.heal()
		u.Retry()
		u.waitForOwner(t, web)
		if err := u.EnsureWatched(t.Context(), web, "default", []schema.GroupVersionKind{badKind, hangKind, goodKind}); err != nil {
			t.Error(err)
		}
		if got := u.AllUnwatched(); len(got) > 0 {
			t.Errorf("AllUnwatched returned %v after the retry", got)
		}
		if unready := u.Health(web, time.Now()).Unready; len(unready) != 2 {
			t.Errorf("got unready objects %v, want both until the watch delivers them", unready)
		}
	})
}

// Permanent failures of list and watch requests are reported at once, transient ones after
// transientFor.
func TestRecordResponse_ReportsUnwatchedKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnwatchable(t)
		if err := u.EnsureWatched(t.Context(), web, "default", []schema.GroupVersionKind{goodKind}); err != nil {
			t.Fatal(err)
		}
		resource := goodKind.GroupVersion().WithResource("goods")
		for _, step := range []struct {
			status  int
			passes  time.Duration
			reports string
		}{
			{status: http.StatusForbidden, reports: "grant the operator permission to list and watch them"},
			{status: http.StatusOK},
			{status: http.StatusNotFound, reports: errNoKind.Error()},
			{status: http.StatusOK},
			{status: http.StatusInternalServerError},
			{status: http.StatusInternalServerError, passes: transientFor - time.Second},
			{status: http.StatusGone, passes: time.Hour},
			{status: http.StatusServiceUnavailable, reports: "list or watch request failed: 503 Service Unavailable; see the operator log for details"},
			{status: http.StatusTooManyRequests, reports: "list or watch request failed: 503 Service Unavailable; see the operator log for details"},
			{status: http.StatusOK},
		} {
			time.Sleep(step.passes)
			before := len(u.Unwatched(web, "default"))
			u.recordResponse("", resource, step.status)
			synctest.Wait()
			if step.status == http.StatusOK && before > 0 {
				u.waitForOwner(t, web)
			}
			reports := ""
			for _, unwatched := range u.Unwatched(web, "default") {
				reports = unwatched.Why
			}
			if reports != step.reports {
				t.Errorf("after status %d, got report %q, want %q", step.status, reports, step.reports)
			}
			for len(u.changed) > 0 {
				<-u.changed
			}
		}
		u.recordResponse("", schema.GroupVersionResource{Version: "v1", Resource: "pods"}, http.StatusForbidden)
		if got := u.AllUnwatched(); len(got) > 0 {
			t.Errorf("AllUnwatched returned %v", got)
		}
	})
}

func TestResourceOf_ParsesPath(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/configmaps":                             "/v1, Resource=configmaps",
		"/api/v1/namespaces":                             "/v1, Resource=namespaces",
		"/api/v1/namespaces/a/secrets":                   "/v1, Resource=secrets",
		"/apis/apps/v1/deployments":                      "apps/v1, Resource=deployments",
		"/apis/apps/v1/namespaces/a/deployments":         "apps/v1, Resource=deployments",
		"/apis/apps/v1/namespaces/a/deployments/web":     "",
		"/apis/apps/v1":                                  "",
		"/version":                                       "",
		"/api/v1/namespaces/a/pods/web/log":              "",
		"/apis/example.com/v1/namespaces/a/goods/b/more": "",
	} {
		got, ok := resourceOf(path)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: %s, %t, want %q", path, got, ok, want)
		}
	}
}

func TestHealthOf_RecoversFromPanic(t *testing.T) {
	odd := HealthConfig{NoStatus: func(schema.GroupVersionKind) bool { panic("odd shape") }}
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"}}}
	if found := odd.healthOf(widget); found.Ready || !found.OpenEnded || !strings.Contains(found.Message, "odd shape") {
		t.Errorf("got health %+v", found)
	}
}

// flakyCache has one informer, unless it refuses.
type flakyCache struct {
	cache.Cache
	running, refuses *bool
}

func (c flakyCache) RemoveInformer(context.Context, client.Object) error {
	*c.running = false
	return nil
}

func (c flakyCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	if *c.refuses {
		return nil, errors.New("no informer now")
	}
	*c.running = true
	return fakeInformer{}, nil
}

// A watch whose informer cannot be replaced when the health rules change is reported, and
// replaced later.
func TestSetHealthRules_RetriesFailedInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnwatchable(t)
		at := flakyCache{running: new(bool), refuses: new(bool)}
		u.caches = []namespaceCache{{cache: at}}
		u.HealthConfig.Rules = &RuleSet{}
		if err := u.EnsureWatched(t.Context(), web, "default", []schema.GroupVersionKind{goodKind}); err != nil {
			t.Fatal(err)
		}
		always, mistakes := health.Compile("true", "", "")
		if len(mistakes) > 0 {
			t.Fatal(mistakes)
		}
		*at.refuses = true
		u.SetHealthRules(t.Context(), schema.GroupKind{Kind: "Shop"}, health.Rules{goodKind.GroupKind(): always})
		u.waitForOwner(t, web)
		synctest.Wait()
		if got := kindsOf(u.Unwatched(web, "default")); !slices.Equal(got, []string{"Good"}) || *at.running {
			t.Errorf("Unwatched returned %q, the informer runs: %v", got, *at.running)
		}
		*at.refuses = false
		testenv.Receive(t, "the next attempt", u.retries)()
		if got := u.AllUnwatched(); len(got) > 0 || !*at.running {
			t.Errorf("AllUnwatched returned %v after the retry, the informer runs: %v", got, *at.running)
		}
	})
}
