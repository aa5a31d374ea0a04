package values_test

import (
	"reflect"
	"testing"

	"github.com/chartwright/chartwright/internal/chart/values"
)

func TestNumbers(t *testing.T) {
	given := map[string]any{
		"port": int64(80), "half": 0.5, "text": "1", "large": int64(1<<53 + 1), "none": nil,
		"list":   []any{int64(1), map[string]any{"n": int64(2)}, []any{int64(3)}},
		"nested": map[string]any{"a": int64(4), "b": int64(5)},
		"set":    int64(6), "setList": []any{int64(7)},
	}
	numbers := values.Numbers{Set: map[string]any{
		"set": int64(6), "setList": []any{int64(7)}, "nested": map[string]any{"b": int64(5)},
	}}
	want := map[string]any{
		"port": 80.0, "half": 0.5, "text": "1", "large": float64(1 << 53), "none": nil,
		"list":   []any{1.0, map[string]any{"n": 2.0}, []any{3.0}},
		"nested": map[string]any{"a": 4.0, "b": int64(5)},
		"set":    int64(6), "setList": []any{int64(7)},
	}
	if got := numbers.For(given); !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, want %#v", got, want)
	}
	if _, kept := given["list"].([]any)[0].(int64); !kept {
		t.Error("the given values were changed")
	}
	numbers.Integers = true
	if got := numbers.For(given); !reflect.DeepEqual(got, given) {
		t.Errorf("with integers, got %#v", got)
	}
}
