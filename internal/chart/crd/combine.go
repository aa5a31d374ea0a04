package crd

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// combine converts what is left of allOf, anyOf, oneOf and not to value
// validations: schemas that say nothing of the shape and only narrow it.
//
// A branch that can be expressed only in part takes more than it should. That
// is harmless in allOf and anyOf. In oneOf it would make two branches match, so
// oneOf becomes anyOf; and under not it would refuse too much, so not is left
// out.
func (c *converter) combine(n node, out *apiextensionsv1.JSONSchemaProps, at place) {
	shape := *out
	for _, schema := range anyList(n["allOf"]) {
		branch, exact := c.narrow(schema, &shape, at)
		if !isTrivial(branch) {
			out.AllOf = append(out.AllOf, branch)
		}
		if !exact {
			c.lose(at, "allOf, in part")
		}
	}
	if schemas, ok := n["anyOf"].([]any); ok {
		branches, exact := c.branches(schemas, &shape, at)
		if !slices.ContainsFunc(branches, isTrivial) {
			out.AnyOf = branches
		}
		c.loseUnless(exact, at, "anyOf", branches)
	}
	if schemas, ok := n["oneOf"].([]any); ok {
		branches, exact := c.branches(schemas, &shape, at)
		switch {
		case exact:
			out.OneOf = branches
		case out.AnyOf == nil:
			out.AnyOf = branches
		case branches != nil:
			out.AllOf = append(out.AllOf, apiextensionsv1.JSONSchemaProps{AnyOf: branches})
		}
		c.loseUnless(exact, at, "oneOf", branches)
	}
	if schema, ok := n["not"]; ok {
		if branch, exact := c.narrow(schema, &shape, at); exact {
			out.Not = &branch
		} else {
			c.lose(at, "not")
		}
	}
}

func (c *converter) loseUnless(exact bool, at place, keyword string, branches []apiextensionsv1.JSONSchemaProps) {
	switch {
	case exact:
	case branches == nil:
		c.lose(at, keyword)
	default:
		c.lose(at, keyword+", in part")
	}
}

// branches narrows by each schema. It returns none if one of them takes all
// that the shape takes and others do not matter.
func (c *converter) branches(schemas []any, shape *apiextensionsv1.JSONSchemaProps, at place) (branches []apiextensionsv1.JSONSchemaProps, exact bool) {
	exact = true
	trivial := false
	for _, schema := range schemas {
		branch, ok := c.narrow(schema, shape, at)
		exact = exact && ok
		trivial = trivial || isTrivial(branch)
		branches = append(branches, branch)
	}
	if trivial && !exact {
		return nil, false
	}
	return branches, exact
}
