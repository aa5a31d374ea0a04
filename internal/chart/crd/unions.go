package crd

import (
	"maps"
	"slices"
)

// unify merges the alternatives of an anyOf or oneOf into one schema if the result is
// equivalent: null and one other alternative, or alternatives of different types,
// whose keywords do not conflict. The returned location contains the references that
// are inlined in the alternatives.
func (c *converter) unify(n node, at location) (node, location) {
	within := at
	for _, key := range []string{"anyOf", "oneOf"} {
		raw, ok := n[key].([]any)
		if !ok {
			continue
		}
		branches, null, inner := c.alternatives(raw, at)
		within = within.inlining(inner.refs)
		var one node
		switch kinds := kindsOf(branches); {
		case key == "anyOf" && slices.ContainsFunc(branches, hasOnlyAnnotations):
			one = node{}
		case len(branches) == 0:
			one = node{"type": []any{}}
		case len(branches) == 1:
			one = branches[0]
		case disjoint(kinds):
			one = c.join(branches, kinds, at)
		case same(kinds):
			one = node{"type": []any{kinds[0].names[0]}, key: asAny(branches)}
			null = null || slices.ContainsFunc(kinds, func(t types) bool { return t.null })
		default:
			n[key] = asAny(branches)
			continue
		}
		if null {
			one = withNull(one)
		}
		delete(n, key)
		n = merge(n, one)
	}
	return n, within
}

// alternatives resolves the branches and removes those that only accept null.
func (c *converter) alternatives(raw []any, at location) (branches []node, null bool, within location) {
	within = at
	for _, schema := range raw {
		branch, inner := c.unify(c.resolve(schema, at))
		within = within.inlining(inner.refs)
		if t := typesOf(branch); t.known && t.null && len(t.names) == 0 {
			null = true
			continue
		}
		branches = append(branches, branch)
	}
	return branches, null, within
}

// join returns one schema for alternatives of different types. This is possible
// because each keyword applies to values of one type.
func (c *converter) join(branches []node, kinds []types, at location) node {
	one := node{}
	var names, values []any
	enums, open := 0, false
	for i, branch := range branches {
		names = append(names, asAny(kinds[i].names)...)
		if kinds[i].null {
			names = append(names, "null")
		}
		switch enum, ok := branch["enum"].([]any); {
		case ok:
			values = append(values, enum...)
			enums++
		case kinds[i].only("boolean"):
			values = append(values, true, false)
		default:
			open = true
		}
		for _, key := range slices.Sorted(maps.Keys(branch)) {
			switch kind, specific := kindOf[key]; {
			case key == "type", key == "enum":
			case specific && kinds[i].has(kind):
				one[key] = branch[key]
			case isAnnotation(key):
				if _, exists := one[key]; !exists {
					one[key] = branch[key]
				}
			case !specific:
				c.lose(at, key+" of one alternative")
			}
		}
	}
	one["type"] = names
	switch {
	case enums > 0 && open:
		c.lose(at, "enum of one alternative")
	case enums > 0:
		one["enum"] = values
	}
	return one
}

// withNull returns a schema that also accepts null.
func withNull(n node) node {
	if declared, ok := n["type"]; ok {
		n["type"] = append(asAny(typeList(declared)), "null")
	}
	if values, ok := n["enum"].([]any); ok {
		n["enum"] = append(slices.Clone(values), nil)
	}
	return n
}

// hasOnlyAnnotations reports whether a schema has no keyword that rejects values.
func hasOnlyAnnotations(n node) bool {
	for key := range n {
		if !isAnnotation(key) {
			return false
		}
	}
	return true
}

func kindsOf(branches []node) []types {
	kinds := make([]types, len(branches))
	for i, branch := range branches {
		kinds[i] = typesOf(branch)
	}
	return kinds
}

func disjoint(kinds []types) bool {
	for i, a := range kinds {
		for _, b := range kinds[:i] {
			if !a.disjoint(b) {
				return false
			}
		}
	}
	return true
}

// same reports whether all have the same single type.
func same(kinds []types) bool {
	return !slices.ContainsFunc(kinds, func(t types) bool { return len(t.names) != 1 || t.names[0] != kinds[0].names[0] })
}

func asAny[T any](items []T) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all
}
