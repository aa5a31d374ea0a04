package crd

import (
	"maps"
	"reflect"
	"slices"
)

// resolve returns the schema with its $ref inlined and its allOf merged as far as
// possible, and the location with the inlined references. What remains in allOf are
// validations.
func (c *converter) resolve(schema any, at location) (node, location) {
	n, ok := schema.(node)
	switch {
	case isFalse(schema):
		return node{"not": node{}}, at
	case !ok:
		return node{}, at
	}
	if ref, ok := n["$ref"].(string); ok {
		return c.follow(n, ref, at)
	}
	for _, key := range []string{"$dynamicRef", "$recursiveRef"} {
		if _, ok := n[key]; ok {
			c.lose(at, key)
		}
	}
	n = normalize(n)
	branches, _ := n["allOf"].([]any)
	delete(n, "allOf")
	within := at
	for _, branch := range branches {
		// Several branches may refer to the same schema.
		resolved, inner := c.resolve(branch, at)
		n = merge(n, resolved)
		within = within.inlining(inner.refs)
	}
	return n, within
}

// follow inlines a $ref. It omits a recursive reference.
func (c *converter) follow(n node, ref string, at location) (node, location) {
	beside := maps.Clone(n)
	delete(beside, "$ref")
	target, found := c.doc.lookup(ref)
	switch {
	case !found:
		c.loseForGood(at, "$ref "+ref+", which is in another document")
	case slices.Contains(at.refs, ref) && c.doc.recursive(ref):
		c.lose(at, "$ref "+ref+", which is recursive")
		found = false
	}
	if !found {
		return annotations(beside), at
	}
	at = at.inlining([]string{ref})
	if !c.doc.siblings {
		beside = annotations(beside)
	}
	if len(beside) == 0 {
		return c.resolve(target, at)
	}
	own, within := c.resolve(beside, at)
	inlined, inner := c.resolve(target, at)
	// The description next to the $ref describes this field.
	return merge(own, inlined), within.inlining(inner.refs)
}

// annotations returns the title and the description of a schema.
func annotations(n node) node {
	kept := node{}
	for _, key := range []string{"title", "description"} {
		if value, ok := n[key]; ok {
			kept[key] = value
		}
	}
	return kept
}

// merge returns a schema that accepts at least the values that both schemas accept.
// Keywords of the second that cannot be merged into the first remain in allOf.
func merge(into, from node) node {
	rest := node{}
	for key, value := range from {
		old, exists := into[key]
		switch {
		case key == "allOf":
			into[key] = append(slices.Clip(anyList(into[key])), anyList(value)...)
		case !exists:
			into[key] = value
		case isAnnotation(key), reflect.DeepEqual(old, value):
		case key == "type":
			into[key] = intersect(typeList(old), typeList(value))
		case key == "properties":
			into[key] = mergeProperties(old, value)
		case key == "required":
			into[key] = union(anyList(old), anyList(value))
		case key == "additionalProperties", key == "items":
			into[key] = both(old, value)
		default:
			rest[key] = value
		}
	}
	if len(rest) > 0 {
		into["allOf"] = append(slices.Clip(anyList(into["allOf"])), rest)
	}
	return into
}

func mergeProperties(a, b any) any {
	first, _ := a.(node)
	second, _ := b.(node)
	merged := make(node, len(first)+len(second))
	maps.Copy(merged, first)
	for name, schema := range second {
		if old, exists := merged[name]; exists {
			schema = both(old, schema)
		}
		merged[name] = schema
	}
	return merged
}

// both returns a schema that accepts the values that both schemas accept.
func both(a, b any) any {
	_, first := a.([]any)
	_, second := b.([]any)
	switch {
	case isFalse(a), isTrue(b):
		return a
	case isFalse(b), isTrue(a):
		return b
	case first, reflect.DeepEqual(a, b):
		// A list contains one schema for each position.
		return a
	case second:
		return b
	}
	return node{"allOf": []any{a, b}}
}

// union returns the items of a, and those of b that are not in a.
func union[T comparable](a, b []T) []T {
	all := slices.Clone(a)
	for _, item := range b {
		if !slices.Contains(all, item) {
			all = append(all, item)
		}
	}
	return all
}

// intersect returns the types that are in both lists. An integer is also a number.
func intersect(a, b []string) []any {
	var common []any
	for _, t := range a {
		if slices.Contains(b, t) || t == "integer" && slices.Contains(b, "number") {
			common = append(common, t)
		}
	}
	if slices.Contains(b, "integer") && slices.Contains(a, "number") && !slices.Contains(a, "integer") {
		common = append(common, "integer")
	}
	return common
}

func anyList(value any) []any {
	items, _ := value.([]any)
	return items
}

func isAnnotation(key string) bool {
	switch key {
	case "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly",
		"$schema", "$id", "id", "$anchor", "$comment", "$defs", "definitions", "$vocabulary", "$dynamicAnchor", "$recursiveAnchor":
		return true
	}
	return false
}
