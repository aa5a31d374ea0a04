package crd

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxNodes bounds the size of a schema. Inlined references multiply; what is
// beyond the bound stays open, so that the definition fits into etcd.
const maxNodes = 5000

// converter turns one values.schema.json into the schema of spec.
type converter struct {
	doc document
	// nodes counts what was converted, here and in trials.
	nodes    *int
	warnings []Warning
}

// convertSpec returns the schema of spec for a chart with this schema and these
// defaults. The kept keys survive with any value, whatever the schema says.
func convertSpec(schema []byte, defaults map[string]any, kept map[string]string) (apiextensionsv1.JSONSchemaProps, []Warning, error) {
	doc, err := parse(schema)
	if err != nil {
		return apiextensionsv1.JSONSchemaProps{}, nil, err
	}
	c := &converter{doc: doc, nodes: new(int)}
	at := place{path: "spec", value: defaults}
	root, at := c.unify(c.resolve(doc.root, at))
	// Values are an object, whether the schema says so or not.
	root["type"] = "object"
	spec := c.build(root, at)
	keep(&spec, kept)
	if spec.Description == "" {
		spec.Description = aboutSpec
	}
	spec.Nullable = len(spec.Required) == 0
	return spec, sortWarnings(c.warnings), nil
}

// keep adds the keys that a closed object would drop.
func keep(spec *apiextensionsv1.JSONSchemaProps, kept map[string]string) {
	if isOpen(*spec) {
		return
	}
	if spec.AdditionalProperties != nil {
		return
	}
	for key, description := range kept {
		if _, declared := spec.Properties[key]; declared {
			continue
		}
		if spec.Properties == nil {
			spec.Properties = props{}
		}
		open := object(description, nil)
		open.Nullable, open.XPreserveUnknownFields = true, new(true)
		spec.Properties[key] = open
	}
}

// convert returns the schema of one value.
func (c *converter) convert(schema any, at place) apiextensionsv1.JSONSchemaProps {
	*c.nodes++
	if *c.nodes > maxNodes {
		c.lose(at, "everything, for the schema is too large")
		return anything()
	}
	return c.build(c.unify(c.resolve(schema, at)))
}

// build converts a schema that is resolved and unified.
func (c *converter) build(n node, at place) apiextensionsv1.JSONSchemaProps {
	kind := typesOf(n)
	out := apiextensionsv1.JSONSchemaProps{Description: describe(n, kind.told(), at), Nullable: kind.null}
	switch {
	case len(kind.names) == 1:
		out.Type = kind.names[0]
	case kind.only("integer", "string"):
		out.XIntOrString = true
	default:
		out.XPreserveUnknownFields = new(true)
		if kind.known && len(kind.names) == 0 {
			// Null or nothing at all.
			out.Not = &apiextensionsv1.JSONSchemaProps{}
		} else if n["type"] != nil && n["enum"] == nil {
			c.lose(at, "type "+strings.Join(kind.names, " or "))
		}
	}
	if kind.has("object") {
		c.object(n, &out, at)
	}
	if kind.has("array") {
		c.array(n, &out, at)
	}
	c.scalars(n, kind, at, &out)
	c.enum(n, &out, at)
	c.combine(n, &out, at)
	for _, key := range inexpressible {
		if value, ok := n[key]; ok && !isTrue(value) {
			c.lose(at, key)
		}
	}
	return out
}

// inexpressible holds the keywords that have no counterpart at all.
var inexpressible = []string{
	"if", "dependencies", "dependentRequired", "dependentSchemas", "propertyNames", "contains",
	"unevaluatedProperties", "unevaluatedItems",
}

// anything returns a schema that takes any value and keeps it.
func anything() apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true), Nullable: true}
}

func isOpen(s apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}

// isAnything tells that a schema says nothing about values.
func isAnything(s apiextensionsv1.JSONSchemaProps) bool {
	open := isOpen(s)
	s.XPreserveUnknownFields, s.Nullable, s.Description = nil, false, ""
	return open && isTrivial(s)
}

// lose notes what is checked by Helm alone.
func (c *converter) lose(at place, lost string) {
	c.warnings = append(c.warnings, Warning{Path: at.path, Lost: lost, Checked: true})
}

// loseForGood notes what nobody checks.
func (c *converter) loseForGood(at place, lost string) {
	c.warnings = append(c.warnings, Warning{Path: at.path, Lost: lost})
}

// trial returns a converter to see what would be lost.
func (c *converter) trial() *converter { return &converter{doc: c.doc, nodes: c.nodes} }
