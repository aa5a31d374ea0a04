package crd

import (
	"maps"
	"slices"
)

// resolve returns the schema with its $ref inlined and what it can of its allOf
// merged in, and the place with the references that are inlined in it. What is
// left in allOf are validations.
func (c *converter) resolve(schema any, at place) (node, place) {
	var n node
	switch s := schema.(type) {
	case node:
		n = s
	case bool:
		if !s {
			return node{"not": node{}}, at
		}
		return node{}, at
	default:
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
		// Beside each other, the branches may refer to the same.
		resolved, inner := c.resolve(branch, at)
		n = merge(n, resolved)
		within = within.inlining(inner.refs)
	}
	return n, within
}

// follow inlines a $ref. One that leads to itself is cut.
func (c *converter) follow(n node, ref string, at place) (node, place) {
	beside := maps.Clone(n)
	delete(beside, "$ref")
	target, found := c.doc.lookup(ref)
	switch {
	case !found:
		c.lose(at, "$ref "+ref)
	case slices.Contains(at.refs, ref) && c.doc.recursive(ref):
		c.lose(at, "$ref "+ref+", which contains itself")
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
	// The text beside the $ref speaks of this very field.
	return merge(own, inlined), within.inlining(inner.refs)
}

// annotations returns what of a schema is for people.
func annotations(n node) node {
	kept := node{}
	for _, key := range []string{"title", "description"} {
		if value, ok := n[key]; ok {
			kept[key] = value
		}
	}
	return kept
}
