package valuesfrom

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inputs"
	"github.com/chartwright/chartwright/internal/watches"
)

// cluster is an API server with a watch that a test moves by hand.
type cluster struct {
	*Store
	mu      sync.Mutex
	objects map[Ref]Data
	version int
	reads   []Ref
	fails   error
	woken   []types.UID
}

func newCluster() *cluster {
	c := &cluster{objects: map[Ref]Data{}, version: 8}
	c.Store = NewStore(func(_ context.Context, ref Ref) (Data, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reads = append(c.reads, ref)
		if c.fails != nil {
			return Data{}, c.fails
		}
		found, ok := c.objects[ref]
		if !ok {
			return Data{}, apierrors.NewNotFound(schema.GroupResource{}, ref.Name)
		}
		return found, nil
	}, func(user types.UID) { c.woken = append(c.woken, user) })
	return c
}

// put stores an object, and the watch tells so unless it is behind.
func (c *cluster) put(ref Ref, keys map[string]string) *metav1.PartialObjectMetadata {
	c.version++
	data := Data{ResourceVersion: strconv.Itoa(c.version), Keys: map[string][]byte{}}
	for key, text := range keys {
		data.Keys[key] = []byte(text)
	}
	c.objects[ref] = data
	return meta(ref, data.ResourceVersion)
}

func meta(ref Ref, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, ResourceVersion: version}}
}

func (c *cluster) seen(ref Ref, m *metav1.PartialObjectMetadata) {
	c.Handler(ref.Kind).OnUpdate(nil, m)
}

func (c *cluster) putSeen(ref Ref, keys map[string]string) { c.seen(ref, c.put(ref, keys)) }

// merge returns what a user's sources make of an empty spec.
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

func (c *cluster) expectWoken(t *testing.T, users ...types.UID) {
	t.Helper()
	slices.Sort(c.woken)
	if !slices.Equal(c.woken, users) {
		t.Errorf("woken were %v, want %v", c.woken, users)
	}
	c.woken = nil
}

var (
	secret    = Ref{watches.SourceSecret, "apps", "web"}
	configMap = Ref{watches.SourceConfigMap, "apps", "web"}
	elsewhere = Ref{watches.SourceSecret, "other", "web"}
)

func whole(ref Ref) Source { return Source{Ref: ref, Key: "values.yaml"} }

func at(ref Ref, key, path string) Source { return Source{Ref: ref, Key: key, TargetPath: path} }

func TestSourcesCountInTheirOrder(t *testing.T) {
	c := newCluster()
	c.putSeen(secret, map[string]string{"values.yaml": "a: {b: 1, c: 2}\nlist: [1, 2]", "password": "12"})
	c.putSeen(configMap, map[string]string{"values.yaml": `{"a": {"b": 9007199254740993}, "list": [3]}`})
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
		t.Errorf("secret are %q", secrets)
	}
	// What is in memory is nobody's to change.
	got["a"].(map[string]any)["b"] = "damaged"
	got["list"].([]any)[0] = "damaged"
	if again := c.merge(t, "u", whole(configMap)); !cmp.Equal(again, map[string]any{"a": map[string]any{"b": int64(9007199254740993)}, "list": []any{int64(3)}}) {
		t.Errorf("the source is now %v", again)
	}
}

func TestSourceIsReadOnceAVersion(t *testing.T) {
	c := newCluster()
	c.putSeen(secret, map[string]string{"values.yaml": "a: 1", "more": "b"})
	for range 3 {
		c.merge(t, "one", whole(secret))
		c.merge(t, "two", whole(secret))
	}
	c.expectReads(t, 1)
	// Another key of it.
	c.merge(t, "two", at(secret, "more", "b"))
	c.merge(t, "one", whole(secret))
	c.expectReads(t, 1)
	c.putSeen(secret, map[string]string{"values.yaml": "a: 2", "more": "c"})
	c.expectWoken(t, "one", "two")
	if got := c.merge(t, "one", whole(secret)); got["a"] != int64(2) {
		t.Errorf("%v", got)
	}
	if got := c.merge(t, "two", at(secret, "more", "b")); got["b"] != "c" {
		t.Errorf("%v", got)
	}
	c.expectReads(t, 1)
}

func TestWhatWasReadOverridesAWatchThatIsBehind(t *testing.T) {
	c := newCluster()
	c.putSeen(secret, map[string]string{"values.yaml": "a: 1"})
	late := c.put(secret, map[string]string{"values.yaml": "a: 2"})
	for range 2 {
		if got := c.merge(t, "u", whole(secret)); got["a"] != int64(2) {
			t.Errorf("%v", got)
		}
	}
	c.seen(secret, late)
	c.merge(t, "u", whole(secret))
	c.expectReads(t, 1)
	// The same again, as after a watch that began anew.
	c.woken = nil
	c.seen(secret, late)
	c.expectWoken(t)
}

func TestChangeWakesExactlyItsUsers(t *testing.T) {
	c := newCluster()
	c.putSeen(secret, map[string]string{"values.yaml": ""})
	c.putSeen(configMap, map[string]string{"values.yaml": ""})
	c.merge(t, "a", whole(secret), at(secret, "values.yaml", "text"))
	c.merge(t, "b", whole(secret), whole(configMap))
	c.merge(t, "c", whole(configMap), Source{Ref: elsewhere, Optional: true})
	c.expectWoken(t)
	c.putSeen(secret, nil)
	c.expectWoken(t, "a", "b")
	c.putSeen(configMap, nil)
	c.expectWoken(t, "b", "c")
	// One that was not there.
	c.putSeen(elsewhere, nil)
	c.expectWoken(t, "c")
	// One that goes, seen or not.
	c.Handler(secret.Kind).OnDelete(meta(secret, "20"))
	c.expectWoken(t, "a", "b")
	c.Handler(configMap.Kind).OnDelete(cache.DeletedFinalStateUnknown{Obj: meta(configMap, "20")})
	c.expectWoken(t, "b", "c")
	c.reads = nil
	if _, _, err := c.Merge(t.Context(), "a", []Source{whole(secret)}, map[string]any{}); err == nil {
		t.Error("one that went is still there")
	}
	c.expectReads(t, 0)
	// Those who use it no more.
	c.Forget("a")
	c.putSeen(configMap, map[string]string{"values.yaml": ""})
	c.woken = nil
	c.merge(t, "b", whole(configMap))
	c.putSeen(secret, nil)
	c.expectWoken(t)
}

func TestNothingIsKeptThatNobodyUses(t *testing.T) {
	c := newCluster()
	c.putSeen(secret, map[string]string{"values.yaml": "a: 1", "unused": "canary"})
	c.putSeen(configMap, map[string]string{"values.yaml": ""})
	c.merge(t, "a", whole(secret), whole(configMap))
	if keys := slices.Collect(maps.Keys(c.Store.objects[secret].keys)); !slices.Equal(keys, []string{"values.yaml"}) {
		t.Errorf("in memory are the keys %v", keys)
	}
	c.merge(t, "a", whole(configMap))
	c.Forget("a")
	if len(c.Store.objects)+len(slices.Collect(c.users.All())) > 0 {
		t.Errorf("left are %v, used are %v", c.Store.objects, slices.Collect(c.users.All()))
	}
}

func TestSourcesThatCannotBeUsed(t *testing.T) {
	const canary = "canary-3f9a"
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "web", errors.New("no"))
	for _, test := range []struct {
		name   string
		text   string // of key values.yaml; absent means that there is no object
		from   Source
		fails  error
		reason string
		says   []string
	}{
		{"no object", "", whole(secret), nil, api.ReasonValuesSourceMissing, []string{"Secret apps/web, which does not exist", "key values.yaml"}},
		{"no key", canary, at(secret, "other", ""), nil, api.ReasonValuesSourceMissing, []string{"key other of Secret apps/web, which has no such key"}},
		{"no key of an optional one", canary, Source{Ref: secret, Key: "other", Optional: true}, nil, api.ReasonValuesSourceMissing, []string{"key other of Secret apps/web"}},
		{"no right", canary, whole(secret), forbidden, api.ReasonValuesSourceForbidden, []string{"Secret apps/web", "give it the right"}},
		{"no YAML", "a: b\nc: " + canary + ": x\n", whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"key values.yaml of Secret apps/web is not YAML, at line 2"}},
		{"a bad escape", "a: \"\\q" + canary + "\"", whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"is not YAML"}},
		{"an alias of nothing", "a: *" + canary, whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"is not YAML"}},
		{"a tab", "a:\n\t" + canary + ": b", whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"is not YAML, at line"}},
		{"a word", canary, whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"is YAML, but no map of values"}},
		{"a list", "- " + canary, whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"no map of values"}},
		{"no number", "a: .nan # " + canary, whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"is not YAML"}},
		{"aliases of a long text", "a: &a " + strings.Repeat(canary, 30_000) + "\nb: [" + strings.Repeat("*a,", 100_000) + "*a]", whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"cannot be used: the YAML is too large: it holds more than 4194304 bytes"}},
		{"many values", canary + ": [" + strings.Repeat("{},", 200_000) + "{}]", whole(secret), nil, api.ReasonValuesSourceInvalid, []string{"more than 50000 lines"}},
		{"a path that is taken", canary, at(secret, "values.yaml", "word.b"), nil, api.ReasonValuesSourceInvalid, []string{"key values.yaml of Secret apps/web goes to the value word.b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster()
			if test.text != "" {
				c.putSeen(secret, map[string]string{"values.yaml": test.text})
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
			for _, says := range test.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q does not say %q", err, says)
				}
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error tells the secret: %v", err)
			}
			// Whoever cannot use it now is told when it changes.
			c.fails = nil
			c.putSeen(secret, map[string]string{"values.yaml": "a: b", "other": "{}"})
			c.expectWoken(t, "u")
		})
	}
}

func TestSourceThatTheServerDoesNotGiveIsNoVerdict(t *testing.T) {
	c := newCluster()
	c.putSeen(secret, map[string]string{"values.yaml": "a: 1"})
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

// What the watch still has and the server has no more counts as gone.
func TestSourceThatHasJustGone(t *testing.T) {
	c := newCluster()
	c.putSeen(secret, map[string]string{"values.yaml": "a: 1"})
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

// Many passes and the watch at once; the race detector looks on.
func TestStoreAtOnce(t *testing.T) {
	c := newCluster()
	c.users = inputs.NewTracker[Ref](func(types.UID) {})
	c.putSeen(secret, map[string]string{"values.yaml": "a: {b: 1}", "x": "y"})
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
			c.seen(secret, meta(secret, strconv.Itoa(i)))
		}
	})
	wait.Wait()
}

func TestCompactKeepsWhatTellsOneFromAnother(t *testing.T) {
	m := meta(secret, "7")
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

// TestWhatWasSecretStaysSo: what still runs was made with it.
func TestWhatWasSecretStaysSo(t *testing.T) {
	c := newCluster()
	ref := Ref{Kind: watches.SourceSecret, Namespace: "shop", Name: "web"}
	from := []Source{{Ref: ref, Key: "values.yaml"}}
	c.putSeen(ref, map[string]string{"values.yaml": "word: canary"})
	whole, want := []Secrets{}, Secrets{"canary", "word: canary"}
	look := func() error {
		_, secrets, err := c.Merge(t.Context(), "uid", from, map[string]any{})
		whole = append(whole, secrets)
		return err
	}
	if err := look(); err != nil {
		t.Fatal(err)
	}
	c.putSeen(ref, map[string]string{"values.yml": "word: other"})
	if err := look(); err == nil {
		t.Error("a source without its key is whole")
	}
	c.Forget("uid")
	if err := look(); err == nil {
		t.Error("a source without its key is whole")
	}
	if diff := cmp.Diff([]Secrets{want, want, {}}, whole, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("secret are (-want +got):\n%s", diff)
	}
}
