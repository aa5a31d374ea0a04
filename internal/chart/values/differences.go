package values

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// maxDifferences is the maximum number of paths that Differences returns.
const maxDifferences = 5

// Differences returns the paths below a path at which two JSON values differ, without the
// values. If there are many, the last item is their number.
func Differences(before, after any, path string) []string {
	all := differing(before, after, path)
	if len(all) > maxDifferences {
		return append(all[:maxDifferences], fmt.Sprintf("%d more", len(all)-maxDifferences))
	}
	return all
}

func differing(before, after any, path string) []string {
	var found []string
	old, oldIsMap := before.(map[string]any)
	now, nowIsMap := after.(map[string]any)
	items, oldIsList := before.([]any)
	others, nowIsList := after.([]any)
	switch {
	case oldIsMap && nowIsMap:
		all := map[string]any{}
		maps.Copy(all, old)
		maps.Copy(all, now)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			found = append(found, differing(old[key], now[key], strings.TrimPrefix(path+"."+key, "."))...)
		}
	case oldIsList && nowIsList && len(items) == len(others):
		for i := range items {
			found = append(found, differing(items[i], others[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	case !reflect.DeepEqual(before, after):
		found = append(found, path)
	}
	return found
}
