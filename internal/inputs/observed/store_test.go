package observed

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/inputs"
)

var (
	podGVK = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	pods   = NewWatch(podGVK, map[string]string{"app": "podset"}, []string{"release"})
)

// recordingStore is a Store that records which users it notifies.
type recordingStore struct {
	*Store
	feed     *Feed
	handler  cache.ResourceEventHandler
	notified []string
	// live are the objects in the API server by name, and reads those that were read.
	live  map[string]*unstructured.Unstructured
	reads []string
}

func newRecordingStore() *recordingStore {
	w := &recordingStore{}
	read := func(_ context.Context, _ schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error) {
		w.reads = append(w.reads, name.Name)
		return w.live[name.Name].DeepCopy(), nil
	}
	w.Store = NewStore(read, func(user types.UID) { w.notified = append(w.notified, string(user)) })
	w.limits = inputs.Limits{Object: 4 << 10, Namespace: 8 << 10, Total: 16 << 10}
	w.budget = inputs.NewBudget(w.limits)
	w.feed = w.Feed(pods)
	w.handler = transformed{w.feed.Transform, w.feed.Handler()}
	return w
}

// transformed is a handler that transforms objects first, as an informer does.
type transformed struct {
	transform cache.TransformFunc
	cache.ResourceEventHandler
}

func (h transformed) reduce(o any) any {
	if unknown, is := o.(cache.DeletedFinalStateUnknown); is {
		return cache.DeletedFinalStateUnknown{Obj: h.reduce(unknown.Obj)}
	}
	kept, err := h.transform(o.(*unstructured.Unstructured).DeepCopy())
	if err != nil {
		panic(err)
	}
	return kept
}

// OnAdd implements the interface.
func (h transformed) OnAdd(o any, initial bool) { h.ResourceEventHandler.OnAdd(h.reduce(o), initial) }

// OnUpdate implements the interface.
func (h transformed) OnUpdate(_, o any) { h.ResourceEventHandler.OnUpdate(nil, h.reduce(o)) }

// OnDelete implements the interface.
func (h transformed) OnDelete(o any) { h.ResourceEventHandler.OnDelete(h.reduce(o)) }

// expectNotified checks which users were notified since the last call.
func (w *recordingStore) expectNotified(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(w.notified)
	if !slices.Equal(w.notified, want) {
		t.Errorf("notified %v, want %v", w.notified, want)
	}
	w.notified = nil
}

// selectPods returns the names of the pods of a release, or why they are missing.
func (w *recordingStore) selectPods(user types.UID, namespace, release string) string {
	objects, missing := w.Select(context.Background(), user, []Selection{{Watch: pods, Name: "pods", Namespace: namespace, Labels: map[string]string{"release": release}}})
	if why, ok := missing["pods"]; ok {
		return why
	}
	var names []string
	found, _ := objects["pods"].([]any)
	for _, o := range found {
		name, _, _ := unstructured.NestedString(o.(map[string]any), "metadata", "name")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func pod(namespace, name, release string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{"app": "podset", "release": release})
	o.SetResourceVersion("1")
	return o
}

func TestStore_SelectsByNamespaceAndLabels(t *testing.T) {
	w := newRecordingStore()
	for i, p := range []*unstructured.Unstructured{pod("a", "web-2", "web"), pod("a", "web-1", "web"), pod("a", "api-1", "api"), pod("b", "web-3", "web")} {
		w.handler.OnAdd(p, i < 2)
	}
	w.feed.Synced()
	for _, test := range []struct{ namespace, release, want string }{
		{"a", "web", "web-1 web-2"}, {"a", "api", "api-1"}, {"b", "web", "web-3"}, {"b", "api", ""}, {"c", "web", ""}, {"a", "", ""},
	} {
		if got := w.selectPods("u", test.namespace, test.release); got != test.want {
			t.Errorf("%s/%s selects %q, want %q", test.namespace, test.release, got, test.want)
		}
	}
}

func TestStore_NotifiesUsersOfChangedObjects(t *testing.T) {
	w := newRecordingStore()
	w.feed.Synced()
	for user, release := range map[types.UID]string{"web": "web", "twin": "web", "api": "api"} {
		w.selectPods(user, "a", release)
	}
	w.selectPods("elsewhere", "b", "web")
	first := pod("a", "web-1", "web")
	w.handler.OnAdd(first, false)
	w.expectNotified(t, "twin", "web")

	// An unchanged object, as after a restart of the watch.
	w.handler.OnUpdate(first, first)
	again := pod("a", "web-1", "web")
	again.SetResourceVersion("2")
	w.handler.OnUpdate(first, again)
	w.expectNotified(t)

	changed := pod("a", "web-1", "web")
	changed.Object["status"] = map[string]any{"phase": "Running"}
	w.handler.OnUpdate(again, changed)
	w.expectNotified(t, "twin", "web")
	annotated := changed.DeepCopy()
	annotated.SetAnnotations(map[string]string{"a": "b"})
	w.handler.OnUpdate(changed, annotated)
	w.expectNotified(t, "twin", "web")

	// The object moves to another release: users of both are notified.
	w.handler.OnUpdate(annotated, pod("a", "web-1", "api"))
	w.expectNotified(t, "api", "twin", "web")
	if web, api := w.selectPods("web", "a", "web"), w.selectPods("api", "a", "api"); web != "" || api != "web-1" {
		t.Errorf("web selects %q and api %q", web, api)
	}

	w.handler.OnDelete(cache.DeletedFinalStateUnknown{Obj: pod("a", "web-1", "api")})
	w.expectNotified(t, "api")
	w.handler.OnDelete(pod("a", "web-1", "api"))
	w.expectNotified(t)

	// Users with another selection now, and forgotten users, are not notified.
	w.selectPods("web", "a", "db")
	w.Forget("twin")
	w.handler.OnAdd(pod("a", "web-2", "web"), false)
	w.expectNotified(t)
	w.handler.OnAdd(pod("a", "db-1", "db"), false)
	w.expectNotified(t, "web")
}

func TestStore_ForgetsDeletedObjectsAndUsers(t *testing.T) {
	w := newRecordingStore()
	w.feed.Synced()
	for i := range 10 {
		user := types.UID(strconv.Itoa(i))
		w.selectPods(user, "a", string(user))
		w.handler.OnAdd(pod("a", "p"+string(user), string(user)), false)
	}
	for i := range 10 {
		w.handler.OnDelete(pod("a", fmt.Sprintf("p%d", i), strconv.Itoa(i)))
		w.Forget(types.UID(strconv.Itoa(i)))
	}
	if len(w.objects)+len(w.at)+len(slices.Collect(w.users.All())) > 0 {
		t.Errorf("left over: %v %v %v", w.objects, w.at, slices.Collect(w.users.All()))
	}
}

func TestStore_ReportsUnlistedWatches(t *testing.T) {
	w := newRecordingStore()
	if why := w.selectPods("web", "a", "web"); why != "Pod: the objects are not listed yet" {
		t.Error(why)
	}
	if !w.feed.Failed("forbidden") || w.feed.Failed("forbidden") {
		t.Error("a failure is new exactly once")
	}
	w.expectNotified(t, "web")
	if why := w.selectPods("web", "a", "web"); why != "Pod: forbidden" {
		t.Error(why)
	}
	w.feed.Synced()
	w.feed.Synced()
	w.expectNotified(t, "web")
	if got := w.selectPods("web", "a", "web"); got != "" {
		t.Error(got)
	}
	// A failure after the first list is ignored.
	w.feed.Failed("away")
	w.expectNotified(t)
	if got := w.selectPods("web", "a", "web"); got != "" {
		t.Error(got)
	}
}

// TestFeed_EndDropsObjects: a watch that has ended leaves nothing, neither objects nor bytes in the
// budget, and what its informer still delivers is ignored.
func TestFeed_EndDropsObjects(t *testing.T) {
	w := newRecordingStore()
	w.handler.OnAdd(pod("a", "web-1", "web"), true)
	w.handler.OnAdd(pod("a", "web-2", "web"), true)
	w.feed.Synced()
	if got := w.selectPods("web", "a", "web"); got != "web-1 web-2" {
		t.Error(got)
	}
	w.feed.End()
	w.handler.OnUpdate(nil, pod("a", "web-1", "web"))
	w.feed.Failed("away")
	w.feed.Synced()
	if why := w.selectPods("web", "a", "web"); why != "Pod: the objects are not listed yet" {
		t.Error(why)
	}
	if len(w.objects)+len(w.at) > 0 {
		t.Errorf("left over: %v %v", w.objects, w.at)
	}
	next := w.Feed(pods)
	next.Synced()
	if got := w.selectPods("web", "a", "web"); got != "" {
		t.Errorf("the next watch begins with %q", got)
	}
}

func TestNewWatch_EqualForEqualSelectors(t *testing.T) {
	a := NewWatch(podGVK, map[string]string{"x": "1", "y": "2"}, []string{"b", "a"})
	b := NewWatch(podGVK, map[string]string{"y": "2", "x": "1"}, []string{"a", "b"})
	if a != b {
		t.Errorf("%v is not %v", a, b)
	}
	for want, w := range map[string]Watch{
		"a,b,x=1,y=2": a,
		"x=1":         NewWatch(podGVK, map[string]string{"x": "1"}, nil),
		"x=":          NewWatch(podGVK, map[string]string{"x": ""}, nil),
		"b":           NewWatch(podGVK, nil, []string{"b"}),
	} {
		selector, err := w.Selector()
		if err != nil || selector.String() != want {
			t.Errorf("%q: %v, %v", want, selector, err)
		}
	}
	fixed := NewWatch(podGVK, map[string]string{"x": "1"}, nil)
	if fixed.bucket("a", map[string]string{"x": "1", "z": "2"}) != fixed.bucket("a", nil) {
		t.Error("a label that the watch does not select by changes the bucket")
	}
}

func TestTransform_RemovesWhatExpressionsDoNotNeed(t *testing.T) {
	w := newRecordingStore()
	o := pod("a", "b", "c")
	if err := unstructured.SetNestedField(o.Object, []any{map[string]any{"manager": "m"}}, "metadata", "managedFields"); err != nil {
		t.Fatal(err)
	}
	o.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "keep": "me"})
	kept, err := w.Feed(pods).Transform(o.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	whole := unstructured.Unstructured{Object: kept.(*Object).content}
	if whole.GetManagedFields() != nil || fmt.Sprint(whole.GetAnnotations()) != "map[keep:me]" || whole.GetResourceVersion() != "1" {
		t.Errorf("%v", whole.Object)
	}
	o.Object["status"] = map[string]any{"phase": "Running", "reason": "x", "list": []any{"a"}}
	some := pods.Reading([][]string{{"status", "phase"}, {"spec"}, {"status", "list", "a"}, {"spec", "a"}, {"none"}})
	kept, err = w.Feed(some).Transform(o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"metadata": map[string]any{"name": "b", "namespace": "a"}, "spec": map[string]any{},
		"status": map[string]any{"phase": "Running", "list": []any{"a"}},
	}
	if diff := cmp.Diff(want, kept.(*Object).content); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pods.Reading([][]string{{"spec"}, {}}) != pods {
		t.Error("a whole object is read with fields")
	}
	if other, err := w.Feed(pods).Transform("text"); other != "text" || err != nil {
		t.Errorf("%v, %v", other, err)
	}
}

// big returns a pod that takes about the given number of bytes.
func (w *recordingStore) big(namespace, name, release string, size int) *unstructured.Unstructured {
	o := pod(namespace, name, release)
	o.SetUID(types.UID(name))
	o.Object["spec"] = map[string]any{"x": strings.Repeat("x", size)}
	if w.live == nil {
		w.live = map[string]*unstructured.Unstructured{}
	}
	w.live[name] = o
	return o
}

func TestStore_ObjectAboveLimitIsNotKept(t *testing.T) {
	w := newRecordingStore()
	w.feed.Synced()
	large := w.big("a", "large", "web", 1<<20)
	w.handler.OnAdd(large, true)
	w.handler.OnAdd(pod("a", "small", "web"), true)
	if o := w.at[object{pods, types.NamespacedName{Namespace: "a", Name: "large"}}]; o.content != nil {
		t.Error("the content of the large object is kept")
	}
	if got, want := w.selectPods("u", "a", "web"), "Pod large is not read: takes more than 4 KiB of the operator's memory: make it smaller"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := w.selectPods("u", "b", "web"); got != "" {
		t.Errorf("another namespace: %q", got)
	}
	w.expectNotified(t)
	w.handler.OnUpdate(large, w.big("a", "large", "web", 10))
	w.expectNotified(t)
	w.selectPods("u", "a", "web")
	w.handler.OnUpdate(nil, w.big("a", "large", "web", 20))
	w.expectNotified(t, "u")
	if got := w.selectPods("u", "a", "web"); got != "large small" || len(w.reads) > 0 {
		t.Errorf("selects %q after reading %v", got, w.reads)
	}
}

func TestStore_RefusesAboveLimitOfNamespaceUntilThereIsRoom(t *testing.T) {
	w := newRecordingStore()
	w.feed.Synced()
	for i := range 4 {
		w.handler.OnAdd(w.big("a", strconv.Itoa(i), "web", 1500), true)
	}
	w.handler.OnAdd(w.big("b", "b", "web", 2000), true)
	got := w.selectPods("u", "a", "web")
	if !strings.Contains(got, `namespace "a" exceeds the limit of 8 KiB`) {
		t.Errorf("got %q", got)
	}
	if got := w.selectPods("v", "b", "web"); got != "b" {
		t.Errorf("another namespace selects %q", got)
	}
	if len(w.reads) > 0 {
		t.Errorf("read %v without room for them", w.reads)
	}
	w.handler.OnDelete(w.live["0"])
	w.handler.OnUpdate(nil, w.big("a", "1", "web", 10))
	w.expectNotified(t, "u", "u")
	for range 3 {
		got = w.selectPods("u", "a", "web")
	}
	if got != "1 2 3" {
		t.Errorf("selects %q", got)
	}
	if reads := len(w.reads); reads == 0 || reads > 3 {
		t.Errorf("read %v", w.reads)
	}
	w.notified, w.reads = nil, nil
	w.selectPods("u", "a", "web")
	if len(w.reads) > 0 {
		t.Errorf("read %v again", w.reads)
	}
}

// TestStore_ChargesWhatItKeeps checks that all events, in any order, leave exactly the
// charges of the objects that the Store keeps, and never more than the limits.
func TestStore_ChargesWhatItKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRecordingStore()
		w.feed.Synced()
		serial := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "name")
			live := w.live[name]
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				if live != nil {
					w.handler.OnDelete(live)
					delete(w.live, name)
				}
			case 1:
				w.selectPods("u", "a", "web")
			default:
				serial++
				o := w.big("a", name, rapid.SampledFrom([]string{"web", "api"}).Draw(t, "release"), rapid.IntRange(0, 4000).Draw(t, "size"))
				o.SetResourceVersion(strconv.Itoa(serial))
				if live != nil {
					o.SetUID(live.GetUID())
				}
				if live == nil || rapid.Bool().Draw(t, "new") {
					o.SetUID(types.UID(strconv.Itoa(serial)))
				}
				w.handler.OnUpdate(nil, o)
			}
			kept := 0
			for _, o := range w.at {
				if o.content != nil {
					kept += o.bytes
				}
			}
			if charged := w.budget.Charged("a"); charged != kept || kept > w.limits.Namespace {
				t.Fatalf("charged %d bytes for %d, limit %d", charged, kept, w.limits.Namespace)
			}
		}
	})
}
