package render

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"text/template"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// Lookup reads an object, or a list of them, from the cluster.
type Lookup = func(apiVersion, kind, namespace, name string) (map[string]any, error)

// functions holds the functions of Helm's engine that are the same in each render: all
// except include, tpl and lookup.
var functions = func() template.FuncMap {
	all := sprig.TxtFuncMap()
	delete(all, "env")
	delete(all, "expandenv")
	maps.Copy(all, template.FuncMap{
		"toToml":        toTOML,
		"fromToml":      readMap(toml.Unmarshal),
		"toYaml":        write(yaml.Marshal),
		"toYamlPretty":  write(marshalPretty),
		"fromYaml":      readMap(unmarshalYAML),
		"fromYamlArray": readList(unmarshalYAML),
		"toJson":        write(json.Marshal),
		"fromJson":      readMap(json.Unmarshal),
		"fromJsonArray": readList(json.Unmarshal),
		"required":      required,
		"fail":          func(message string) (string, error) { return "", &failError{message} },
		// A DNS query could leak a secret.
		"getHostByName": func(string) string { return "" },
	})
	return all
}()

// noLookup finds nothing.
func noLookup(string, string, string, string) (map[string]any, error) { return map[string]any{}, nil }

// failError is an error of the functions fail and required, with the message of the
// chart's author.
type failError struct{ message string }

func (e *failError) Error() string { return e.message }

func required(message string, value any) (any, error) {
	if text, ok := value.(string); value == nil || ok && text == "" {
		return value, &failError{message}
	}
	return value, nil
}

// As in Helm, the functions below return no error: the result contains the error's text,
// or is empty.

func write(marshal func(any) ([]byte, error)) func(any) string {
	return func(value any) string {
		data, err := marshal(value)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(data), "\n")
	}
}

func marshalPretty(value any) ([]byte, error) {
	var data bytes.Buffer
	encoder := goyaml.NewEncoder(&data)
	encoder.SetIndent(2)
	err := encoder.Encode(value)
	return data.Bytes(), err
}

func unmarshalYAML(data []byte, into any) error { return yaml.Unmarshal(data, into) }

func readMap(unmarshal func([]byte, any) error) func(string) map[string]any {
	return func(text string) map[string]any {
		read := map[string]any{}
		if err := unmarshal([]byte(text), &read); err != nil {
			read["Error"] = err.Error()
		}
		return read
	}
}

func readList(unmarshal func([]byte, any) error) func(string) []any {
	return func(text string) []any {
		read := []any{}
		if err := unmarshal([]byte(text), &read); err != nil {
			return []any{err.Error()}
		}
		return read
	}
}

func toTOML(value any) string {
	var data bytes.Buffer
	if err := toml.NewEncoder(&data).Encode(value); err != nil {
		return err.Error()
	}
	return data.String()
}
