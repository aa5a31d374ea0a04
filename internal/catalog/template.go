package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	sprig "github.com/go-task/slim-sprig/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/watches"
)

// NameTemplate is a name in a watches entry, as it stands or as a template over the
// custom resource: "{{ .spec.targetNamespace }}".
type NameTemplate struct {
	key      string
	template *template.Template
	// problems tells what keeps a text from being the name of such a thing.
	problems func(string) []string
}

// parseName reads the name of a namespace or an account. It returns nil for an
// empty text.
func parseName(key, text string) (*NameTemplate, error) {
	return parse(key, text, validation.IsDNS1123Label)
}

// parseObjectName reads the name of any other object, which may have dots.
func parseObjectName(key, text string) (*NameTemplate, error) {
	return parse(key, text, validation.IsDNS1123Subdomain)
}

func parse(key, text string, problems func(string) []string) (*NameTemplate, error) {
	if text == "" {
		return nil, nil
	}
	parsed, err := template.New(key).Funcs(sprig.TxtFuncMap()).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: not a template: %w", key, err)
	}
	return &NameTemplate{key: key, template: parsed, problems: problems}, nil
}

// BoolTemplate is "true" or "false" in a watches entry, as it stands or as a template
// over the custom resource.
type BoolTemplate struct{ text *NameTemplate }

// parseSwitch reads createNamespace. It returns nil for an empty text.
func parseSwitch(text string) (*BoolTemplate, error) {
	parsed, err := parse("createNamespace", text, func(text string) []string {
		if _, err := strconv.ParseBool(text); err != nil {
			return []string{"expected true or false"}
		}
		return nil
	})
	if parsed == nil || err != nil {
		return nil, err
	}
	if !watches.IsTemplate(text) {
		if _, err := parsed.For(nil); err != nil {
			return nil, err
		}
	}
	return &BoolTemplate{parsed}, nil
}

// For returns whether the switch is on for a custom resource. It is an error if
// the resource lacks what the template asks for, or the result is no bool.
func (s *BoolTemplate) For(object map[string]any) (bool, error) {
	text, err := s.text.For(object)
	if err != nil {
		return false, err
	}
	return strconv.ParseBool(text)
}

// For returns the name for a custom resource. It is an error if the resource
// lacks what the template asks for, or the result is no name.
func (n *NameTemplate) For(object map[string]any) (string, error) {
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

// Source is one object that values come from.
type Source struct {
	watches.ValuesFrom
	// Object is its name for a custom resource.
	Object *NameTemplate
}

// SourcesFor returns the objects that a custom resource's values come from
// beside its spec, in their order. They are in its namespace or, if it has
// none, in that of its release: nothing in a spec can name another.
func (k Kind) SourcesFor(cr *unstructured.Unstructured, releaseNamespace string) ([]valuesfrom.Source, error) {
	from := make([]valuesfrom.Source, len(k.Sources))
	for i, source := range k.Sources {
		name, err := source.Object.For(cr.Object)
		if err != nil {
			return nil, err
		}
		from[i] = valuesfrom.Source{
			Ref: valuesfrom.Ref{Kind: source.Kind, Namespace: cmp.Or(cr.GetNamespace(), releaseNamespace), Name: name},
			Key: source.DataKey(), TargetPath: source.TargetPath, Optional: source.Optional,
		}
	}
	return from, nil
}

// parseSources parses the names of valuesFrom and tries its paths.
func parseSources(from []watches.ValuesFrom) ([]Source, error) {
	var list []Source
	for i, entry := range from {
		at := fmt.Sprintf("valuesFrom[%d]", i)
		name, err := parseObjectName(at+".name", entry.Name)
		if err != nil {
			return nil, err
		}
		if entry.TargetPath != "" {
			if err := chart.CheckPath(entry.TargetPath); err != nil {
				return nil, fmt.Errorf("%s.targetPath: %w", at, err)
			}
		}
		list = append(list, Source{ValuesFrom: entry, Object: name})
	}
	return list, nil
}

// maxReleaseName is Helm's limit, which leaves room for what charts append.
const maxReleaseName = 53

// ReleaseNames returns the names that the release of a custom resource may
// have, the best one first: the resource's own, and where that is taken the
// one with its kind.
func ReleaseNames(name, kind string) []string {
	return []string{releaseName(name), releaseName(name + "-" + kind)}
}

// releaseName makes a name one that Helm takes: dashes for dots, and 40 characters and
// a hash of the whole where it is too long.
func releaseName(name string) string {
	fitting := strings.ReplaceAll(strings.ToLower(name), ".", "-")
	if len(fitting) <= maxReleaseName {
		return fitting
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(fitting[:40], "-") + "-" + hex.EncodeToString(sum[:])[:12]
}
