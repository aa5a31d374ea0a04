package observed

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

var (
	podGVK = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	pods   = NewWatch(podGVK, map[string]string{"app": "podset"}, []string{"release"})
)

// recordingStore is a Store that records which users it notifies.
type recordingStore struct {
	*Store
	handler  cache.ResourceEventHandler
	notified []string
}

func newRecordingStore() *recordingStore {
	w := &recordingStore{}
	w.Store = NewStore(func(user types.UID) { w.notified = append(w.notified, string(user)) })
	w.handler = w.Handler(pods)
	return w
}

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
	objects, missing := w.Select(user, []Selection{{Watch: pods, Name: "pods", Namespace: namespace, Labels: map[string]string{"release": release}}})
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
	w.Synced(pods)
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
	w.Synced(pods)
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
	w.Synced(pods)
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
	if !w.Failed(pods, "forbidden") || w.Failed(pods, "forbidden") {
		t.Error("a failure is new exactly once")
	}
	w.expectNotified(t, "web")
	if why := w.selectPods("web", "a", "web"); why != "Pod: forbidden" {
		t.Error(why)
	}
	w.Synced(pods)
	w.Synced(pods)
	w.expectNotified(t, "web")
	if got := w.selectPods("web", "a", "web"); got != "" {
		t.Error(got)
	}
	// A failure after the first list is ignored.
	w.Failed(pods, "away")
	w.expectNotified(t)
	if got := w.selectPods("web", "a", "web"); got != "" {
		t.Error(got)
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

func TestCompact(t *testing.T) {
	o := pod("a", "b", "c")
	if err := unstructured.SetNestedField(o.Object, []any{map[string]any{"manager": "m"}}, "metadata", "managedFields"); err != nil {
		t.Fatal(err)
	}
	o.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "keep": "me"})
	if _, err := Compact(o); err != nil {
		t.Fatal(err)
	}
	if o.GetManagedFields() != nil || fmt.Sprint(o.GetAnnotations()) != "map[keep:me]" || o.GetResourceVersion() != "1" {
		t.Errorf("%v", o.Object)
	}
	if other, err := Compact("text"); other != "text" || err != nil {
		t.Errorf("%v, %v", other, err)
	}
}
