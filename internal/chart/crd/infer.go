package crd

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/chart/landing"
)

// aboutSpec is the description of spec if the chart's schema has none.
const aboutSpec = "Values of the chart. Omitted values default to those of the chart."

// inferSpec returns the schema of spec for a chart without values.schema.json, from its
// default values and their comments. Helm accepts any values then, and so must the
// schema: no field is required, no object is closed, and a value has a type only if the API
// server refuses other types where the value lands. Descriptions hint at the usual type. With
// typed, for authors who write a schema, a field also has a type if another is very unlikely.
func inferSpec(defaults map[string]any, comments *texts, kept map[string]string, landings landing.Landings, typed bool) apiextensionsv1.JSONSchemaProps {
	for depth := maxTypeDepth; ; depth-- {
		i := &inferrer{landings: landings, depth: depth, typed: typed}
		spec := i.spec(defaults, comments, kept)
		if data, err := json.Marshal(spec); err != nil || len(data) <= maxSpec || depth == 0 {
			return spec
		}
	}
}

// maxSpec limits the size of a schema with types of Kubernetes, so that kubectl apply can
// store the CRD in an annotation.
const maxSpec = 96 << 10

// maxTypeDepth is the maximum depth of the schemas of types of Kubernetes.
const maxTypeDepth = 3

// inferrer counts the schemas that it creates, up to maxNodes.
type inferrer struct {
	nodes    int
	landings landing.Landings
	// depth is the depth of the schemas of types of Kubernetes.
	depth int
	typed bool
}

func (i *inferrer) spec(defaults map[string]any, comments *texts, kept map[string]string) apiextensionsv1.JSONSchemaProps {
	spec := i.object(defaults, comments, location{path: "spec", value: defaults}, nil)
	spec.Type, spec.Description = "object", aboutSpec
	for key, about := range kept {
		field, shown := spec.Properties[key]
		if !shown {
			field = anything()
		}
		if key != "global" && key != "tags" {
			// Helm accepts only a map for a subchart.
			field.Type = "object"
		}
		if field.Description == "" && (shown || key != "global") {
			field.Description = about
		}
		if field.Description != "" {
			spec.Properties[key] = field
		}
	}
	return spec
}

func (i *inferrer) value(value any, comments *texts, at location, path []string) apiextensionsv1.JSONSchemaProps {
	i.nodes++
	if i.nodes > maxNodes {
		return anything()
	}
	s, kinds := anything(), "Any type."
	switch v := value.(type) {
	case map[string]any:
		kinds = "A map, empty by default."
		if len(v) > 0 {
			s, kinds = i.object(v, comments, at, path), ""
		}
	case []any:
		kinds = "A list, empty by default."
		if len(v) > 0 {
			s = list("", anything())
			s.XListType, s.Nullable = nil, true
		}
	case bool:
		s = apiextensionsv1.JSONSchemaProps{Type: "boolean", Nullable: true}
	case int64:
		s = apiextensionsv1.JSONSchemaProps{XIntOrString: true, Nullable: true}
	case string:
		s = inferText(v, at)
	}
	lands, landed := i.landings[landing.Key(path)]
	if landed {
		i.land(&s, lands)
	}
	switch {
	case !i.typed:
		kinds = cmp.Or(usualKind(value), kinds)
		s = untyped(s)
	case s.Type != "":
		kinds = ""
	case s.XIntOrString:
		kinds = types{names: []string{"integer", "string"}, known: true}.sentence()
	}
	if landed {
		kinds = strings.TrimSpace(kinds + " Field of " + lands.Field + ".")
	}
	s.Description = describe(node{"description": comments.about}, kinds, at)
	return s
}

// usualKind hints at the type of values like a default. It is empty for maps, whose keys show it,
// and if the default does not show it.
func usualKind(value any) string {
	switch v := value.(type) {
	case bool:
		return "Usually a boolean."
	case int64, float64:
		return "Usually a number."
	case string:
		return "Usually a string."
	case []any:
		if len(v) > 0 {
			return "Usually a list."
		}
	}
	return ""
}

// untyped returns a schema that accepts values of any type. Values of the type of s have the same
// fields, except for items that no landing shows.
func untyped(s apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	open := anything()
	open.Properties, open.Pattern = s.Properties, s.Pattern
	if s.Type == "" {
		open.Items = s.Items
	}
	return open
}

// land narrows the schema of a value to that of a field where the value lands.
func (i *inferrer) land(s *apiextensionsv1.JSONSchemaProps, lands landing.Landing) {
	of := i.kubernetesType(lands.Type, lands.Templated, i.depth)
	switch {
	case s.XIntOrString && isInteger(lands.Type):
		s.Pattern = notWord
	case s.Type == "object":
		for name, field := range of.Properties {
			if _, has := s.Properties[name]; !has {
				s.Properties[name] = field
			}
		}
	case isAnything(*s):
		// The chart can omit values of other types that are empty, such as "".
		s.Properties, s.Items = of.Properties, of.Items
	}
}

func (i *inferrer) object(values map[string]any, comments *texts, at location, path []string) apiextensionsv1.JSONSchemaProps {
	s := object("", props{})
	s.Nullable, s.XPreserveUnknownFields = true, new(true)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if given, ok := values[key].(map[string]any); ok && len(given) == 0 && key == "global" && comments.at(key).about == "" {
			// Helm adds the empty map.
			continue
		}
		s.Properties[key] = i.value(values[key], comments.at(key), at.child(key), append(slices.Clip(path), key))
	}
	return s
}

// inferText returns the schema of a value whose default is a string. The value may also
// be a number if the default is empty or looks like a number, or if the key is one whose
// values are usually numbers.
func inferText(value string, at location) apiextensionsv1.JSONSchemaProps {
	switch {
	case slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, strings.ToLower(value)):
		return anything()
	case value == "", numeric.MatchString(value), numberWord.MatchString(at.path[strings.LastIndex(at.path, ".")+1:]):
		return apiextensionsv1.JSONSchemaProps{XIntOrString: true, Nullable: true}
	default:
		return apiextensionsv1.JSONSchemaProps{Type: "string", Nullable: true}
	}
}

var (
	// numeric matches strings that begin like a number: 80, 1.5, 500m, 10Gi, 30s, 50%,
	// 1.25.3.
	numeric = regexp.MustCompile(`^[-+]?\.?\d`)
	// numberWord matches keys whose values are often numbers.
	numberWord = regexp.MustCompile(`(?i)(port|tag|version|cpu|memory|storage|size|limit|count|replicas|seconds|timeout|interval|period|delay|ttl|id|user|group|unavailable|surge|available)$`)
)
