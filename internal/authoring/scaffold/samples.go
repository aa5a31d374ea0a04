package scaffold

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// sampled returns the kinds of the objects in the files of a folder, each with the name
// of the first file that contains it.
func (p *Plan) sampled(folder string, names []string) (map[schema.GroupKind]string, error) {
	found := map[schema.GroupKind]string{}
	for _, name := range names {
		if !strings.HasSuffix(name, ".yaml") || name == "kustomization.yaml" {
			continue
		}
		data, err := p.read(folder + "/" + name)
		if err != nil {
			return nil, err
		}
		decoder := yaml.NewDecoder(bytes.NewReader(data))
		for {
			var object struct {
				APIVersion string `yaml:"apiVersion"`
				Kind       string `yaml:"kind"`
			}
			err := decoder.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", folder, name, err)
			}
			gvk := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind)
			if _, exists := found[gvk.GroupKind()]; !exists {
				found[gvk.GroupKind()] = name
			}
		}
	}
	return found, nil
}

// sample returns an example of a custom resource. It sets the required fields, and lists
// the chart's other values as comments.
func (p *Plan) sample(name string, k kind) ([]byte, error) {
	spec, err := minimalSpec(k)
	if err == nil && k.Namespace != nil {
		_, err = k.Namespace.For(map[string]any{"metadata": map[string]any{"name": strings.ToLower(k.Kind.Kind) + "-sample"}, "spec": spec})
	}
	if err != nil {
		p.notef("the sample of %s is incomplete: %v", k.Kind.Kind, err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: %s
kind: %s
metadata:
  name: %s-sample
  labels:
    app.kubernetes.io/name: %s
    app.kubernetes.io/managed-by: kustomize
`, k.GVK().GroupVersion(), k.Kind.Kind, strings.ToLower(k.Kind.Kind), name)
	err = writeSpec(&text, spec, k.Chart.File("values.yaml"))
	return []byte(text.String()), err
}

// writeSpec writes the fields of the spec and, as comments, the other lines of
// values.yaml. A field that is a single line in values.yaml replaces that line.
func writeSpec(text *strings.Builder, spec map[string]any, values []byte) error {
	values = unixLines(bytes.TrimPrefix(values, []byte("\xEF\xBB\xBF")))
	if len(spec) == 0 {
		// With a field, users can add others without changing "spec: {}" first.
		spec = firstDefault(values)
	}
	if len(spec) == 0 {
		text.WriteString("spec: {}\n")
	} else {
		text.WriteString("spec:\n")
	}
	places := linesOfKeys(values)
	inPlace := map[int]string{}
	rest := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		if line, exists := places[key]; exists && isScalar(spec[key]) {
			inPlace[line] = key
		} else {
			rest[key] = spec[key]
		}
	}
	if err := writeFields(text, rest); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(string(values), "\n "), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	if len(rest) > 0 {
		text.WriteString("\n")
	}
	for i, line := range lines {
		line = strings.TrimRight(line, " \t")
		switch key, set := inPlace[i+1]; {
		case set:
			if err := writeFields(text, map[string]any{key: spec[key]}); err != nil {
				return err
			}
		case line == "":
			text.WriteString("\n")
		case strings.HasPrefix(line, "#"):
			text.WriteString("  " + line + "\n")
		default:
			text.WriteString("  # " + line + "\n")
		}
	}
	return nil
}

func writeFields(text *strings.Builder, fields map[string]any) error {
	if len(fields) == 0 {
		return nil
	}
	data, err := sigsyaml.Marshal(fields)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		text.WriteString("  " + line)
	}
	return nil
}

// linesOfKeys returns the lines of the top-level values that are on a single line.
func linesOfKeys(values []byte) map[string]int {
	lines := map[string]int{}
	eachDefault(values, func(key, value *yaml.Node) {
		if value.Kind == yaml.ScalarNode && value.Line == key.Line && value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			lines[key.Value] = key.Line
		}
	})
	return lines
}

// firstDefault returns the first top-level value that is a non-empty scalar.
func firstDefault(values []byte) map[string]any {
	var first map[string]any
	eachDefault(values, func(key, value *yaml.Node) {
		var decoded any
		if first != nil || value.Kind != yaml.ScalarNode || value.Decode(&decoded) != nil {
			return
		}
		if decoded != nil && decoded != "" {
			first = map[string]any{key.Value: decoded}
		}
	})
	return first
}

func eachDefault(values []byte, do func(key, value *yaml.Node)) {
	var document yaml.Node
	// Loading the chart has already validated the YAML.
	if yaml.Unmarshal(values, &document) != nil || len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return
	}
	pairs := document.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		do(pairs[i], pairs[i+1])
	}
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// minimalSpec returns the smallest spec with which the chart renders. Otherwise, it
// returns the error of the render and a spec with the required fields.
func minimalSpec(k kind) (map[string]any, error) {
	examples, err := k.Chart.Examples()
	if err != nil {
		return nil, err
	}
	// Examples with few values first, because they tend to set only required values.
	names := slices.SortedFunc(maps.Keys(examples), func(a, b string) int {
		return cmp.Or(len(examples[a])-len(examples[b]), strings.Compare(a, b))
	})
	// All versions have one schema.
	schema := k.definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	spec := map[string]any{}
	for _, field := range schema.Required {
		spec[field] = valueFor(field, schema.Properties[field], func(path string) any {
			for _, name := range names {
				if value, _, _ := unstructured.NestedFieldNoCopy(examples[name], strings.Split(path, ".")...); value != nil {
					return value
				}
			}
			return nil
		})
	}
	err = tryRender(k, spec)
	if err == nil {
		return spec, nil
	}
	for _, name := range names {
		if tryRender(k, examples[name]) == nil {
			return examples[name], nil
		}
	}
	return spec, err
}

// tryRender renders the chart for a sample.
func tryRender(k kind, spec map[string]any) error {
	_, err := k.Chart.Render(chart.Offline{
		Release: strings.ToLower(k.Kind.Kind) + "-sample", Namespace: "default",
		Values: values.Merge(values.Merge(map[string]any{}, spec), k.Overrides), Numbers: k.TemplateNumbers(), APIVersions: k.Chart.Features.APIs,
	})
	return err
}

// valueFor returns a value for a field: the value of an example, or one that satisfies
// the most common keywords of the schema.
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

// number returns 1, or the nearest number that the schema allows.
func number(schema apiextensionsv1.JSONSchemaProps) any {
	least := max(1, ptr.Deref(schema.Minimum, 1))
	if schema.Minimum != nil && schema.ExclusiveMinimum && least == *schema.Minimum {
		least++
	}
	value := min(least, ptr.Deref(schema.Maximum, least))
	if value == float64(int64(value)) {
		return int64(value)
	}
	return value
}
