package compat

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// Class is a kind of change.
type Class string

// Classes of breaking changes.
const (
	// NamesChanged: the group, kind, plural, singular or list kind is another,
	// or a short name or category is gone, which is not breaking.
	NamesChanged Class = "NamesChanged"
	// ScopeChanged: from namespaced to cluster-scoped or back.
	ScopeChanged Class = "ScopeChanged"
	// VersionRemoved and VersionUnserved: objects of the version can no longer
	// be read, or by other versions only.
	VersionRemoved  Class = "VersionRemoved"
	VersionUnserved Class = "VersionUnserved"
	// SubresourceChanged: status or scale is gone, or scale means other fields.
	SubresourceChanged Class = "SubresourceChanged"
	// PropertyRemoved: values of the property are dropped.
	PropertyRemoved Class = "PropertyRemoved"
	// PropertyUndeclared: the schema knows the property no more. Its values are
	// kept, for the object keeps unknown fields, and nobody reads them.
	PropertyUndeclared Class = "PropertyUndeclared"
	// Closed: an object that took any key drops those that are not declared.
	Closed Class = "Closed"
	// TypeChanged: values of a type are refused.
	TypeChanged Class = "TypeChanged"
	// NullableRemoved: null is refused, or dropped.
	NullableRemoved Class = "NullableRemoved"
	// RequiredAdded: a property has to be there.
	RequiredAdded Class = "RequiredAdded"
	// EnumNarrowed, PatternChanged, FormatAdded, RangeNarrowed, LengthNarrowed:
	// texts and numbers are refused.
	EnumNarrowed   Class = "EnumNarrowed"
	PatternChanged Class = "PatternChanged"
	FormatAdded    Class = "FormatAdded"
	RangeNarrowed  Class = "RangeNarrowed"
	LengthNarrowed Class = "LengthNarrowed"
	// SizeNarrowed: lists or objects are refused for the number of what they
	// hold, or lists that hold something twice.
	SizeNarrowed Class = "SizeNarrowed"
	// ValidationAdded: a condition of allOf, anyOf, oneOf, not or a rule is new,
	// or another.
	ValidationAdded Class = "ValidationAdded"
)

// Classes of changes that break nothing.
const (
	VersionAdded          Class = "VersionAdded"
	VersionDeprecated     Class = "VersionDeprecated"
	StorageVersionChanged Class = "StorageVersionChanged"
	SubresourceAdded      Class = "SubresourceAdded"
	PropertyAdded         Class = "PropertyAdded"
	// Widened: what was refused, or dropped, is taken.
	Widened Class = "Widened"
	// DefaultChanged: the API server fills in something else.
	DefaultChanged Class = "DefaultChanged"
)

// Change is one difference between two definitions.
type Change struct {
	Class Class `json:"class"`
	// Version is the version whose schema differs, empty where it is the
	// definition as a whole.
	Version string `json:"version,omitempty"`
	// Path is the field of the object, as spec.image.tag; items of a list are
	// "[*]" and entries of a map "*". It is empty for the object itself.
	Path string `json:"path,omitempty"`
	// Message says what was and what is.
	Message  string `json:"message"`
	Breaking bool   `json:"breaking"`
}

// String formats the change for people, without its version.
func (c Change) String() string {
	if c.Path == "" {
		return c.Message
	}
	return c.Path + ": " + c.Message
}

// breaksObjects reports whether an object which is stored may be refused from now
// on, or lose a field.
func (c Change) breaksObjects() bool { return c.Breaking && c.Class != PropertyUndeclared }

// maxBreaks bounds how many changes are named in one sentence.
const maxBreaks = 5

// Breaks tells in one line what of a change from one definition to another
// breaks objects that are stored, empty if nothing does.
func Breaks(from, to *apiextensionsv1.CustomResourceDefinition) string {
	var breaks []string
	for _, change := range Compare(from, to) {
		// Versions mostly differ in the same.
		if text := change.String(); change.breaksObjects() && !slices.Contains(breaks, text) {
			breaks = append(breaks, text)
		}
	}
	if rest := len(breaks) - maxBreaks; rest > 0 {
		breaks = append(breaks[:maxBreaks], fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(breaks, "; ")
}

// Compare returns what has changed from one definition to another, breaking
// changes first.
func Compare(from, to *apiextensionsv1.CustomResourceDefinition) []Change {
	c := &comparer{}
	c.definition(from, to)
	slices.SortStableFunc(c.changes, func(a, b Change) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Class, b.Class))
	})
	return slices.Compact(c.changes)
}

func rank(c Change) int {
	if c.Breaking {
		return 0
	}
	return 1
}

// comparer gathers changes.
type comparer struct {
	version string
	changes []Change
}

func (c *comparer) breaksf(class Class, at, format string, args ...any) {
	c.changes = append(c.changes, Change{Class: class, Version: c.version, Path: at, Message: fmt.Sprintf(format, args...), Breaking: true})
}

func (c *comparer) notef(class Class, at, format string, args ...any) {
	c.changes = append(c.changes, Change{Class: class, Version: c.version, Path: at, Message: fmt.Sprintf(format, args...)})
}

func (c *comparer) definition(from, to *apiextensionsv1.CustomResourceDefinition) {
	c.names(from, to)
	if was, is := from.Spec.Scope, to.Spec.Scope; was != is {
		c.breaksf(ScopeChanged, "", "scope %s becomes %s", was, is)
	}
	next := map[string]apiextensionsv1.CustomResourceDefinitionVersion{}
	stored := ""
	for _, v := range to.Spec.Versions {
		next[v.Name] = v
		if v.Storage {
			stored = v.Name
		}
	}
	for _, v := range from.Spec.Versions {
		c.version = v.Name
		is, ok := next[v.Name]
		delete(next, v.Name)
		if !ok {
			c.breaksf(VersionRemoved, "", "version %s is gone", v.Name)
			continue
		}
		c.versions(v, is, from.Spec.PreserveUnknownFields, to.Spec.PreserveUnknownFields)
		if v.Storage && stored != "" && stored != v.Name {
			c.notef(StorageVersionChanged, "", "objects are stored as %s, not as %s", stored, v.Name)
		}
	}
	for _, v := range to.Spec.Versions {
		if _, isNew := next[v.Name]; isNew {
			c.version = v.Name
			c.notef(VersionAdded, "", "version %s is new", v.Name)
		}
	}
}

func (c *comparer) names(from, to *apiextensionsv1.CustomResourceDefinition) {
	was, is := from.Spec.Names, to.Spec.Names
	for _, name := range []struct{ what, was, is string }{
		{"group", from.Spec.Group, to.Spec.Group},
		{"kind", was.Kind, is.Kind},
		{"list kind", was.ListKind, is.ListKind},
		{"plural", was.Plural, is.Plural},
		{"singular", was.Singular, is.Singular},
	} {
		// What is left out is filled in by the API server.
		if name.was != name.is && name.was != "" && name.is != "" {
			c.breaksf(NamesChanged, "", "%s %s becomes %s", name.what, name.was, name.is)
		}
	}
	for _, list := range []struct {
		what    string
		was, is []string
	}{{"short name", was.ShortNames, is.ShortNames}, {"category", was.Categories, is.Categories}} {
		for _, name := range without(list.was, list.is) {
			c.notef(NamesChanged, "", "the %s %s is gone", list.what, name)
		}
	}
}

// versions compares two versions of one name. Definitions of old may keep
// unknown fields as a whole.
func (c *comparer) versions(from, to apiextensionsv1.CustomResourceDefinitionVersion, wasOpen, isOpen bool) {
	if from.Served && !to.Served {
		c.breaksf(VersionUnserved, "", "version %s is no longer served", from.Name)
	}
	if !from.Deprecated && to.Deprecated {
		c.notef(VersionDeprecated, "", "version %s is deprecated", from.Name)
	}
	c.subresources(from.Subresources, to.Subresources)
	was, is := root(from.Schema, wasOpen), root(to.Schema, isOpen)
	// These three are kept in any case.
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		_, had := was.Properties[key]
		_, has := is.Properties[key]
		if had != has {
			delete(was.Properties, key)
			delete(is.Properties, key)
		}
	}
	c.schema(site{schema: was, shape: true}, site{schema: is, shape: true}, "")
}

// root returns a copy of the schema of the whole object. A version without any
// keeps everything.
func root(schema *apiextensionsv1.CustomResourceValidation, open bool) *apiextensionsv1.JSONSchemaProps {
	copied := &apiextensionsv1.JSONSchemaProps{Type: "object"}
	if schema != nil && schema.OpenAPIV3Schema != nil {
		copied = schema.OpenAPIV3Schema.DeepCopy()
	} else {
		open = true
	}
	if open {
		copied.XPreserveUnknownFields = new(true)
	}
	return copied
}

func (c *comparer) subresources(from, to *apiextensionsv1.CustomResourceSubresources) {
	was := ptr.Deref(from, apiextensionsv1.CustomResourceSubresources{})
	is := ptr.Deref(to, apiextensionsv1.CustomResourceSubresources{})
	switch {
	case was.Status != nil && is.Status == nil:
		c.breaksf(SubresourceChanged, "", "the subresource status is gone")
	case was.Status == nil && is.Status != nil:
		c.notef(SubresourceAdded, "", "the subresource status is new")
	}
	switch {
	case was.Scale == nil && is.Scale != nil:
		c.notef(SubresourceAdded, "", "the subresource scale is new")
	case was.Scale != nil && is.Scale == nil:
		c.breaksf(SubresourceChanged, "", "the subresource scale is gone")
	case was.Scale != nil && !reflect.DeepEqual(was.Scale, is.Scale):
		c.breaksf(SubresourceChanged, "", "the subresource scale means other fields: %s", scalePaths(is.Scale))
	}
}

func scalePaths(s *apiextensionsv1.CustomResourceSubresourceScale) string {
	paths := s.SpecReplicasPath + ", " + s.StatusReplicasPath
	if s.LabelSelectorPath != nil {
		paths += ", " + *s.LabelSelectorPath
	}
	return paths
}
