package render

import (
	"fmt"
	"strings"
	"testing"
	"text/template"
)

// The guarded comparisons must return what the functions of text/template return.
func TestCompare_EqualsTextTemplate(t *testing.T) {
	for name := range comparisons {
		text := fmt.Sprintf("{{ %s .one .other }}", name)
		expected := template.Must(template.New(name).Parse(text))
		for _, pair := range [][2]any{
			{int64(1), int64(1)}, {int64(1), int64(2)}, {int64(2), int64(1)},
			{"a", "a"}, {"a", "b"}, {"b", "a"},
			{1.5, 1.5}, {1.5, 2.5}, {2.5, 1.5},
		} {
			values := map[string]any{"one": pair[0], "other": pair[1]}
			var want strings.Builder
			if err := expected.Execute(&want, values); err != nil {
				t.Fatal(err)
			}
			if got, err := one(t, New(Defaults()), text, values); err != nil || got != want.String() {
				t.Errorf("%s %v %v: got %q and error %v, want %q", name, pair[0], pair[1], got, err, want.String())
			}
		}
	}
}
