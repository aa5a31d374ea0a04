package chart

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/chartwright/chartwright/internal/chart/references"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// ErrInvalidValues is the error for values that violate a chart's values.schema.json.
// The error that wraps it lists every invalid path.
var ErrInvalidValues = errors.New("the spec violates the chart's schema")

// schemas holds compiled schemas by their text, because a chart can appear several times
// with different aliases.
type schemas map[string]*jsonschema.Schema

// Reference is a reference in the schema of a chart or a subchart to another document. The
// part of the schema with the reference accepts any value, because other documents are never
// loaded.
type Reference struct {
	// File is the path of the schema, relative to the chart's folder.
	File string
	Ref  string
}

// compileSchemas compiles the schemas of a chart and its subcharts, and returns their
// references to other documents. Helm would compile the schemas in every render.
func compileSchemas(c *engine.Chart) (schemas, []Reference, error) {
	compiled, elsewhere := schemas{}, []Reference(nil)
	for folder, c := range withDependencies(c) {
		if len(c.Schema) == 0 {
			continue
		}
		schema, refs, err := compileSchema(c.Schema)
		if err != nil {
			return nil, nil, fmt.Errorf("%s/values.schema.json: %w", c.ChartFullPath(), err)
		}
		compiled[string(c.Schema)] = schema
		for _, ref := range refs {
			elsewhere = append(elsewhere, Reference{folder + "values.schema.json", ref})
		}
	}
	return compiled, elsewhere, nil
}

func compileSchema(data []byte) (*jsonschema.Schema, []string, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	elsewhere := references.Open(doc)
	// References can name the document as for Helm.
	const url = "file:///values.schema.json"
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(url, doc); err != nil {
		return nil, nil, err
	}
	schema, err := compiler.Compile(url)
	return schema, elsewhere, err
}

// noLoader fails all loads of other documents.
type noLoader struct{}

// Load always returns an error.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("$ref to %s: want a reference within the schema", url)
}

// validate validates the values of a chart and its subcharts, as Helm does. The
// dependencies of the chart must have been processed.
func (s schemas) validate(c *engine.Chart, vals engine.Values) error {
	problems := s.problems(c, vals, []string{"spec"})
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrInvalidValues, strings.Join(problems, "; "))
}

func (s schemas) problems(c *engine.Chart, vals map[string]any, at []string) []string {
	var found []string
	if schema := s[string(c.Schema)]; schema != nil {
		var invalid *jsonschema.ValidationError
		if err := schema.Validate(vals); errors.As(err, &invalid) {
			found = leaves(invalid, at, vals)
		} else if err != nil {
			found = []string{fmt.Sprintf("%s: %v", strings.Join(at, "."), err)}
		}
	}
	for _, child := range c.Dependencies() {
		if childVals, ok := vals[child.Name()].(map[string]any); ok {
			found = append(found, s.problems(child, childVals, append(slices.Clone(at), child.Name()))...)
		}
	}
	return found
}

// leaves returns the messages of the leaves in the tree of causes, each with its path in
// the custom resource.
func leaves(err *jsonschema.ValidationError, at []string, checked any) []string {
	if len(err.Causes) == 0 {
		if closed, ok := err.ErrorKind.(*kind.AdditionalProperties); ok {
			// The library returns them in random order, and the status must be stable.
			slices.Sort(closed.Properties)
		}
		return []string{fmt.Sprintf("%s: %s", fieldPath(at, err.InstanceLocation, checked), err.ErrorKind.LocalizedString(english))}
	}
	var found []string
	for _, cause := range err.Causes {
		if names, ok := err.ErrorKind.(*kind.PropertyNames); ok {
			cause.InstanceLocation = locationOf(names.Property, err.InstanceLocation, checked)
		}
		found = append(found, leaves(cause, at, checked)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

var english = message.NewPrinter(language.English)

// fieldPath formats a path as Kubernetes does: spec.containers[0].name. The validated
// value determines whether a token is an index or a key.
func fieldPath(at, location []string, checked any) string {
	var path strings.Builder
	path.WriteString(strings.Join(at, "."))
	for _, token := range location {
		if _, isList := checked.([]any); isList {
			fmt.Fprintf(&path, "[%s]", token)
		} else {
			path.WriteString("." + token)
		}
		checked = inside(checked)[token]
	}
	return path.String()
}

// inside returns the items or fields of a value by their tokens in a location.
func inside(value any) map[string]any {
	switch v := value.(type) {
	case map[string]any:
		return v
	case engine.Values:
		return v
	case []any:
		items := make(map[string]any, len(v))
		for i, item := range v {
			items[strconv.Itoa(i)] = item
		}
		return items
	}
	return nil
}

// locationOf returns the location of a key with an invalid name. Only the length of the
// location that the library reports is reliable: the library overwrites the tokens
// while it validates other keys.
func locationOf(key string, reported []string, checked any) []string {
	if found := search(key, len(reported), nil, checked); found != nil {
		return found
	}
	return append(slices.Clone(reported), key)
}

// search returns the first location of a key in an object at this depth.
func search(key string, depth int, at []string, value any) []string {
	inner := inside(value)
	if depth == 0 {
		if _, isList := value.([]any); isList {
			return nil
		}
		if _, has := inner[key]; has {
			return append(slices.Clone(at), key)
		}
		return nil
	}
	for _, token := range slices.Sorted(maps.Keys(inner)) {
		if found := search(key, depth-1, append(slices.Clone(at), token), inner[token]); found != nil {
			return found
		}
	}
	return nil
}
