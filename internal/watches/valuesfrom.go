package watches

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ValuesFrom names an object that values come from, beside the spec.
type ValuesFrom struct {
	Kind SourceKind `json:"kind"`
	// Name is a name in the custom resource's namespace, or in the release's
	// where the custom resource has none. It may be a template over the custom
	// resource; there is no way to name another namespace.
	Name string `json:"name"`
	// Key is the key of the object's data; empty means DefaultSourceKey.
	Key string `json:"key,omitempty"`
	// TargetPath is where the key's content goes, as it is, by a path as in
	// helm's --set; empty means that it is YAML and is laid over the values.
	TargetPath string `json:"targetPath,omitempty"`
	// Optional: the object need not be there.
	Optional bool `json:"optional,omitempty"`
}

// SourceKind is a kind that values can come from.
type SourceKind string

// Source kinds.
const (
	SourceSecret    SourceKind = "Secret"
	SourceConfigMap SourceKind = "ConfigMap"
)

// DefaultSourceKey is the key that is read where the entry names none.
const DefaultSourceKey = "values.yaml"

// DataKey returns Key or its default.
func (v ValuesFrom) DataKey() string {
	if v.Key == "" {
		return DefaultSourceKey
	}
	return v.Key
}

// checkValuesFrom reports sources that no object can be. Templates are the
// catalog's to parse.
func (p *parser) checkValuesFrom(w *Watch, lines map[string]int) {
	line := lines["valuesFrom"]
	for i, from := range w.ValuesFrom {
		at := fmt.Sprintf("valuesFrom[%d]", i)
		if from.Kind != SourceSecret && from.Kind != SourceConfigMap {
			p.problemf(line, "%s.kind is %q: expected one of [%s %s]", at, from.Kind, SourceSecret, SourceConfigMap)
		}
		switch {
		case from.Name == "":
			p.problemf(line, "%s has no name: add one, for example name: \"{{ .metadata.name }}-values\"", at)
		case !strings.Contains(from.Name, "{{"):
			if problems := validation.IsDNS1123Subdomain(from.Name); len(problems) > 0 {
				p.problemf(line, "%s.name: %q: %s", at, from.Name, strings.Join(problems, "; "))
			}
		}
		if problems := validation.IsConfigMapKey(from.DataKey()); len(problems) > 0 {
			p.problemf(line, "%s.key: %q: %s", at, from.Key, strings.Join(problems, "; "))
		}
	}
}
