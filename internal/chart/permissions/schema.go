package permissions

import (
	"maps"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/chart/values"
)

// maxDepth is the maximum depth of schemas, which can be recursive.
const maxDepth = 12

// schemaReader finds the values that the leaves of a schema can have.
type schemaReader struct {
	root   map[string]any
	leaves *leaves
	// enums is true if only the values of enums are collected.
	enums bool
}

func (r schemaReader) read(path []string, schema map[string]any, depth int) {
	if depth > maxDepth {
		return
	}
	schema = r.resolve(schema)
	if len(path) > 0 {
		r.leaf(path, schema)
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if property, ok := properties[name].(map[string]any); ok {
			r.read(append(slices.Clone(path), name), property, depth+1)
		}
	}
	for _, branch := range branches(schema) {
		r.read(path, branch, depth+1)
	}
}

// branches returns the nested schemas that apply to the same value.
func branches(schema map[string]any) []map[string]any {
	var found []map[string]any
	for _, key := range []string{"oneOf", "anyOf", "allOf", "if", "then", "else"} {
		list, isList := schema[key].([]any)
		if !isList {
			list = []any{schema[key]}
		}
		for _, item := range list {
			if branch, ok := item.(map[string]any); ok {
				found = append(found, branch)
			}
		}
	}
	return found
}

// leaf adds the values that a schema lists, and its limits.
func (r schemaReader) leaf(path []string, schema map[string]any) {
	enum, _ := schema["enum"].([]any)
	if r.enums {
		for _, value := range enum {
			r.leaves.add(path, value)
		}
		return
	}
	examples, _ := schema["examples"].([]any)
	for _, value := range slices.Concat(enum, examples) {
		r.leaves.add(path, normal(value))
	}
	for _, key := range []string{"const", "default", "minimum", "maximum"} {
		if value, ok := schema[key]; ok {
			r.leaves.add(path, normal(value))
		}
	}
	if isType(schema, "boolean") {
		r.leaves.add(path, true, false)
	}
	if isType(schema, "array") {
		if items, ok := schema["items"].(map[string]any); ok {
			r.leaves.add(path, []any{r.sample(items, 0)})
		}
	}
	if one, ok := schema["additionalProperties"].(map[string]any); ok && isType(schema, "object") {
		r.leaves.add(path, map[string]any{"probe": r.sample(one, 0)})
	}
}

// sample returns a simple value that a schema accepts.
func (r schemaReader) sample(schema map[string]any, depth int) any {
	schema = r.resolve(schema)
	for _, key := range []string{"default", "const"} {
		if value, ok := schema[key]; ok {
			return normal(value)
		}
	}
	for _, key := range []string{"examples", "enum"} {
		if list, _ := schema[key].([]any); len(list) > 0 {
			return normal(list[0])
		}
	}
	switch {
	case depth > maxDepth:
		return nil
	case isType(schema, "object"):
		object := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			key, _ := name.(string)
			property, _ := properties[key].(map[string]any)
			object[key] = r.sample(property, depth+1)
		}
		return object
	case isType(schema, "array"):
		return []any{}
	case isType(schema, "boolean"):
		return true
	case isType(schema, "integer"), isType(schema, "number"):
		if least, ok := schema["minimum"]; ok {
			return normal(least)
		}
		return int64(1)
	}
	return "probe"
}

// resolve follows a reference to a definition of the same schema.
func (r schemaReader) resolve(schema map[string]any) map[string]any {
	for range maxDepth {
		ref, ok := schema["$ref"].(string)
		if !ok {
			return schema
		}
		pointer, ok := strings.CutPrefix(ref, "#/")
		if !ok {
			return schema
		}
		at := r.root
		for key := range strings.SplitSeq(pointer, "/") {
			at, _ = at[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)].(map[string]any)
		}
		if at == nil {
			return schema
		}
		schema = at
	}
	return schema
}

func isType(schema map[string]any, name string) bool {
	if list, ok := schema["type"].([]any); ok {
		return slices.Contains(list, any(name))
	}
	return schema["type"] == name
}

// normal converts integral numbers of JSON to int64.
func normal(value any) any { return values.Normalize(map[string]any{"": value})[""] }
