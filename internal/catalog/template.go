package catalog

import (
	"fmt"
	"strconv"
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
	// problems tells what keeps a text from being the name of such a thing.
	problems func(string) []string
}

// parseName reads the name of a namespace or an account. It returns nil for an
// empty text.
func parseName(key, text string) (*Name, error) {
	return parse(key, text, validation.IsDNS1123Label)
}

// parseObjectName reads the name of any other object, which may have dots.
func parseObjectName(key, text string) (*Name, error) {
	return parse(key, text, validation.IsDNS1123Subdomain)
}

func parse(key, text string, problems func(string) []string) (*Name, error) {
	if text == "" {
		return nil, nil
	}
	parsed, err := template.New(key).Funcs(sprig.TxtFuncMap()).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: not a template: %w", key, err)
	}
	return &Name{key: key, template: parsed, problems: problems}, nil
}

// Switch is "true" or "false" in a watches entry, as it stands or as a template
// over the custom resource.
type Switch struct{ text *Name }

// parseSwitch reads createNamespace. It returns nil for an empty text.
func parseSwitch(text string) (*Switch, error) {
	parsed, err := parse("createNamespace", text, func(text string) []string {
		if _, err := strconv.ParseBool(text); err != nil {
			return []string{"expected true or false"}
		}
		return nil
	})
	if parsed == nil || err != nil {
		return nil, err
	}
	if !strings.Contains(text, "{{") {
		if _, err := parsed.Of(nil); err != nil {
			return nil, err
		}
	}
	return &Switch{parsed}, nil
}

// Of returns whether the switch is on for a custom resource. It is an error if
// the resource lacks what the template asks for, or the result is no bool.
func (s *Switch) Of(object map[string]any) (bool, error) {
	text, err := s.text.Of(object)
	if err != nil {
		return false, err
	}
	return strconv.ParseBool(text)
}

// Of returns the name for a custom resource. It is an error if the resource
// lacks what the template asks for, or the result is no name.
func (n *Name) Of(object map[string]any) (string, error) {
	var text strings.Builder
	if err := n.template.Execute(&text, object); err != nil {
		return "", fmt.Errorf("%s: %w", n.key, err)
	}
	name := text.String()
	if problems := n.problems(name); len(problems) > 0 {
		return "", fmt.Errorf("%s: %q: %s", n.key, name, strings.Join(problems, "; "))
	}
	return name, nil
}
