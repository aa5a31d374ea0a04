package watches

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/chartwright/chartwright/internal/api"
)

// LineError is a problem in a watches file.
type LineError struct {
	// File is the name of the file as given to Parse.
	File string
	// Line counts from 1; 0 means the whole file.
	Line int
	// Message describes the problem and its solution.
	Message string
}

// Error formats the problem as compilers do: file:line: message.
func (p LineError) Error() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Message)
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}

// LineErrors are all problems of a file. Its message has one line per problem.
type LineErrors []LineError

// Error joins the problems, one per line.
func (ps LineErrors) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns the problems sorted by line, and nil without problems, because a nil slice in
// an error interface is not nil.
func (ps LineErrors) Err() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b LineError) int { return a.Line - b.Line })
	return ps
}

// describe returns what a node is, for messages.
func describe(node *yaml.Node) string {
	switch node.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a map"
	case yaml.ScalarNode:
		if node.Tag == "!!null" {
			return "nothing"
		}
		return fmt.Sprintf("%q", node.Value)
	default:
		return "an alias"
	}
}

// explain returns the message of an error of encoding/json, in terms of the file.
func explain(key string, err error) string {
	if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		// The path has no indexes of lists.
		if wrongType.Field != "" {
			key = wrongType.Field
		}
		return fmt.Sprintf("%s: expected %s, found %s", key, typeName(wrongType.Type), cmp.Or(foundNames[wrongType.Value], wrongType.Value))
	}
	message := key + ": " + strings.TrimPrefix(err.Error(), "json: ")
	if _, unknown, found := strings.Cut(message, "unknown field "); found {
		field, _ := reflect.TypeFor[Watch]().FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, key) })
		if known := similar(strings.Trim(unknown, `"`), fieldNames(field.Type)); known != "" {
			message += ": did you mean " + known + "?"
		}
	}
	return message
}

// fieldNames returns the names of all fields in a type, at any depth.
func fieldNames(of reflect.Type) []string {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return fieldNames(of.Elem())
	case reflect.Struct:
		names := api.JSONNames(of)
		for _, field := range reflect.VisibleFields(of) {
			names = append(names, fieldNames(field.Type)...)
		}
		return names
	default:
		return nil
	}
}

// foundNames describes the types of JSON.
var foundNames = map[string]string{
	"array": "a list", "bool": "a boolean", "number": "a number", "object": "a map", "string": "a string",
}

// typeName describes a type of a field of Watch.
func typeName(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Pointer:
		return typeName(of.Elem())
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a map"
	default:
		return "a string"
	}
}

// asError converts a validation function of Kubernetes.
func asError(check func(string) []string) func(string) error {
	return func(value string) error {
		if problems := check(value); len(problems) > 0 {
			return errors.New(strings.Join(problems, "; "))
		}
		return nil
	}
}
