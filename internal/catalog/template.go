package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	sprig "github.com/go-task/slim-sprig/v3"

	"github.com/chartwright/chartwright/internal/watches"
)

// Template is a name or a boolean in a watches entry. It may be a Go template over the
// custom resource, such as "{{ .spec.targetNamespace }}".
type Template struct {
	key      string
	template *template.Template
	// check returns why a result is invalid.
	check func(string) []string
}

// parseTemplate returns nil for an empty text.
func parseTemplate(key, text string, check func(string) []string) (*Template, error) {
	if text == "" {
		return nil, nil
	}
	parsed, err := template.New(key).Funcs(sprig.TxtFuncMap()).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: not a template: %w", key, err)
	}
	return &Template{key: key, template: parsed, check: check}, nil
}

// parseBool returns nil for an empty text. It returns an error if a text that is not
// a template is not a boolean.
func parseBool(text string) (*Template, error) {
	parsed, err := parseTemplate("createNamespace", text, func(text string) []string {
		if _, err := strconv.ParseBool(text); err != nil {
			return []string{"expected true or false"}
		}
		return nil
	})
	if err == nil && parsed != nil && !watches.IsTemplate(text) {
		_, err = parsed.For(nil)
	}
	return parsed, err
}

// BoolFor returns the boolean for a custom resource, and the errors of For.
func (t *Template) BoolFor(object map[string]any) (bool, error) {
	text, err := t.For(object)
	if err != nil {
		return false, err
	}
	return strconv.ParseBool(text)
}

// For returns the text for a custom resource. It returns an error if the custom
// resource lacks a field that the template reads, or if the result is invalid.
func (t *Template) For(object map[string]any) (string, error) {
	var text strings.Builder
	if err := t.template.Execute(&text, object); err != nil {
		return "", fmt.Errorf("%s: %w", t.key, err)
	}
	name := text.String()
	if problems := t.check(name); len(problems) > 0 {
		return "", fmt.Errorf("%s: %q: %s", t.key, name, strings.Join(problems, "; "))
	}
	return name, nil
}

// maxReleaseName is Helm's limit. It leaves room for suffixes that charts append.
const maxReleaseName = 53

// ReleaseNames returns the names that the release of a custom resource may have, the
// preferred one first: the name of the custom resource and, if that is in use, the same
// name with the kind.
func ReleaseNames(name, kind string) []string {
	return []string{releaseName(name), releaseName(name + "-" + kind)}
}

// releaseName converts a name to a valid release name: dots become dashes, and a long name
// becomes 40 characters and a hash of the whole name.
func releaseName(name string) string {
	fitting := strings.ReplaceAll(strings.ToLower(name), ".", "-")
	if len(fitting) <= maxReleaseName {
		return fitting
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(fitting[:40], "-") + "-" + hex.EncodeToString(sum[:])[:12]
}
