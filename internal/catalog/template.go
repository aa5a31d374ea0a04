package catalog

import (
	"fmt"
	"strings"
	"text/template"

	sprig "github.com/go-task/slim-sprig/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Name is a name in a watches entry, as it stands or as a template over the
// custom resource: "{{ .spec.targetNamespace }}".
type Name struct {
	key      string
	template *template.Template
}

// parseName returns nil for an empty text.
func parseName(key, text string) (*Name, error) {
	if text == "" {
		return nil, nil
	}
	parsed, err := template.New(key).Funcs(sprig.TxtFuncMap()).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: not a template: %w", key, err)
	}
	return &Name{key: key, template: parsed}, nil
}

// Of returns the name for a custom resource. It is an error if the resource
// lacks what the template asks for, or the result is no name.
func (n *Name) Of(object map[string]any) (string, error) {
	var text strings.Builder
	if err := n.template.Execute(&text, object); err != nil {
		return "", fmt.Errorf("%s: %w", n.key, err)
	}
	name := text.String()
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "", fmt.Errorf("%s: %q: %s", n.key, name, strings.Join(problems, "; "))
	}
	return name, nil
}
