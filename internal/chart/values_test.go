package chart

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckPath_RejectsInvalidPaths(t *testing.T) {
	for _, path := range []string{"a", "a.b", "a[0].b", "a[2]", `a\.b.c`, "a.b-c_d"} {
		if err := CheckPath(path); err != nil {
			t.Errorf("%s: got error %v", path, err)
		}
	}
	for _, path := range []string{"", ".a", "a.", "a..b", "a=b", "a,b", "a=1,b", "a[b]", "a[-1]", "a[", "a[99999999]", "a,", strings.Repeat("a.", 31) + "a"} {
		if err := CheckPath(path); !errors.Is(err, errPath) {
			t.Errorf("%q: got error %v, want %v", path, err, errPath)
		}
	}
}

func TestSetValue_SetsValueAtPath(t *testing.T) {
	const special = "{a,b=c.d\\e[0]: \"'\n}"
	for _, test := range []struct {
		name         string
		values, want map[string]any
		path         string
		value        any
	}{
		{"in empty values", map[string]any{}, map[string]any{"a": map[string]any{"b": "c"}}, "a.b", "c"},
		{"in a map with another key", map[string]any{"a": map[string]any{"d": int64(1)}}, map[string]any{"a": map[string]any{"b": "c", "d": int64(1)}}, "a.b", "c"},
		{"in a list", map[string]any{"a": []any{map[string]any{"b": "1"}, map[string]any{"b": "2"}}}, map[string]any{"a": []any{map[string]any{"b": "1"}, map[string]any{"b": "c"}}}, "a[1].b", "c"},
		{"instead of a map", map[string]any{"a": map[string]any{"b": int64(1)}}, map[string]any{"a": "c"}, "a", "c"},
		{"characters with a meaning in Helm's --set", map[string]any{}, map[string]any{"a": special}, "a", special},
		{"a string of digits", map[string]any{}, map[string]any{"a": "12"}, "a", "12"},
		{"an empty string", map[string]any{}, map[string]any{"a": ""}, "a", ""},
		{"a number", map[string]any{}, map[string]any{"a": int64(12)}, "a", int64(12)},
		{"a list", map[string]any{}, map[string]any{"a": []any{nil, []any{true}}}, "a[1]", []any{true}},
		{"a map instead of a map", map[string]any{"a": map[string]any{"b": "c"}}, map[string]any{"a": map[string]any{"d": "e"}}, "a", map[string]any{"d": "e"}},
		{"a dot in a key", map[string]any{}, map[string]any{"a.b": "c"}, `a\.b`, "c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := SetValue(test.values, test.path, test.value); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, test.values); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, values := range []map[string]any{{"a": "scalar"}, {"a": nil}, {"a": []any{}}} {
		if err := SetValue(values, "a.b", "canary"); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("in %v: got error %v, want one without the string", values, err)
		}
	}
}
