package compat

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

func (c *comparer) objects(from, to site, at string) {
	c.count(SizeNarrowed, at, "minProperties", from.schema.MinProperties, to.schema.MinProperties, 1)
	c.count(SizeNarrowed, at, "maxProperties", from.schema.MaxProperties, to.schema.MaxProperties, -1)
	c.required(from, to, at)
	c.properties(from, to, at)
	if !from.shape {
		return
	}
	c.others(from, to, at)
	if to.schema.XEmbeddedResource && !from.schema.XEmbeddedResource {
		c.breaksf(ValidationAdded, at, "must be a complete Kubernetes object")
	}
}

func (c *comparer) required(from, to site, at string) {
	for _, name := range to.schema.Required {
		// The API server sets defaults before it validates the object.
		if field, ok := to.schema.Properties[name]; slices.Contains(from.schema.Required, name) || ok && to.shape && field.Default != nil {
			continue
		}
		c.breaksf(RequiredAdded, child(at, name), "now required")
	}
	for _, name := range from.schema.Required {
		if !slices.Contains(to.schema.Required, name) && from.shape {
			c.notef(Widened, child(at, name), "no longer required")
		}
	}
}

func (c *comparer) properties(from, to site, at string) {
	names := sets.KeySet(from.schema.Properties).Union(sets.KeySet(to.schema.Properties))
	for _, name := range sets.List(names) {
		was, had := from.schema.Properties[name]
		is, has := to.schema.Properties[name]
		path := child(at, name)
		before, after := from.entries(), to.entries()
		switch {
		case had && has:
			c.schema(from.at(&was), to.at(&is), path)
		case !from.shape && has:
			c.schema(from.at(anything()), to.at(&is), path)
		case !from.shape:
		case had && after != nil:
			c.schema(from.at(&was), to.at(after), path)
		case had && to.open():
			c.breaksf(PropertyUndeclared, path, "no longer in the schema, values are kept but not validated")
		case had:
			c.breaksf(PropertyRemoved, path, "removed, values are dropped")
		case before != nil:
			c.schema(from.at(before), to.at(&is), path)
		default:
			c.notef(PropertyAdded, path, "added")
		}
	}
}

// others compares the handling of undeclared keys.
func (c *comparer) others(from, to site, at string) {
	was, is := from.entries(), to.entries()
	path := child(at, "*")
	switch {
	case was != nil && is != nil:
		c.schema(from.at(was), to.at(is), path)
	case was != nil && to.open():
		c.notef(Widened, path, "undeclared keys may have any value")
	case was != nil, from.open() && is == nil && !to.open():
		c.breaksf(Closed, at, "undeclared keys are dropped")
	case from.open() && is != nil:
		c.schema(from.at(anything()), to.at(is), path)
	case !from.open() && (is != nil || to.open()):
		c.notef(Widened, at, "undeclared keys are kept")
	}
}

// entries returns the schema of undeclared keys, or nil. The schema true accepts any
// value and drops all of its fields.
func (s site) entries() *props {
	more := s.schema.AdditionalProperties
	switch {
	case more == nil, more.Schema == nil && !more.Allows:
		return nil
	case more.Schema == nil:
		return &props{Nullable: true}
	}
	return more.Schema
}

func child(at, name string) string { return strings.TrimPrefix(at+"."+name, ".") }

func (c *comparer) lists(from, to site, at string) {
	c.count(SizeNarrowed, at, "minItems", from.schema.MinItems, to.schema.MinItems, 1)
	c.count(SizeNarrowed, at, "maxItems", from.schema.MaxItems, to.schema.MaxItems, -1)
	was, is := uniqueness(from.schema), uniqueness(to.schema)
	switch {
	case was == is:
	case is == "":
		c.notef(Widened, at, "items no longer have to be unique")
	default:
		c.breaksf(SizeNarrowed, at, "%s", is)
	}
	if from.schema.Items != nil || to.schema.Items != nil {
		c.schema(from.item(), to.item(), at+"[*]")
	}
}

// uniqueness describes the constraint of a list whose items must be unique. It is
// empty if items may be equal.
func uniqueness(s *props) string {
	switch {
	case s.XListType != nil && *s.XListType == "map":
		return "items must be unique by " + strings.Join(slices.Sorted(slices.Values(s.XListMapKeys)), ", ")
	case s.UniqueItems, s.XListType != nil && *s.XListType == "set":
		return "items must be unique"
	}
	return ""
}

// item returns the site of a list's items. A schema that preserves unknown fields
// preserves those of list items, too.
func (s site) item() site {
	inner := s.at(anything())
	inner.kept = s.shape && s.open()
	if s.schema.Items != nil && s.schema.Items.Schema != nil {
		inner.schema = s.schema.Items.Schema
	}
	return inner
}
