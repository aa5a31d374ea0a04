package crd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/chart"
)

// ValuesSchema returns a values.schema.json with what Generate infers for a chart without
// one, and with the types that the default values suggest. It ignores the values.schema.json that the chart has.
func ValuesSchema(c *chart.Chart) ([]byte, error) {
	defaults, err := c.Values()
	if err != nil {
		return nil, fmt.Errorf("compute the chart's default values: %w", err)
	}
	spec, err := inferChart(c, defaults, nil, true)
	if err != nil {
		return nil, err
	}
	document := jsonSchemaOf(spec)
	document["$schema"] = "http://json-schema.org/draft-07/schema#"
	document["type"] = "object"
	document["description"] = fmt.Sprintf("Values of the chart %s.", c.Name())
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(document)
	return data.Bytes(), err
}

// jsonSchemaOf converts an inferred schema of a CRD. JSON Schema allows undeclared keys by
// default, and null only as a type.
func jsonSchemaOf(s apiextensionsv1.JSONSchemaProps) map[string]any {
	document := map[string]any{}
	var kinds []string
	switch {
	case s.XIntOrString:
		kinds = []string{"integer", "string"}
	case s.Type != "":
		kinds = []string{s.Type}
	}
	if len(kinds) > 0 {
		if s.Nullable {
			kinds = append(kinds, "null")
		}
		document["type"] = kinds
	}
	if about := strings.TrimSpace(s.Description); about != "" {
		document["description"] = about
	}
	if s.Pattern != "" {
		document["pattern"] = s.Pattern
	}
	if len(s.Properties) > 0 {
		properties := map[string]any{}
		for name, field := range s.Properties {
			properties[name] = jsonSchemaOf(field)
		}
		document["properties"] = properties
	}
	if s.Items != nil {
		document["items"] = jsonSchemaOf(*s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		document["additionalProperties"] = jsonSchemaOf(*s.AdditionalProperties.Schema)
	}
	return document
}
