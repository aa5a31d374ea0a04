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
	// NamesChanged: the group, kind, plural, singular or list kind has changed. It
	// is not breaking if a short name or category was removed.
	NamesChanged Class = "NamesChanged"
	// ScopeChanged: the scope changed between namespaced and cluster-scoped.
	ScopeChanged Class = "ScopeChanged"
	// VersionRemoved and VersionUnserved: clients can no longer use the version.
	VersionRemoved  Class = "VersionRemoved"
	VersionUnserved Class = "VersionUnserved"
	// SubresourceChanged: status or scale was removed, or scale refers to other
	// fields.
	SubresourceChanged Class = "SubresourceChanged"
	// PropertyRemoved: the API server drops values of the property.
	PropertyRemoved Class = "PropertyRemoved"
	// PropertyUndeclared: the schema no longer declares the property. The API
	// server keeps its values, because the object preserves unknown fields.
	PropertyUndeclared Class = "PropertyUndeclared"
	// Closed: an object that accepted any key now drops undeclared keys.
	Closed Class = "Closed"
	// TypeChanged: values of a type are rejected.
	TypeChanged Class = "TypeChanged"
	// NullableRemoved: null is rejected or dropped.
	NullableRemoved Class = "NullableRemoved"
	// RequiredAdded: a property is now required.
	RequiredAdded Class = "RequiredAdded"
	// EnumNarrowed, PatternChanged, FormatAdded, RangeNarrowed, LengthNarrowed:
	// some strings or numbers are rejected.
	EnumNarrowed   Class = "EnumNarrowed"
	PatternChanged Class = "PatternChanged"
	FormatAdded    Class = "FormatAdded"
	RangeNarrowed  Class = "RangeNarrowed"
	LengthNarrowed Class = "LengthNarrowed"
	// SizeNarrowed: lists or objects are rejected for the number of their items or
	// keys, or lists for duplicate items.
	SizeNarrowed Class = "SizeNarrowed"
	// ValidationAdded: a condition of allOf, anyOf, oneOf or not, or a validation
	// rule, was added or changed.
	ValidationAdded Class = "ValidationAdded"
)

// Classes of compatible changes.
const (
	VersionAdded          Class = "VersionAdded"
	VersionDeprecated     Class = "VersionDeprecated"
	StorageVersionChanged Class = "StorageVersionChanged"
	SubresourceAdded      Class = "SubresourceAdded"
	PropertyAdded         Class = "PropertyAdded"
	// Widened: values that were rejected or dropped are now accepted.
	Widened Class = "Widened"
	// DefaultChanged: the API server sets another default.
	DefaultChanged Class = "DefaultChanged"
)

// Change is one difference between two CRDs.
type Change struct {
	Class Class `json:"class"`
	// Version is the version whose schema differs. It is empty if the CRD differs
	// as a whole.
	Version string `json:"version,omitempty"`
	// Path is the path of the field, such as spec.image.tag. Items of a list are
	// "[*]" and entries of a map "*". It is empty for the object itself.
	Path string `json:"path,omitempty"`
	// Message describes the old and the new state.
	Message  string `json:"message"`
	Breaking bool   `json:"breaking"`
}

// String formats the change for users, without its version.
func (c Change) String() string {
	if c.Path == "" {
		return c.Message
	}
	return c.Path + ": " + c.Message
}

// breaksObjects reports whether a stored object may be rejected or lose a field.
func (c Change) breaksObjects() bool { return c.Breaking && c.Class != PropertyUndeclared }

// maxBreaks is the maximum number of changes that Breaks lists.
const maxBreaks = 5

// Breaks returns, on one line, the changes from one CRD to another that break stored
// objects, or an empty string.
func Breaks(from, to *apiextensionsv1.CustomResourceDefinition) string {
	var breaks []string
	for _, change := range Compare(from, to) {
		// The versions of a CRD mostly have the same changes.
		if text := change.String(); change.breaksObjects() && !slices.Contains(breaks, text) {
			breaks = append(breaks, text)
		}
	}
	if rest := len(breaks) - maxBreaks; rest > 0 {
		breaks = append(breaks[:maxBreaks], fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(breaks, "; ")
}

// Compare returns the changes from one CRD to another, breaking changes first.
func Compare(from, to *apiextensionsv1.CustomResourceDefinition) []Change {
	c := &comparer{}
	c.crd(from, to)
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

// comparer collects changes.
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

func (c *comparer) crd(from, to *apiextensionsv1.CustomResourceDefinition) {
	c.names(from, to)
	if was, is := from.Spec.Scope, to.Spec.Scope; was != is {
		c.breaksf(ScopeChanged, "", "scope changed from %s to %s", was, is)
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
			c.breaksf(VersionRemoved, "", "version %s was removed", v.Name)
			continue
		}
		c.versions(v, is, from.Spec.PreserveUnknownFields, to.Spec.PreserveUnknownFields)
		if v.Storage && stored != "" && stored != v.Name {
			c.notef(StorageVersionChanged, "", "storage version changed from %s to %s", v.Name, stored)
		}
	}
	for _, v := range to.Spec.Versions {
		if _, isNew := next[v.Name]; isNew {
			c.version = v.Name
			c.notef(VersionAdded, "", "version %s was added", v.Name)
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
		// The API server sets names that are missing.
		if name.was != name.is && name.was != "" && name.is != "" {
			c.breaksf(NamesChanged, "", "%s changed from %s to %s", name.what, name.was, name.is)
		}
	}
	for _, list := range []struct {
		what    string
		was, is []string
	}{{"short name", was.ShortNames, is.ShortNames}, {"category", was.Categories, is.Categories}} {
		for _, name := range without(list.was, list.is) {
			c.notef(NamesChanged, "", "%s %s was removed", list.what, name)
		}
	}
}

// versions compares the old and the new state of one version. Old CRDs can preserve
// unknown fields of whole objects.
func (c *comparer) versions(from, to apiextensionsv1.CustomResourceDefinitionVersion, wasOpen, isOpen bool) {
	if from.Served && !to.Served {
		c.breaksf(VersionUnserved, "", "version %s is no longer served", from.Name)
	}
	if !from.Deprecated && to.Deprecated {
		c.notef(VersionDeprecated, "", "version %s is deprecated", from.Name)
	}
	c.subresources(from.Subresources, to.Subresources)
	was, is := root(from.Schema, wasOpen), root(to.Schema, isOpen)
	// The API server always keeps these keys.
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

// root returns a copy of the schema of the whole object. A version without a schema
// preserves all fields.
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
		c.breaksf(SubresourceChanged, "", "subresource status was removed")
	case was.Status == nil && is.Status != nil:
		c.notef(SubresourceAdded, "", "subresource status was added")
	}
	switch {
	case was.Scale == nil && is.Scale != nil:
		c.notef(SubresourceAdded, "", "subresource scale was added")
	case was.Scale != nil && is.Scale == nil:
		c.breaksf(SubresourceChanged, "", "subresource scale was removed")
	case was.Scale != nil && !reflect.DeepEqual(was.Scale, is.Scale):
		c.breaksf(SubresourceChanged, "", "subresource scale refers to other fields: %s", scalePaths(is.Scale))
	}
}

func scalePaths(s *apiextensionsv1.CustomResourceSubresourceScale) string {
	paths := s.SpecReplicasPath + ", " + s.StatusReplicasPath
	if s.LabelSelectorPath != nil {
		paths += ", " + *s.LabelSelectorPath
	}
	return paths
}
