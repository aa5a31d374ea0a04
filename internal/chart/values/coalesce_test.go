package values_test

import (
	"reflect"
	"testing"

	"github.com/chartwright/chartwright/internal/chart/values"
)

func TestCoalesce_ValuesOverrideDefaults(t *testing.T) {
	type m = map[string]any
	for _, test := range []struct {
		name                  string
		defaults, given, want m
	}{
		{"no values", m{"a": 1}, nil, m{"a": 1}},
		{"no defaults", nil, m{"a": 1}, m{"a": 1}},
		{"a value replaces a default", m{"a": 1, "b": 2}, m{"a": 3}, m{"a": 3, "b": 2}},
		{"nested maps are merged", m{"a": m{"b": m{"c": 1, "d": 2}}}, m{"a": m{"b": m{"c": 3}}}, m{"a": m{"b": m{"c": 3, "d": 2}}}},
		{"a list replaces a list", m{"a": []any{1, 2}}, m{"a": []any{3}}, m{"a": []any{3}}},
		{"a map replaces a string", m{"a": "x"}, m{"a": m{"b": 1}}, m{"a": m{"b": 1}}},
		{"a string replaces a map", m{"a": m{"b": 1}}, m{"a": "x"}, m{"a": "x"}},
		{"null removes a default", m{"a": 1, "b": m{"c": 1, "d": 2}}, m{"a": nil, "b": m{"c": nil}}, m{"b": m{"d": 2}}},
		{"null without a default is removed", m{}, m{"a": nil, "b": m{"c": nil}}, m{"b": m{}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := values.Normalize(test.defaults)
			if got := values.Coalesce(test.defaults, test.given); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if after := values.Normalize(test.defaults); !reflect.DeepEqual(before, after) {
				t.Errorf("the defaults changed from %v to %v", before, after)
			}
		})
	}
}
