package crd

import "slices"

// place is where in the values a schema applies.
type place struct {
	path string
	// value is the chart's default there, nil if there is none.
	value any
	// assumed tells that value stands for the defaults of all entries of a map.
	assumed bool
	// refs holds the references that are inlined in what holds this place. Of
	// schemas that have become one it has those of all, so that not each of them
	// need lead here.
	refs []string
}

// inlining returns the place within what more references lead to.
func (p place) inlining(refs []string) place {
	p.refs = slices.Clip(p.refs)
	for _, ref := range refs {
		if !slices.Contains(p.refs, ref) {
			p.refs = append(p.refs, ref)
		}
	}
	return p
}

// child returns the place of a key.
func (p place) child(key string) place {
	p.path += "." + key
	defaults, _ := p.value.(map[string]any)
	p.value = defaults[key]
	return p
}

// entry returns the place of any entry of a map. As defaults are merged with
// entries of the same key, what any default has may be there.
func (p place) entry() place {
	defaults, _ := p.value.(map[string]any)
	merged := map[string]any{}
	for _, value := range defaults {
		if entry, ok := value.(map[string]any); ok {
			overlay(merged, entry)
		}
	}
	p.path += ".*"
	p.value, p.assumed = nil, true
	if len(merged) > 0 {
		p.value = merged
	}
	return p
}

// overlay adds what from has, in nested maps, too.
func overlay(into, from map[string]any) {
	for key, value := range from {
		old, isMap := into[key].(map[string]any)
		if inner, ok := value.(map[string]any); ok {
			fresh := map[string]any{}
			if isMap {
				overlay(fresh, old)
			}
			overlay(fresh, inner)
			value = fresh
		}
		if value != nil || into[key] == nil {
			into[key] = value
		}
	}
}

// item returns the place of any item of a list. Lists are replaced whole, so
// there are no defaults in them.
func (p place) item() place {
	p.path += "[*]"
	p.value = nil
	return p
}
