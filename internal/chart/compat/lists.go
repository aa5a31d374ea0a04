package compat

import (
	"slices"
	"strings"
)

func (c *comparer) lists(from, to site, at string) {
	c.count(SizeNarrowed, at, "minItems", from.schema.MinItems, to.schema.MinItems, 1)
	c.count(SizeNarrowed, at, "maxItems", from.schema.MaxItems, to.schema.MaxItems, -1)
	was, is := uniqueBy(from.schema), uniqueBy(to.schema)
	switch {
	case was == is:
	case is == "":
		c.notef(Widened, at, "items need not be different")
	default:
		c.breaksf(SizeNarrowed, at, "items have to be different %s", is)
	}
	before, after := from.item(), to.item()
	if before.schema != nil || after.schema != nil {
		c.schema(orAnything(before), orAnything(after), at+"[*]")
	}
}

// uniqueBy tells in what the items of a list must differ, empty if in nothing.
func uniqueBy(s *props) string {
	switch {
	case s.XListType != nil && *s.XListType == "map":
		return "by " + strings.Join(slices.Sorted(slices.Values(s.XListMapKeys)), ", ")
	case s.UniqueItems, s.XListType != nil && *s.XListType == "set":
		return "altogether"
	}
	return ""
}

// item returns the site of a list's items. What keeps unknown fields keeps them
// in items of lists, too.
func (s site) item() site {
	inner := s.at(nil)
	inner.kept = s.shape && s.open()
	if s.schema.Items != nil {
		inner.schema = s.schema.Items.Schema
	}
	return inner
}

// orAnything returns the site with a schema in any case.
func orAnything(s site) site {
	if s.schema == nil {
		s.schema = anything()
	}
	return s
}
