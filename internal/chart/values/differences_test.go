package values_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/chart/values"
)

func TestDifferences_ListsPaths(t *testing.T) {
	was := map[string]any{"a": map[string]any{"b": int64(1), "c": "x"}, "d": []any{"e", 1, 2}, "short": []any{}, "gone": true}
	is := map[string]any{"a": map[string]any{"b": int64(2), "c": "x"}, "d": []any{"f", 1, 3}, "short": []any{1}, "more": true}
	if got := strings.Join(values.Differences(was, is, "spec"), " "); got != "spec.a.b spec.d[0] spec.d[2] spec.gone spec.more 1 more" {
		t.Error(got)
	}
	if got := values.Differences(was, was, ""); got != nil {
		t.Error(got)
	}
	many := map[string]any{}
	for i := range 9 {
		many[strconv.Itoa(i)] = i
	}
	if got := strings.Join(values.Differences(map[string]any{}, many, ""), " "); got != "0 1 2 3 4 4 more" {
		t.Error(got)
	}
}
