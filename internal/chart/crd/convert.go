package crd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxNodes limits the number of schemas, which inlined references can multiply. Schemas beyond
// the limit accept any value. For the limit in bytes, see fit.
const maxNodes = 5000

// converter turns one values.schema.json into the schema of spec.
type converter struct {
	doc jsonSchema
	// nodes is the number of converted schemas, including those of trials.
	nodes    *int
	warnings []Warning
}

// convertSpec returns the schema of spec for a chart with this schema and these
// defaults. It allows the kept keys with any value, even if the schema does not.
func convertSpec(schema []byte, defaults map[string]any, kept map[string]string) (apiextensionsv1.JSONSchemaProps, []Warning, error) {
	doc, err := parse(schema)
	if err != nil {
		return apiextensionsv1.JSONSchemaProps{}, nil, err
	}
	c := &converter{doc: doc, nodes: new(int)}
	at := location{path: "spec", value: defaults}
	root, at := c.unify(c.resolve(doc.root, at))
	// Values are always an object.
	root["type"] = "object"
	spec := c.build(root, at)
	keep(&spec, kept)
	if spec.Description == "" {
		spec.Description = aboutSpec
	}
	spec.Nullable = len(spec.Required) == 0
	slices.SortFunc(c.warnings, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Lost, b.Lost))
	})
	// Each loss is reported once.
	return spec, slices.Compact(c.warnings), nil
}

// keep adds the kept keys to a closed object, which would drop them.
func keep(spec *apiextensionsv1.JSONSchemaProps, kept map[string]string) {
	if isOpen(*spec) || spec.AdditionalProperties != nil {
		return
	}
	for key, description := range kept {
		if _, declared := spec.Properties[key]; declared {
			continue
		}
		if spec.Properties == nil {
			spec.Properties = props{}
		}
		open := anything()
		open.Type, open.Description = "object", description
		spec.Properties[key] = open
	}
}

// convert returns the schema of one value.
func (c *converter) convert(schema any, at location) apiextensionsv1.JSONSchemaProps {
	*c.nodes++
	if *c.nodes > maxNodes {
		c.lose(at, "the whole schema, because it is too large")
		return anything()
	}
	return c.build(c.unify(c.resolve(schema, at)))
}

// build converts a schema that is resolved and unified.
func (c *converter) build(n node, at location) apiextensionsv1.JSONSchemaProps {
	kind := typesOf(n)
	out := apiextensionsv1.JSONSchemaProps{Description: describe(n, kind.sentence(), at), Nullable: kind.null}
	switch {
	case len(kind.names) == 1:
		out.Type = kind.names[0]
	case kind.only("integer", "string"):
		out.XIntOrString = true
	default:
		out.XPreserveUnknownFields = new(true)
		if kind.known && len(kind.names) == 0 {
			// The type is null, or the list of types is empty.
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

// inexpressible holds the keywords that CRDs do not support.
var inexpressible = []string{
	"if", "dependencies", "dependentRequired", "dependentSchemas", "propertyNames", "contains",
	"unevaluatedProperties", "unevaluatedItems",
}

// anything returns a schema that accepts any value and preserves unknown fields.
func anything() apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true), Nullable: true}
}

func isOpen(s apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}

// isAnything reports whether a schema accepts any value.
func isAnything(s apiextensionsv1.JSONSchemaProps) bool {
	open := isOpen(s)
	s.XPreserveUnknownFields, s.Nullable, s.Description = nil, false, ""
	return open && isTrivial(s)
}

// lose adds a warning for a keyword that only Helm checks.
func (c *converter) lose(at location, lost string) {
	c.warnings = append(c.warnings, Warning{Path: at.path, Lost: lost, Checked: true})
}

// loseForGood adds a warning for a keyword that neither Helm nor the API server checks.
func (c *converter) loseForGood(at location, lost string) {
	c.warnings = append(c.warnings, Warning{Path: at.path, Lost: lost})
}

// trial returns a converter that collects its own warnings.
func (c *converter) trial() *converter { return &converter{doc: c.doc, nodes: c.nodes} }

// object converts the keywords for objects. An object is open, with the declared and
// any other properties; or closed, with only the declared properties; or a map, whose
// values have one schema.
func (c *converter) object(n node, out *apiextensionsv1.JSONSchemaProps, at location) {
	properties, _ := n["properties"].(node)
	required := anyList(n["required"])
	converted := make(props, len(properties))
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field := c.convert(properties[name], at.child(name))
		// Null removes the chart's default.
		if len(field.Enum) == 0 && !slices.Contains(required, any(name)) {
			field.Nullable = true
		}
		converted[name] = field
	}
	if len(converted) > 0 {
		out.Properties = converted
	}
	c.others(n, out, at)

	defaults, _ := at.value.(map[string]any)
	for _, name := range required {
		if name, ok := name.(string); ok && !supplied(name, defaults, converted) {
			out.Required = append(out.Required, name)
		}
	}
	count(n, out, defaults)
	if len(defaults) > 0 && (n["minProperties"] != nil || n["maxProperties"] != nil) {
		c.lose(at, "minProperties and maxProperties, because the chart's defaults count, too")
	}
}

// count limits the number of keys. The API server knows this number only if there are
// no defaults, which add keys and which null can remove.
func count(n node, out *apiextensionsv1.JSONSchemaProps, defaults map[string]any) {
	if len(defaults) == 0 {
		out.MinProperties, out.MaxProperties = whole(n["minProperties"]), whole(n["maxProperties"])
	}
}

// others converts the keywords for undeclared keys.
func (c *converter) others(n node, out *apiextensionsv1.JSONSchemaProps, at location) {
	value, given := n["additionalProperties"]
	patterns, _ := n["patternProperties"].(node)
	closed := isFalse(value)
	switch {
	case out.Type != "object":
		// The value can have several types, and is preserved as a whole.
		if given && !isTrue(value) {
			c.lose(at, "additionalProperties")
		}
		if len(patterns) > 0 {
			c.lose(at, "patternProperties")
		}
	case closed && len(patterns) == 0:
		return
	case closed && len(patterns) == 1 && len(out.Properties) == 0:
		// A map whose keys must match a pattern.
		for pattern, schema := range patterns {
			c.lose(at, fmt.Sprintf("patternProperties: keys must match %s", pattern))
			c.entries(schema, out, at)
		}
		return
	case len(patterns) > 0:
		c.lose(at, "patternProperties")
		if closed {
			c.lose(at, "additionalProperties: false")
		}
	case given && !isTrue(value) && len(out.Properties) == 0:
		c.entries(value, out, at)
		return
	case given && !isTrue(value):
		if !isAnything(c.trial().convert(value, at.entry())) {
			c.lose(at, "additionalProperties: the schema of undeclared keys")
		}
	}
	out.XPreserveUnknownFields = new(true)
}

// entries turns the object into a map.
func (c *converter) entries(schema any, out *apiextensionsv1.JSONSchemaProps, at location) {
	entry := c.convert(schema, at.entry())
	if isAnything(entry) {
		out.XPreserveUnknownFields = new(true)
		return
	}
	// Null removes an entry of the chart's defaults.
	if defaults, _ := at.value.(map[string]any); len(defaults) > 0 && len(entry.Enum) == 0 {
		entry.Nullable = true
	}
	out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &entry}
}

// supplied reports whether the chart's defaults have the key with everything that is
// required in it.
func supplied(name string, defaults map[string]any, properties props) bool {
	value, ok := defaults[name]
	if !ok {
		return false
	}
	field, declared := properties[name]
	if value == nil {
		return !declared || field.Nullable
	}
	return len(field.Required) == 0
}

// array converts the keywords for lists.
func (c *converter) array(n node, out *apiextensionsv1.JSONSchemaProps, at location) {
	item := anything()
	switch schema := n["items"].(type) {
	case node, bool:
		item = c.convert(schema, at.item())
	case []any:
		c.lose(at, "items: a list of schemas by position")
	}
	if _, ok := n["prefixItems"]; ok {
		c.lose(at, "prefixItems")
		item = anything()
	}
	if out.Type == "array" || !isAnything(item) {
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}
	}
	out.MinItems, out.MaxItems = whole(n["minItems"]), whole(n["maxItems"])
	if isTrue(n["uniqueItems"]) {
		c.lose(at, "uniqueItems")
	}
}

// enum converts the allowed values. If they contain objects or lists, into which Helm
// may merge defaults, only Helm checks them.
func (c *converter) enum(n node, out *apiextensionsv1.JSONSchemaProps, at location) {
	list, ok := n["enum"].([]any)
	if !ok {
		return
	}
	values, null, plain := plainValues(list)
	if !plain {
		c.lose(at, "enum of objects or lists")
		out.Nullable = out.Nullable && null
		return
	}
	switch {
	case !null || !out.Nullable:
		out.Nullable = false
		out.Enum = values
	case len(values) > 0:
		// A nullable schema with an enum rejects null, even if the enum lists it.
		// An enum in allOf is not applied to null.
		out.AllOf = append(out.AllOf, apiextensionsv1.JSONSchemaProps{Enum: values})
	}
}

// plainValues returns the values of an enum without null, and whether the enum
// contains null. It is not plain if a value is an object or a list.
func plainValues(list []any) (values []apiextensionsv1.JSON, null, plain bool) {
	for _, value := range list {
		switch v := value.(type) {
		case nil:
			null = true
		case string, bool, json.Number:
			data, err := json.Marshal(v)
			if err != nil {
				return nil, null, false
			}
			values = append(values, apiextensionsv1.JSON{Raw: data})
		default:
			return nil, null, false
		}
	}
	return values, null, true
}
