package compat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	// Path is the place in the object, as spec.image.tag; items of a list are
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

// breaksObjects tells that an object which is stored may be refused from now
// on, or lose a field.
func (c Change) breaksObjects() bool { return c.Breaking && c.Class != PropertyUndeclared }

// maxBreaks bounds how many changes are told in one sentence.
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
