package values_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart/values"
)

// Retype makes of a stored text what the watches entry makes of it, where a
// template makes the same of both.
func TestRetype(t *testing.T) {
	type m = map[string]any
	overrides := m{"port": int64(80), "on": true, "off": false, "text": "a", "in": m{"deep": int64(3)}, "none": nil}
	for _, test := range []struct {
		name         string
		stored, want m
	}{
		{"texts of numbers and of what is true", m{"port": "80", "on": "true", "in": m{"deep": "3", "own": "3"}}, m{"port": int64(80), "on": true, "in": m{"deep": int64(3), "own": "3"}}},
		{"what is false is true as a text", m{"off": "false"}, m{"off": "false"}},
		{"what is nothing is something as a text", m{"none": "null"}, m{"none": "null"}},
		{"other values", m{"port": "81", "on": "yes", "text": "b", "in": "3"}, m{"port": "81", "on": "yes", "text": "b", "in": "3"}},
		{"typed already", m{"port": int64(80), "on": true}, m{"port": int64(80), "on": true}},
		{"what is overridden by nobody", m{"replicas": "2"}, m{"replicas": "2"}},
		{"nothing", m{}, m{}},
	} {
		if diff := cmp.Diff(test.want, values.Retype(test.stored, overrides)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
