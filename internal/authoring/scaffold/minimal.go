package scaffold

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm"
)

// minimalSpec returns a spec with as little as the chart takes. The error says
// why there is none; the spec is then the best that was found.
func minimalSpec(k kind) (map[string]any, error) {
	examples, err := k.Chart.Examples()
	if err != nil {
		return nil, err
	}
	// Small ones first: they are about what is needed.
	names := slices.SortedFunc(maps.Keys(examples), func(a, b string) int {
		return cmp.Or(len(examples[a])-len(examples[b]), strings.Compare(a, b))
	})
	var schema apiextensionsv1.JSONSchemaProps
	for _, version := range k.definition.Spec.Versions {
		if version.Name == k.Version {
			schema = version.Schema.OpenAPIV3Schema.Properties["spec"]
		}
	}
	spec := map[string]any{}
	for _, field := range schema.Required {
		spec[field] = valueFor(field, schema.Properties[field], func(path string) any {
			for _, name := range names {
				if value, exists := at(examples[name], path); exists {
					return value
				}
			}
			return nil
		})
	}
	err = tryOut(k, spec)
	if err == nil {
		return spec, nil
	}
	for _, name := range names {
		if tryOut(k, examples[name]) == nil {
			return examples[name], nil
		}
	}
	return spec, err
}

// tryOut renders the chart, as for the sample.
func tryOut(k kind, spec map[string]any) error {
	_, err := k.Chart.Render(helm.Offline{
		Release: strings.ToLower(k.Kind.Kind) + "-sample", Namespace: "default",
		Values: values.Merge(values.Merge(map[string]any{}, spec), k.Overrides), APIVersions: k.Chart.Features.APIs,
	})
	return err
}

// at returns the value at a dotted path.
func at(fields map[string]any, path string) (any, bool) {
	var value any = fields
	for field := range strings.SplitSeq(path, ".") {
		inner, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = inner[field]; !ok {
			return nil, false
		}
	}
	return value, value != nil
}

// valueFor returns a value for a field: that of an example, else one that the
// schema takes as far as can be seen.
func valueFor(path string, schema apiextensionsv1.JSONSchemaProps, example func(string) any) any {
	if value := example(path); value != nil && len(schema.Required) == 0 {
		return value
	}
	if len(schema.Enum) > 0 {
		var value any
		if json.Unmarshal(schema.Enum[0].Raw, &value) == nil {
			return value
		}
	}
	switch schema.Type {
	case "object":
		fields := map[string]any{}
		for _, field := range schema.Required {
			fields[field] = valueFor(path+"."+field, schema.Properties[field], example)
		}
		return fields
	case "array":
		list := []any{}
		if schema.MinItems != nil && schema.Items != nil && schema.Items.Schema != nil {
			for i := range *schema.MinItems {
				list = append(list, valueFor(fmt.Sprintf("%s.%d", path, i), *schema.Items.Schema, example))
			}
		}
		return list
	case "boolean":
		return false
	case "integer", "number":
		return number(schema)
	default:
		if schema.XIntOrString {
			return number(schema)
		}
		text := "example"
		if schema.MinLength != nil && int64(len(text)) < *schema.MinLength {
			text = strings.Repeat("x", int(min(*schema.MinLength, 253)))
		}
		if schema.MaxLength != nil && int64(len(text)) > *schema.MaxLength {
			text = text[:*schema.MaxLength]
		}
		return text
	}
}

// number returns 1, or what is nearest to it.
func number(schema apiextensionsv1.JSONSchemaProps) any {
	value := 1.0
	if schema.Minimum != nil && value < *schema.Minimum {
		value = *schema.Minimum
	}
	if schema.Minimum != nil && schema.ExclusiveMinimum && value <= *schema.Minimum {
		value = *schema.Minimum + 1
	}
	if schema.Maximum != nil && value > *schema.Maximum {
		value = *schema.Maximum
	}
	if value == float64(int64(value)) {
		return int64(value)
	}
	return value
}
