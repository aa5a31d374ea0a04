package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/inputs/dependencies"
	"github.com/chartwright/chartwright/internal/release"
)

// largeResource is Resources of an API server whose custom resource is not kept in the cache.
type largeResource struct {
	*memoryAPI
	live  *unstructured.Unstructured
	err   error
	reads int
}

func (l *largeResource) Complete(context.Context, *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	l.reads++
	return l.live, l.err
}

// large returns the cached copy of a custom resource with a large note, and the same with all
// its content, though not packed.
func large(t *testing.T, note string) (cached, live *unstructured.Unstructured) {
	t.Helper()
	text := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"web","namespace":"apps","uid":"uid","resourceVersion":"1",`+
		`"finalizers":["chartwright.dev/finalizer"]},"spec":{"note":%q}}`, note+strings.Repeat("x", 50_000))
	cached, err := customresource.Decoder{}.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	live = &unstructured.Unstructured{}
	if err := live.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	// It has the digest of the packed one.
	for key := range cached.Object {
		if strings.HasSuffix(key, "/digest") {
			live.Object[key] = cached.Object[key]
			live.Object["spec"] = fmt.Sprintf(`{"note":%q}`, note+strings.Repeat("x", 50_000))
		}
	}
	return cached, live
}

func TestObserve_ReadsContentOnlyWhenNeeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cached, live := large(t, "a")
	from := &largeResource{memoryAPI: w.apiServer, live: live}
	w.Resources = from
	v, err := w.observe(t.Context(), webKey, cached)
	if err != nil || v.values["note"] == nil || from.reads != 1 {
		t.Fatalf("values %v, error %v, %d reads", v, err, from.reads)
	}
	again, err := w.observe(t.Context(), webKey, cached)
	if err != nil || again.digests != v.digests || from.reads != 1 {
		t.Fatalf("digests %+v, then %+v, error %v, %d reads", v.digests, again.digests, err, from.reads)
	}
	// The author's text is read to redact, and then not again.
	again.Secrets = []string{"secret-text"}
	for range 2 {
		if got := again.Redact("secret-text"); got == "secret-text" || from.reads != 2 {
			t.Errorf("%s, %d reads", got, from.reads)
		}
	}
	again, err = w.observe(t.Context(), webKey, cached)
	if err != nil {
		t.Fatal(err)
	}
	given, err := w.valuesOf(t.Context(), again)
	if err != nil || len(given["note"].(string)) != 50_001 || from.reads != 3 {
		t.Errorf("values %v, error %v, %d reads", given, err, from.reads)
	}
	// What waits for a slot does not hold the content.
	w.readContent(t.Context(), v)
	if v.values != nil {
		t.Errorf("values %v", v.values)
	}
	if given, err := w.valuesOf(t.Context(), v); err != nil || given["note"] == nil || from.reads != 4 {
		t.Errorf("values %v, error %v, %d reads", given, err, from.reads)
	}
}

// TestObserve_WithoutContent: nothing is decided while the content cannot be read, or is that
// of another version.
func TestObserve_WithoutContent(t *testing.T) {
	t.Parallel()
	unavailable := errors.New("unavailable")
	for name, fault := range map[string]func(*largeResource, *unstructured.Unstructured){
		"a failed read":                func(l *largeResource, _ *unstructured.Unstructured) { l.err = unavailable },
		"a newer version":              func(l *largeResource, other *unstructured.Unstructured) { l.live = other },
		"another one of the same name": func(l *largeResource, _ *unstructured.Unstructured) { l.live.SetUID("other") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			cached, live := large(t, "a")
			_, other := large(t, "b")
			from := &largeResource{memoryAPI: w.apiServer, live: live}
			w.Resources = from
			fault(from, other)
			v, err := w.observe(t.Context(), webKey, cached)
			if v != nil || !errors.Is(err, unavailable) && !errors.Is(err, release.ErrStale) {
				t.Errorf("%v, error %v", v, err)
			}
			if w.memory.of(ownUID).facts != nil || len(w.memory.of(ownUID).evaluated.results) > 0 {
				t.Error("something is remembered")
			}
		})
	}
}

// unset is Dependencies that must not be changed.
type unset struct {
	Dependencies
	t *testing.T
}

func (u unset) Set(_ dependencies.User, refs []dependencies.Ref) {
	u.t.Errorf("the dependencies are now %v", refs)
}

func (u unset) Check(types.UID, time.Time) dependencies.Verdict { return dependencies.Verdict{} }

// TestObserve_KeepsDependenciesWithoutContent: the order of deletions depends on them.
func TestObserve_KeepsDependenciesWithoutContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cached, _ := large(t, "a")
	cached.SetAnnotations(map[string]string{api.AnnotationDependsOn: "Web.example.com/other"})
	w.Resources = &largeResource{memoryAPI: w.apiServer, err: errors.New("unavailable")}
	w.Dependencies = unset{t: t}
	w.memory.with(ownUID, func(m *remembered) { m.facts = &specFacts{digest: customresource.Digest(cached)} })
	if v, err := w.observe(t.Context(), webKey, cached); err == nil {
		t.Errorf("%v", v)
	}
}
