package dependencies

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/inputs"
	"github.com/chartwright/chartwright/internal/testenv"
)

func TestTransform_KeepsLittleOfOversizedObjects(t *testing.T) {
	feed := NewStore(func(types.UID) {}).Feed(bucketGVK)
	expect := func(decode func() any) {
		t.Helper()
		testenv.ExpectRetained(t, 8<<10, func(int) any {
			kept, err := feed.Transform(decode())
			if err != nil {
				t.Fatal(err)
			}
			return kept
		})
	}
	expect(func() any {
		return testenv.Decode[metav1.PartialObjectMetadata](t, testenv.Oversized("v1", "Secret", "a", map[string]string{"app": "x"}))
	})
	expect(func() any {
		return testenv.Decode[unstructured.Unstructured](t, testenv.Oversized("example.com/v1", "Bucket", "a", map[string]string{"app": "x"}))
	})
}

// TestFeed_RefusedObjectIsNotReady: the labels of a refused object are unknown, so that it
// also blocks the users of a selector.
func TestFeed_RefusedObjectIsNotReady(t *testing.T) {
	s := NewStore(func(types.UID) {})
	s.limits = inputs.Limits{Object: 4 << 10, Namespace: 8 << 10, Total: 16 << 10}
	s.budget = inputs.NewBudget(s.limits)
	feed := s.Feed(bucketGVK)
	put := func(name string, size int, deleted bool) {
		t.Helper()
		o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"x": strings.Repeat("x", size)}}}
		o.SetGroupVersionKind(bucketGVK)
		o.SetNamespace("a")
		o.SetName(name)
		o.SetUID(types.UID(name))
		o.SetResourceVersion(name + string(rune('0'+size%9)))
		kept, err := feed.Transform(o)
		if err != nil {
			t.Fatal(err)
		}
		if deleted {
			feed.Handler().OnDelete(kept)
			return
		}
		feed.Handler().OnAdd(kept, false)
	}
	key := Key{appGVK.GroupKind(), types.NamespacedName{Namespace: "a", Name: "web"}}
	expect := func(ref Ref, want string) {
		t.Helper()
		ref.Kind, ref.Namespace = bucketGVK, "a"
		s.Set(User{Key: key, UID: "u"}, []Ref{ref})
		got := ""
		if waits := s.Check("u", epoch).Waits; waits != nil {
			got = waits.Message
		}
		if got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("%+v waits because %q, want %q", ref, got, want)
		}
	}
	feed.Synced()
	put("1", 1<<20, false)
	expect(Ref{Name: "1"}, "takes more than 4 KiB of the operator's memory")
	expect(Ref{Selector: "app=x"}, "takes more than 4 KiB of the operator's memory")
	put("1", 10, false)
	expect(Ref{Name: "1"}, "")
	expect(Ref{Selector: "app=x"}, messageNoMatch)
	for _, name := range []string{"2", "3", "4"} {
		put(name, 2_000, false)
	}
	expect(Ref{Name: "2"}, "")
	expect(Ref{Name: "4"}, `namespace "a" exceeds the limit of 8 KiB`)
	put("2", 2_000, true)
	put("4", 2_001, false)
	expect(Ref{Name: "4"}, "")
	s.Serve(bucketGVK.GroupKind(), nil, nil)
	if left := s.budget.Charged("a"); left != 0 {
		t.Errorf("%d bytes are charged after the watch has ended", left)
	}
}
