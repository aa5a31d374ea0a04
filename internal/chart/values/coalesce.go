package values

import "maps"

// Coalesce returns the values that a release has: defaults with what was given
// over them. A null takes a default away. The result shares what it can with
// both, so that nobody may change it.
func Coalesce(defaults, given map[string]any) map[string]any {
	if len(given) == 0 {
		return defaults
	}
	all := maps.Clone(defaults)
	if all == nil {
		all = make(map[string]any, len(given))
	}
	for key, over := range given {
		base, isMap := defaults[key].(map[string]any)
		overMap, overIsMap := over.(map[string]any)
		switch {
		case over == nil:
			delete(all, key)
		case overIsMap:
			if !isMap {
				base = nil
			}
			all[key] = Coalesce(base, overMap)
		default:
			all[key] = over
		}
	}
	return all
}
