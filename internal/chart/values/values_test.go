package values_test

import (
	"encoding/json"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/chart/values"
)

func TestFromSpec_NormalizesNumbers(t *testing.T) {
	for _, test := range []struct {
		name   string
		object map[string]any
		want   map[string]any
		fails  string
	}{
		{name: "absent", object: map[string]any{}, want: map[string]any{}},
		{name: "null", object: map[string]any{"spec": nil}, want: map[string]any{}},
		{name: "empty", object: map[string]any{"spec": map[string]any{}}, want: map[string]any{}},
		{
			name:   "whole numbers become int64 at every level",
			object: map[string]any{"spec": map[string]any{"a": 1.0, "b": []any{2.0, map[string]any{"c": 3.0}}, "d": 1e6, "e": math.Copysign(0, -1)}},
			want:   map[string]any{"a": int64(1), "b": []any{int64(2), map[string]any{"c": int64(3)}}, "d": int64(1000000), "e": int64(0)},
		},
		{
			name:   "fractions and large numbers are unchanged",
			object: map[string]any{"spec": map[string]any{"a": 1.5, "b": 1e300, "c": int64(math.MaxInt64)}},
			want:   map[string]any{"a": 1.5, "b": 1e300, "c": int64(math.MaxInt64)},
		},
		{
			name:   "null is kept because it removes a default",
			object: map[string]any{"spec": map[string]any{"a": nil, "b": map[string]any{"c": nil}}},
			want:   map[string]any{"a": nil, "b": map[string]any{"c": nil}},
		},
		{
			name:   "strings and booleans are unchanged",
			object: map[string]any{"spec": map[string]any{"a": "1", "b": true, "c": ""}},
			want:   map[string]any{"a": "1", "b": true, "c": ""},
		},
		{name: "a list", object: map[string]any{"spec": []any{}}, fails: "spec: got a list, want an object"},
		{name: "a string", object: map[string]any{"spec": "a"}, fails: "spec: got a string, want an object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := values.FromSpec(test.object)
			if test.fails != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.fails) {
					t.Errorf("got error %v, want %s…", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMerge_OverridesReplaceValues(t *testing.T) {
	for _, test := range []struct {
		name                    string
		values, overrides, want map[string]any
	}{
		{"no overrides", map[string]any{"a": int64(1)}, nil, map[string]any{"a": int64(1)}},
		{"an override without a value", map[string]any{}, map[string]any{"a": int64(1)}, map[string]any{"a": int64(1)}},
		{
			"nested maps are merged",
			map[string]any{"a": map[string]any{"b": int64(1), "c": int64(2)}},
			map[string]any{"a": map[string]any{"b": "x", "d": map[string]any{"e": true}}},
			map[string]any{"a": map[string]any{"b": "x", "c": int64(2), "d": map[string]any{"e": true}}},
		},
		{"a list replaces a list", map[string]any{"a": []any{int64(1), int64(2)}}, map[string]any{"a": []any{"x"}}, map[string]any{"a": []any{"x"}}},
		{"a scalar replaces a map", map[string]any{"a": map[string]any{"b": int64(1)}}, map[string]any{"a": "x"}, map[string]any{"a": "x"}},
		{"a map replaces a scalar", map[string]any{"a": "x"}, map[string]any{"a": map[string]any{"b": int64(1)}}, map[string]any{"a": map[string]any{"b": int64(1)}}},
		{"null replaces a value", map[string]any{"a": "x"}, map[string]any{"a": nil}, map[string]any{"a": nil}},
		{"whole numbers become int64", map[string]any{}, map[string]any{"a": 2.0, "b": map[string]any{"c": 3}}, map[string]any{"a": int64(2), "b": map[string]any{"c": int64(3)}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, values.Merge(test.values, test.overrides)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// All custom resources of a kind share the same overrides, and are reconciled concurrently.
func TestMerge_DoesNotModifyOverrides(t *testing.T) {
	build := func() map[string]any {
		return map[string]any{"a": map[string]any{"b": 1.0, "c": []any{2.0, map[string]any{"d": 3.0}}}}
	}
	overrides := build()
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 100 {
				merged := values.Merge(map[string]any{}, overrides)
				merged["a"].(map[string]any)["b"] = "changed"
				merged["a"].(map[string]any)["c"].([]any)[1].(map[string]any)["d"] = "changed"
			}
		})
	}
	wait.Wait()
	if diff := cmp.Diff(build(), overrides); diff != "" {
		t.Errorf("the overrides changed (-want +got):\n%s", diff)
	}
}

// scalar generates JSON values other than objects and lists.
func scalar() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(v bool) any { return v }),
		rapid.Map(rapid.StringN(0, 4, 8), func(v string) any { return v }),
		rapid.Map(rapid.Int64Range(-1<<53, 1<<53), func(v int64) any { return v }),
		rapid.Map(rapid.Int64Range(-9, 9), func(v int64) any { return float64(v) / 2 }),
	)
}

func anything(depth int) *rapid.Generator[any] {
	if depth == 0 {
		return scalar()
	}
	return rapid.OneOf(
		scalar(),
		rapid.Map(rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return anything(depth - 1) }), 0, 3), func(v []any) any {
			if v == nil {
				return []any{}
			}
			return v
		}),
		rapid.Map(object(depth-1), func(v map[string]any) any { return v }),
	)
}

func object(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.StringMatching("[ab]{1,2}"), rapid.Deferred(func() *rapid.Generator[any] { return anything(depth) }), 0, 4)
}

func spec(t *rapid.T, label string) map[string]any { return object(3).Draw(t, label) }

func fromSpec(t *rapid.T, spec map[string]any) map[string]any {
	got, err := values.FromSpec(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestFromSpec_CopiesSpec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		original := spec(t, "spec")
		before := runtime.DeepCopyJSON(original)
		overwrite(fromSpec(t, original))
		if diff := cmp.Diff(before, original); diff != "" {
			t.Fatalf("the spec changed (-want +got):\n%s", diff)
		}
	})
}

// overwrite changes every value in a tree of values.
func overwrite(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			overwrite(inner)
			v[key] = "overwritten"
		}
		v["more"] = true
	case []any:
		for i, inner := range v {
			overwrite(inner)
			v[i] = "overwritten"
		}
	}
}

// Equal values have equal digests, independent of their Go types and the order of keys.
func TestDigest_IsEqualForEqualJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		original := fromSpec(t, spec(t, "spec"))
		data, err := json.Marshal(original)
		if err != nil {
			t.Fatal(err)
		}
		// encoding/json makes every number a float64.
		var decoded map[string]any
		if err := json.Unmarshal(data, &decoded); err != nil {
			t.Fatal(err)
		}
		again := fromSpec(t, decoded)
		if values.Digest(original) != values.Digest(again) {
			t.Fatalf("digests differ for\n%v\n%v", original, again)
		}
		if values.Digest(original) != values.Digest(maps.Clone(original)) {
			t.Fatal("the digest depends on the order of keys")
		}
	})
}

func TestDigest_DiffersForDifferentValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := fromSpec(t, spec(t, "a")), fromSpec(t, spec(t, "b"))
		if same, equal := values.Digest(a) == values.Digest(b), cmp.Equal(a, b); same != equal {
			t.Fatalf("got equal digests %v for equal values %v:\n%v\n%v", same, equal, a, b)
		}
	})
}

func TestDigest_OfSimilarValues(t *testing.T) {
	digest := func(value any) string {
		v, err := values.FromSpec(map[string]any{"spec": map[string]any{"v": value}})
		if err != nil {
			t.Fatal(err)
		}
		return values.Digest(v)
	}
	if digest(1.0) != digest(int64(1)) {
		t.Error("1.0 and 1 have different digests")
	}
	seen := map[string]any{}
	for _, value := range []any{nil, int64(1), "1", 1.5, true, "true", []any{}, []any{nil}, []any{int64(1)}, map[string]any{}, map[string]any{"v": nil}, ""} {
		d := digest(value)
		if other, twice := seen[d]; twice {
			t.Errorf("%#v and %#v have the same digest", value, other)
		}
		seen[d] = value
	}
	if d := digest("x"); len(d) > 63 || strings.Trim(d, "0123456789abcdef") != "" {
		t.Errorf("digest %q is not a valid label value", d)
	}
}

// The digests of a chart's files are on release records, so that they must never change.
func TestDigestOf_IsEqualForStringsAndBytes(t *testing.T) {
	const want = "830434110cea80ae24be05fa203a9ea93db81d44"
	if got := values.DigestOf("name", "content"); got != want {
		t.Errorf("strings: got %s, want %s", got, want)
	}
	if got := values.DigestOf([]byte("name"), []byte("content")); got != want {
		t.Errorf("bytes: got %s, want %s", got, want)
	}
}

func TestDigestOf_DiffersForDifferentParts(t *testing.T) {
	seen := map[string][]string{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"a", "b"}, {"b", "a"}, {"ab"}, {"ab", ""}, {"", "ab"}, {"1:a"}, {"a", "1:b"}, {"a1:b"}} {
		d := values.DigestOf(parts...)
		if other, twice := seen[d]; twice {
			t.Errorf("%q and %q have the same digest", parts, other)
		}
		seen[d] = parts
	}
}

// Overrides replace the values at every path that they contain. All other values remain.
func TestMerge_RandomOverridesReplaceValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, over := fromSpec(t, spec(t, "base")), fromSpec(t, spec(t, "over"))
		got := values.Merge(runtime.DeepCopyJSON(base), over)
		checkMerged(t, base, over, got)
		if again := values.Merge(runtime.DeepCopyJSON(got), over); !cmp.Equal(got, again) {
			t.Fatalf("merging the overrides twice changes the result:\n%v\n%v", got, again)
		}
		before := runtime.DeepCopyJSON(over)
		overwrite(got)
		if !cmp.Equal(before, over) {
			t.Fatal("the result shares memory with the overrides")
		}
	})
}

func checkMerged(t *rapid.T, base, over, got map[string]any) {
	for key := range got {
		baseValue, inBase := base[key]
		overValue, inOver := over[key]
		baseMap, baseIsMap := baseValue.(map[string]any)
		overMap, overIsMap := overValue.(map[string]any)
		switch {
		case !inBase && !inOver:
			t.Fatalf("key %q is in neither input", key)
		case !inOver:
			if !cmp.Equal(baseValue, got[key]) {
				t.Fatalf("key %q changed without an override", key)
			}
		case baseIsMap && overIsMap:
			gotMap, ok := got[key].(map[string]any)
			if !ok {
				t.Fatalf("key %q: got %T, want a map", key, got[key])
			}
			checkMerged(t, baseMap, overMap, gotMap)
		case !cmp.Equal(overValue, got[key]):
			t.Fatalf("key %q does not have the override", key)
		}
	}
	for _, from := range []map[string]any{base, over} {
		for key := range from {
			if _, ok := got[key]; !ok {
				t.Fatalf("key %q is missing", key)
			}
		}
	}
}

func TestExpand_VariablesAndTemplates(t *testing.T) {
	t.Setenv("CHARTWRIGHT_TEST_IMAGE", "registry.example.com/app")
	for _, test := range []struct{ name, text, want, fails string }{
		{name: "plain", text: "nginx", want: "nginx"},
		{name: "empty", text: "", want: ""},
		{name: "a variable", text: "$CHARTWRIGHT_TEST_IMAGE:1", want: "registry.example.com/app:1"},
		{name: "a variable in braces", text: "${CHARTWRIGHT_TEST_IMAGE}2", want: "registry.example.com/app2"},
		{name: "a variable that is not set", text: "x${CHARTWRIGHT_TEST_NONE}y", want: "xy"},
		{name: "a function of sprig", text: `{{ "$CHARTWRIGHT_TEST_IMAGE" | upper | trunc 8 }}`, want: "REGISTRY"},
		{name: "a template with a syntax error", text: "{{ nope }}", fails: "parse the template"},
		{name: "a template that fails", text: `{{ fail "no" }}`, fails: "execute the template"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := values.Expand(test.text)
			switch {
			case test.fails != "":
				if err == nil || !strings.HasPrefix(err.Error(), test.fails) {
					t.Errorf("got error %v, want %s…", err, test.fails)
				}
			case err != nil || got != test.want:
				t.Errorf("got %q, error %v, want %q", got, err, test.want)
			}
		})
	}
}
