package compat

import (
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

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
		for _, name := range list.was {
			if !slices.Contains(list.is, name) {
				c.notef(NamesChanged, "", "the %s %s is gone", list.what, name)
			}
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
	var was, is apiextensionsv1.CustomResourceSubresources
	if from != nil {
		was = *from
	}
	if to != nil {
		is = *to
	}
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
