package chart

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckPath(t *testing.T) {
	for _, path := range []string{"a", "a.b", "a[0].b", "a[2]", `a\.b.c`, "a.b-c_d"} {
		if err := CheckPath(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"", ".a", "a.", "a..b", "a=b", "a,b", "a=1,b", "a[b]", "a[-1]", "a[", "a[99999999]", "a,", strings.Repeat("a.", 31) + "a"} {
		if err := CheckPath(path); !errors.Is(err, errPath) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestSetText(t *testing.T) {
	const odd = "{a,b=c.d\\e[0]: \"'\n}"
	for _, test := range []struct {
		name         string
		values, want map[string]any
		path, text   string
	}{
		{"in nothing", map[string]any{}, map[string]any{"a": map[string]any{"b": "c"}}, "a.b", "c"},
		{"beside others", map[string]any{"a": map[string]any{"d": int64(1)}}, map[string]any{"a": map[string]any{"b": "c", "d": int64(1)}}, "a.b", "c"},
		{"in a list", map[string]any{"a": []any{map[string]any{"b": "1"}, map[string]any{"b": "2"}}}, map[string]any{"a": []any{map[string]any{"b": "1"}, map[string]any{"b": "c"}}}, "a[1].b", "c"},
		{"over anything", map[string]any{"a": map[string]any{"b": int64(1)}}, map[string]any{"a": "c"}, "a", "c"},
		{"what Helm would take for more", map[string]any{}, map[string]any{"a": odd}, "a", odd},
		{"a number as text", map[string]any{}, map[string]any{"a": "12"}, "a", "12"},
		{"an empty text", map[string]any{}, map[string]any{"a": ""}, "a", ""},
		{"a dot in a key", map[string]any{}, map[string]any{"a.b": "c"}, `a\.b`, "c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := SetText(test.values, test.path, test.text); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, test.values); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, values := range []map[string]any{{"a": "scalar"}, {"a": nil}, {"a": []any{}}} {
		if err := SetText(values, "a.b", "canary"); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("into %v: %v", values, err)
		}
	}
}
