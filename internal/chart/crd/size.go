package crd

import (
	"encoding/json"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxCRD is the maximum size of the schemas of all versions of a CRD, in bytes of JSON. By
// default, the API server and etcd refuse requests of more than 1.5 MiB.
const maxCRD = 1 << 20

// fit makes the schema of spec smaller until it has at most limit bytes: first without
// descriptions, then open below fewer and fewer levels. It returns a warning for each open part.
func fit(spec *apiextensionsv1.JSONSchemaProps, limit int) []Warning {
	fits := func() bool {
		data, err := json.Marshal(spec)
		return err == nil && len(data) <= limit
	}
	if fits() {
		return nil
	}
	about := spec.Description
	undescribed(spec)
	spec.Description = about
	var opened map[string]bool
	for depth := depthOf(*spec) - 1; depth > 0 && !fits(); depth-- {
		opened = map[string]bool{}
		cut(spec, depth, location{path: "spec"}, opened)
	}
	var warnings []Warning
	for _, path := range slices.Sorted(maps.Keys(opened)) {
		warnings = append(warnings, Warning{Path: path, Lost: "the whole schema, because the CRD would be too large", Checked: true})
	}
	return warnings
}

// parts calls do for the schema of each field, item and entry, which do can change.
func parts(s *apiextensionsv1.JSONSchemaProps, at location, do func(*apiextensionsv1.JSONSchemaProps, location)) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		do(&field, at.child(name))
		s.Properties[name] = field
	}
	if s.Items != nil {
		do(s.Items.Schema, at.item())
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		do(s.AdditionalProperties.Schema, at.entry())
	}
}

func undescribed(s *apiextensionsv1.JSONSchemaProps) {
	s.Description = ""
	parts(s, location{}, func(part *apiextensionsv1.JSONSchemaProps, _ location) { undescribed(part) })
}

func depthOf(s apiextensionsv1.JSONSchemaProps) (depth int) {
	parts(&s, location{}, func(part *apiextensionsv1.JSONSchemaProps, _ location) { depth = max(depth, 1+depthOf(*part)) })
	return depth
}

// cut opens the schemas below a depth, and adds their paths to opened. Conditions that may be
// about fields below are left out with them.
func cut(s *apiextensionsv1.JSONSchemaProps, depth int, at location, opened map[string]bool) {
	if depth == 0 {
		if depthOf(*s) > 0 || len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 || s.Not != nil {
			*s = anything()
			opened[at.path] = true
		}
		return
	}
	before := len(opened)
	parts(s, at, func(part *apiextensionsv1.JSONSchemaProps, at location) { cut(part, depth-1, at, opened) })
	if len(opened) > before {
		s.AllOf, s.AnyOf, s.OneOf, s.Not = nil, nil, nil, nil
	}
}
