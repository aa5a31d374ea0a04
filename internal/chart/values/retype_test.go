package values_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart/values"
)

// Retype replaces a stored string by the override only if templates render and test both
// alike.
func TestRetype_RestoresTypesOfOverrides(t *testing.T) {
	type m = map[string]any
	overrides := m{"port": int64(80), "on": true, "off": false, "text": "a", "in": m{"deep": int64(3)}, "none": nil}
	for _, test := range []struct {
		name         string
		stored, want m
	}{
		{"strings of numbers and of true", m{"port": "80", "on": "true", "in": m{"deep": "3", "own": "3"}}, m{"port": int64(80), "on": true, "in": m{"deep": int64(3), "own": "3"}}},
		{"the string false, which is true in a template", m{"off": "false"}, m{"off": "false"}},
		{"the string null, which is true in a template", m{"none": "null"}, m{"none": "null"}},
		{"other values", m{"port": "81", "on": "yes", "text": "b", "in": "3"}, m{"port": "81", "on": "yes", "text": "b", "in": "3"}},
		{"values with the type of the override", m{"port": int64(80), "on": true}, m{"port": int64(80), "on": true}},
		{"a key without an override", m{"replicas": "2"}, m{"replicas": "2"}},
		{"empty values", m{}, m{}},
	} {
		if diff := cmp.Diff(test.want, values.Retype(test.stored, overrides)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
