package valuesfrom

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inputs"
)

// cluster is a Store with a fake API server. Tests send the events of its watch.
type cluster struct {
	*Store
	mu      sync.Mutex
	objects map[Ref]*unstructured.Unstructured
	version int
	reads   []Ref
	fails   error
	// notified are the users that the Store has notified.
	notified []types.UID
}

func newCluster() *cluster {
	c := &cluster{objects: map[Ref]*unstructured.Unstructured{}, version: 8}
	c.Store = NewStore(func(_ context.Context, ref Ref) (*unstructured.Unstructured, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reads = append(c.reads, ref)
		if c.fails != nil {
			return nil, c.fails
		}
		found, ok := c.objects[ref]
		if !ok {
			return nil, apierrors.NewNotFound(schema.GroupResource{}, ref.Name)
		}
		return found, nil
	}, func(user types.UID) { c.notified = append(c.notified, user) })
	return c
}

// put stores a Secret or ConfigMap and returns its metadata, without an event.
func (c *cluster) put(ref Ref, keys map[string]string) *metav1.PartialObjectMetadata {
	data := map[string]any{}
	for key, text := range keys {
		if ref.isSecret() {
			text = base64.StdEncoding.EncodeToString([]byte(text))
		}
		data[key] = text
	}
	return c.putObject(ref, map[string]any{"data": data})
}

// putObject stores an object and returns its metadata, without an event.
func (c *cluster) putObject(ref Ref, content map[string]any) *metav1.PartialObjectMetadata {
	c.version++
	object := &unstructured.Unstructured{Object: maps.Clone(content)}
	object.SetGroupVersionKind(ref.Kind)
	object.SetNamespace(ref.Namespace)
	object.SetName(ref.Name)
	object.SetResourceVersion(strconv.Itoa(c.version))
	c.objects[ref] = object
	return metadataOf(ref, object.GetResourceVersion())
}

func metadataOf(ref Ref, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, ResourceVersion: version}}
}

// send sends an update event.
func (c *cluster) send(ref Ref, m *metav1.PartialObjectMetadata) {
	c.Handler(ref.Kind).OnUpdate(nil, m)
}

// putAndSend stores an object and sends the event.
func (c *cluster) putAndSend(ref Ref, keys map[string]string) { c.send(ref, c.put(ref, keys)) }

// merge merges the sources of a user into an empty spec.
func (c *cluster) merge(t *testing.T, user types.UID, from ...Source) map[string]any {
	t.Helper()
	got, _, err := c.Merge(t.Context(), user, from, map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (c *cluster) expectReads(t *testing.T, n int) {
	t.Helper()
	if len(c.reads) != n {
		t.Errorf("%d reads, want %d: %v", len(c.reads), n, c.reads)
	}
	c.reads = nil
}

func (c *cluster) expectNotified(t *testing.T, users ...types.UID) {
	t.Helper()
	slices.Sort(c.notified)
	if !slices.Equal(c.notified, users) {
		t.Errorf("notified %v, want %v", c.notified, users)
	}
	c.notified = nil
}

var (
	secret    = Ref{SecretKind, "apps", "web"}
	configMap = Ref{ConfigMapKind, "apps", "web"}
	elsewhere = Ref{SecretKind, "other", "web"}
)

func whole(ref Ref) Source { return Source{At: "valuesFrom[0]", Ref: ref, Key: "values.yaml"} }

func at(ref Ref, key, path string) Source {
	return Source{At: "valuesFrom[1]", Ref: ref, Key: key, TargetPath: path}
}

func TestStore_MergesSourcesInOrder(t *testing.T) {
	c := newCluster()
	c.putAndSend(secret, map[string]string{"values.yaml": "a: {b: 1, c: 2}\nlist: [1, 2]", "password": "12"})
	c.putAndSend(configMap, map[string]string{"values.yaml": `{"a": {"b": 9007199254740993}, "list": [3]}`})
	spec := map[string]any{"a": map[string]any{"b": int64(0), "d": true}}
	got, secrets, err := c.Merge(t.Context(), "u", []Source{whole(secret), whole(configMap), at(secret, "password", "a.c")}, spec)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a":    map[string]any{"b": int64(9007199254740993), "c": "12", "d": true},
		"list": []any{int64(3)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Contains(secrets, "a: {b: 1, c: 2}") || slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(s, "9007199254740993") }) {
		t.Errorf("the secrets are %q", secrets)
	}
	// A caller cannot change the content in memory.
	got["a"].(map[string]any)["b"] = "changed"
	got["list"].([]any)[0] = "changed"
	if again := c.merge(t, "u", whole(configMap)); !cmp.Equal(again, map[string]any{"a": map[string]any{"b": int64(9007199254740993)}, "list": []any{int64(3)}}) {
		t.Errorf("the source is now %v", again)
	}
}

func TestStore_ReadsEachVersionOnce(t *testing.T) {
	c := newCluster()
	c.putAndSend(secret, map[string]string{"values.yaml": "a: 1", "more": "b"})
	for range 3 {
		c.merge(t, "one", whole(secret))
		c.merge(t, "two", whole(secret))
	}
	c.expectReads(t, 1)
	// Another key of the same object.
	c.merge(t, "two", at(secret, "more", "b"))
	c.merge(t, "one", whole(secret))
	c.expectReads(t, 1)
	c.putAndSend(secret, map[string]string{"values.yaml": "a: 2", "more": "c"})
	c.expectNotified(t, "one", "two")
	if got := c.merge(t, "one", whole(secret)); got["a"] != int64(2) {
		t.Errorf("%v", got)
	}
	if got := c.merge(t, "two", at(secret, "more", "b")); got["b"] != "c" {
		t.Errorf("%v", got)
	}
	c.expectReads(t, 1)
}

func TestStore_UsesNewerReadThanWatch(t *testing.T) {
	c := newCluster()
	c.putAndSend(secret, map[string]string{"values.yaml": "a: 1"})
	late := c.put(secret, map[string]string{"values.yaml": "a: 2"})
	for range 2 {
		if got := c.merge(t, "u", whole(secret)); got["a"] != int64(2) {
			t.Errorf("%v", got)
		}
	}
	c.send(secret, late)
	c.merge(t, "u", whole(secret))
	c.expectReads(t, 1)
	// An unchanged object, as after a restart of the watch.
	c.notified = nil
	c.send(secret, late)
	c.expectNotified(t)
}

// Another watch can be faster, see Store.Saw.
func TestStore_UsesVersionOfAnotherWatch(t *testing.T) {
	c := newCluster()
	c.Saw(secret, "20")
	if _, _, err := c.Merge(t.Context(), "u", []Source{whole(secret)}, map[string]any{}); err == nil {
		t.Error("the object exists before its own watch delivers it")
	}
	c.putAndSend(secret, map[string]string{"values.yaml": "a: 1"})
	c.merge(t, "u", whole(secret))
	before := c.Versions([]Source{whole(secret)})
	newer := c.put(secret, map[string]string{"values.yaml": "a: 2"})
	c.Saw(secret, "1")
	if after := c.Versions([]Source{whole(secret)}); after != before {
		t.Errorf("an older version changes the versions to %s", after)
	}
	c.Saw(secret, newer.ResourceVersion)
	if after := c.Versions([]Source{whole(secret)}); after == before {
		t.Error("a newer version does not change the versions")
	}
	if got := c.merge(t, "u", whole(secret)); got["a"] != int64(2) {
		t.Errorf("%v", got)
	}
}

func TestStore_NotifiesUsersOfChangedSources(t *testing.T) {
	c := newCluster()
	c.putAndSend(secret, map[string]string{"values.yaml": ""})
	c.putAndSend(configMap, map[string]string{"values.yaml": ""})
	c.merge(t, "a", whole(secret), at(secret, "values.yaml", "text"))
	c.merge(t, "b", whole(secret), whole(configMap))
	c.merge(t, "c", whole(configMap), Source{Ref: elsewhere, Optional: true})
	c.expectNotified(t)
	c.putAndSend(secret, nil)
	c.expectNotified(t, "a", "b")
	c.putAndSend(configMap, nil)
	c.expectNotified(t, "b", "c")
	// A new object.
	c.putAndSend(elsewhere, nil)
	c.expectNotified(t, "c")
	// A deleted object, with and without a delete event.
	c.Handler(secret.Kind).OnDelete(metadataOf(secret, "20"))
	c.expectNotified(t, "a", "b")
	c.Handler(configMap.Kind).OnDelete(cache.DeletedFinalStateUnknown{Obj: metadataOf(configMap, "20")})
	c.expectNotified(t, "b", "c")
	c.reads = nil
	if _, _, err := c.Merge(t.Context(), "a", []Source{whole(secret)}, map[string]any{}); err == nil {
		t.Error("a deleted source can be used")
	}
	c.expectReads(t, 0)
	// Former users.
	c.Forget("a")
	c.putAndSend(configMap, map[string]string{"values.yaml": ""})
	c.notified = nil
	c.merge(t, "b", whole(configMap))
	c.putAndSend(secret, nil)
	c.expectNotified(t)
}

func TestStore_DropsUnusedContent(t *testing.T) {
	c := newCluster()
	c.putAndSend(secret, map[string]string{"values.yaml": "a: 1", "unused": "canary"})
	c.putAndSend(configMap, map[string]string{"values.yaml": ""})
	c.merge(t, "a", whole(secret), whole(configMap))
	if keys := slices.Collect(maps.Keys(c.Store.objects[secret].parts)); !slices.Equal(keys, []partID{{key: "values.yaml"}}) {
		t.Errorf("the keys in memory are %v", keys)
	}
	c.merge(t, "a", whole(configMap))
	c.Forget("a")
	if len(c.Store.objects)+len(slices.Collect(c.users.All())) > 0 {
		t.Errorf("left over: objects %v, users %v", c.Store.objects, slices.Collect(c.users.All()))
	}
}

func TestStore_ReportsUnusableSources(t *testing.T) {
	const canary = "canary-3f9a"
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "web", errors.New("no"))
	for _, test := range []struct {
		name   string
		text   string // of key values.yaml; empty means that the object does not exist
		from   Source
		fails  error
		reason string
		parts  []string // of the error
	}{
		{"no object", "", whole(secret), nil, api.ReasonValuesSourceMissing, []string{"Secret apps/web does not exist", "key values.yaml"}},
		{"no key", canary, at(secret, "other", ""), nil, api.ReasonValuesSourceMissing, []string{"Secret apps/web has no key other"}},
		{"no key of an optional one", canary, Source{Ref: secret, Key: "other", Optional: true}, nil, api.ReasonValuesSourceMissing, []string{"Secret apps/web has no key other"}},
		{"no permission", canary, whole(secret), forbidden, api.ReasonValuesSourceForbidden, []string{"Secret apps/web", "lacks the permission to get it"}},
		{"no YAML", "a: b\nc: " + canary + ": x\n", whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"key values.yaml of Secret apps/web is not YAML, at or near line 2"}},
		{"a bad escape", "a: \"\\q" + canary + "\"", whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"is not YAML"}},
		{"an alias of nothing", "a: *" + canary, whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"is not YAML"}},
		{"a tab", "a:\n\t" + canary + ": b", whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"is not YAML, at or near line"}},
		{"a word", canary, whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"is not a map of values"}},
		{"a list", "- " + canary, whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"is not a map of values"}},
		{"no number", "a: .nan # " + canary, whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"is not YAML"}},
		{"aliases of a long text", "a: &a " + strings.Repeat(canary, 30_000) + "\nb: [" + strings.Repeat("*a,", 100_000) + "*a]", whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"cannot be used: the YAML is too large: more than 4194304 bytes"}},
		{"many values", canary + ": [" + strings.Repeat("{},", 200_000) + "{}]", whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"more than 50000 lines"}},
		{"a path that is taken", canary, at(secret, "values.yaml", "word.b"), nil, api.ReasonValuesSourceInvalid, []string{"cannot set the value word.b from key values.yaml of Secret apps/web"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster()
			if test.text != "" {
				c.putAndSend(secret, map[string]string{"values.yaml": test.text})
			}
			c.fails = test.fails
			_, _, err := c.Merge(t.Context(), "u", []Source{test.from}, map[string]any{"word": "x"})
			var unusable *Error
			if !errors.As(err, &unusable) {
				t.Fatalf("%v, want an Error", err)
			}
			if unusable.Reason != test.reason {
				t.Errorf("reason %s, want %s", unusable.Reason, test.reason)
			}
			for _, part := range test.parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error contains the secret: %v", err)
			}
			// The user is notified of the next change.
			c.fails = nil
			c.putAndSend(secret, map[string]string{"values.yaml": "a: b", "other": "{}"})
			c.expectNotified(t, "u")
		})
	}
}

func TestStore_RetriesAfterServerError(t *testing.T) {
	c := newCluster()
	c.putAndSend(secret, map[string]string{"values.yaml": "a: 1"})
	c.fails = apierrors.NewServiceUnavailable("away")
	_, _, err := c.Merge(t.Context(), "u", []Source{whole(secret)}, map[string]any{})
	var unusable *Error
	if err == nil || errors.As(err, &unusable) || !strings.Contains(err.Error(), "read Secret apps/web") {
		t.Errorf("%v", err)
	}
	c.fails = nil
	if got := c.merge(t, "u", whole(secret)); got["a"] != int64(1) {
		t.Errorf("%v", got)
	}
}

// TestStore_TreatsNotFoundAsDeleted: the API server has deleted an object, and the watch has
// not reported that yet.
func TestStore_TreatsNotFoundAsDeleted(t *testing.T) {
	c := newCluster()
	c.putAndSend(secret, map[string]string{"values.yaml": "a: 1"})
	delete(c.objects, secret)
	optional := whole(secret)
	optional.Optional = true
	if got := c.merge(t, "u", optional); len(got) > 0 {
		t.Errorf("%v", got)
	}
	if _, _, err := c.Merge(t.Context(), "u", []Source{whole(secret)}, map[string]any{}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("%v", err)
	}
}

// TestStore_RetriesUnservedPath: an API server that does not serve the path of an object does
// not report that the object is missing, so that not even an optional one is skipped.
func TestStore_RetriesUnservedPath(t *testing.T) {
	c := newCluster()
	c.putAndSend(secret, map[string]string{"values.yaml": "a: 1"})
	c.fails = apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", schema.GroupResource{Resource: "secrets"}, "web", "404 page not found", 0, true)
	optional := whole(secret)
	optional.Optional = true
	for _, source := range []Source{whole(secret), optional} {
		var unusable *Error
		if values, _, err := c.Merge(t.Context(), "u", []Source{source}, map[string]any{}); err == nil || errors.As(err, &unusable) {
			t.Errorf("optional: %v: values %v, error %v", source.Optional, values, err)
		}
	}
	c.fails = nil
	if got := c.merge(t, "u", optional); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// TestFeed_EndDropsObjects: after the end of a watch, its objects are unknown, not missing, and what
// the ended watch still reports is ignored.
func TestFeed_EndDropsObjects(t *testing.T) {
	c := newCluster()
	optional := whole(secret)
	optional.Optional = true
	feed := c.Feed(secret.Kind)
	c.putAndSend(secret, map[string]string{"values.yaml": "a: 1"})
	feed.Synced()
	if got := c.merge(t, "u", optional); len(got) != 1 {
		t.Errorf("%v", got)
	}
	feed.End()
	next := c.Feed(secret.Kind)
	feed.Synced()
	var unusable *Error
	if _, _, err := c.Merge(t.Context(), "u", []Source{optional}, map[string]any{}); err == nil || errors.As(err, &unusable) {
		t.Errorf("before the next watch has listed the objects: %v", err)
	}
	next.Synced()
	if got := c.merge(t, "u", optional); len(got) > 0 {
		t.Errorf("the next watch begins with %v", got)
	}
}

// TestStore_Concurrency merges and sends events concurrently, for the race detector.
func TestStore_Concurrency(t *testing.T) {
	c := newCluster()
	c.users = inputs.NewTracker[Ref](func(types.UID) {})
	c.putAndSend(secret, map[string]string{"values.yaml": "a: {b: 1}", "x": "y"})
	var wait sync.WaitGroup
	for i := range 8 {
		user := types.UID(strconv.Itoa(i))
		wait.Go(func() {
			for range 50 {
				got, _, err := c.Merge(t.Context(), user, []Source{whole(secret), at(secret, "x", "a.c")}, map[string]any{})
				if want := map[string]any{"a": map[string]any{"b": int64(1), "c": "y"}}; err != nil || !cmp.Equal(got, want) {
					t.Errorf("%v, %v", got, err)
				}
				c.Forget(user)
			}
		})
	}
	wait.Go(func() {
		for i := range 50 {
			c.send(secret, metadataOf(secret, strconv.Itoa(i)))
		}
	})
	wait.Wait()
}

func TestCompact_KeepsIdentity(t *testing.T) {
	m := metadataOf(secret, "7")
	m.UID = "u"
	want := m.DeepCopy()
	m.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{data: canary}"}
	m.Labels = map[string]string{"a": "b"}
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	got, err := Compact(m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
