package dependencies

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

var (
	appGVK    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "App"}
	dbGVK     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}
	bucketGVK = schema.GroupVersionKind{Group: "storage.example.org", Version: "v1", Kind: "Bucket"}
	secretGVK = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// epoch is the time in the tests.
var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// recordingStore is a Store with a clock, whose notifications are recorded. It serves the
// kinds App and Database, and does not serve Bucket and Secret.
type recordingStore struct {
	*Store
	time     time.Time
	version  int
	notified []string
}

func newRecordingStore() *recordingStore {
	r := &recordingStore{time: epoch}
	r.Store = NewStore(func(uid types.UID) { r.notified = append(r.notified, string(uid)) })
	r.now = func() time.Time { return r.time }
	r.Serve(appGVK.GroupKind(), []schema.GroupKind{appGVK.GroupKind(), dbGVK.GroupKind()}, nil)
	r.Serve(dbGVK.GroupKind(), nil, nil)
	for _, gvk := range []schema.GroupVersionKind{appGVK, dbGVK, bucketGVK, secretGVK} {
		r.Feed(gvk).Synced()
	}
	r.Expect(appGVK.GroupKind(), nil)
	r.Expect(dbGVK.GroupKind(), nil)
	return r
}

// put passes an object to the store, with a new resourceVersion.
func (r *recordingStore) put(o *unstructured.Unstructured) *unstructured.Unstructured {
	r.version++
	o.SetResourceVersion(strconv.Itoa(r.version))
	r.handler(o).OnAdd(o, false)
	return o
}

func (r *recordingStore) remove(o *unstructured.Unstructured) {
	r.handler(o).OnDelete(cache.DeletedFinalStateUnknown{Obj: o})
}

func (r *recordingStore) handler(o *unstructured.Unstructured) cache.ResourceEventHandler {
	return r.Feed(o.GroupVersionKind()).Handler()
}

// settled passes an object to the store, and ends its hold.
func (r *recordingStore) settled(o *unstructured.Unstructured) *unstructured.Unstructured {
	r.put(o)
	r.Settle(o.GetUID(), o.GetResourceVersion())
	return o
}

// expectNotified checks which custom resources were notified since the last call.
func (r *recordingStore) expectNotified(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(r.notified)
	if !slices.Equal(r.notified, want) {
		t.Errorf("notified %v, want %v", r.notified, want)
	}
	r.notified = nil
}

// expectWaits checks the message of what an App waits for, "" for nothing.
func (r *recordingStore) expectWaits(t *testing.T, app, want string) {
	t.Helper()
	got := ""
	if waits := r.Check(types.UID("App-"+app), r.time).Waits; waits != nil {
		got = strings.TrimPrefix(waits.Key.Name+waits.Selector+": "+waits.Message, ": ")
	}
	if got != want {
		t.Errorf("%s waits for %q, want %q", app, got, want)
	}
}

// app returns the App with a name in the namespace "a", with a release.
func app(name string) User {
	return User{Key: keyOf(appGVK, name), UID: types.UID("App-" + name), Released: true, Bound: 5 * time.Minute}
}

func keyOf(gvk schema.GroupVersionKind, name string) Key {
	return Key{gvk.GroupKind(), types.NamespacedName{Namespace: "a", Name: name}}
}

func ref(gvk schema.GroupVersionKind, name string) Ref {
	return Ref{Kind: gvk, Namespace: "a", Name: name}
}

func selector(gvk schema.GroupVersionKind, text string) Ref {
	return Ref{Kind: gvk, Namespace: "a", Selector: text}
}

// object returns a ready object in the namespace "a", of generation 2.
func newObject(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace("a")
	o.SetName(name)
	o.SetUID(types.UID(gvk.Kind + "-" + name))
	o.SetGeneration(2)
	return withStatus(o, 2, "True", "")
}

func labeled(o *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetLabels(map[string]string{key: value})
	return o
}

func withStatus(o *unstructured.Unstructured, observed int64, ready, message string) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.Object["status"] = map[string]any{
		"observedGeneration": observed,
		"conditions":         []any{map[string]any{"type": "Ready", "status": ready, "reason": "Reason", "message": message}},
	}
	return o
}
