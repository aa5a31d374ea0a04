package watches

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Observe names objects of the release's namespace that the kind's own status
// fields speak of, beside those of the release: the pods of its Deployment, say.
type Observe struct {
	// Name is what expressions call them: observed.<name>.
	Name       string          `json:"name"`
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Selector   ObserveSelector `json:"selector"`
}

// ObserveSelector tells which objects they are.
type ObserveSelector struct {
	// MatchLabels are the labels that an object must have. A value may be a
	// template over the release and the custom resource.
	MatchLabels map[string]string `json:"matchLabels"`
}

// GVK returns the kind of the objects.
func (o Observe) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

// Templated tells a value that differs from one custom resource to another from
// one that does not.
func Templated(value string) bool { return strings.Contains(value, "{{") }

// identifier is what CEL takes for a name.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkObserve reports what nothing can be observed by. Templates are the
// catalog's to parse.
func (p *parser) checkObserve(w *Watch, lines map[string]int) {
	line := lines["observe"]
	seen := map[string]bool{}
	for i, o := range w.Observe {
		at := fmt.Sprintf("observe[%d]", i)
		switch {
		case o.Name == "":
			p.problemf(line, "%s has no name: add one, by which expressions say observed.<name>", at)
		case !identifier.MatchString(o.Name):
			p.problemf(line, "%s.name: %q: expected letters, digits and _, and no digit first", at, o.Name)
		case seen[o.Name]:
			p.problemf(line, "%s.name: %s is the name of another entry, too", at, o.Name)
		}
		seen[o.Name] = true
		p.checkObservedKind(line, at, o)
		if len(o.Selector.MatchLabels) == 0 {
			p.problemf(line, "%s has no selector: add the labels that the objects have, for example selector: {matchLabels: {app: \"{{ .release.name }}\"}}", at)
		}
		for _, key := range slices.Sorted(maps.Keys(o.Selector.MatchLabels)) {
			value := o.Selector.MatchLabels[key]
			problems := validation.IsQualifiedName(key)
			if !Templated(value) {
				problems = append(problems, validation.IsValidLabelValue(value)...)
			}
			if len(problems) > 0 {
				p.problemf(line, "%s.selector.matchLabels: %s: %q: %s", at, key, value, strings.Join(problems, "; "))
			}
		}
	}
}

func (p *parser) checkObservedKind(line int, at string, o Observe) {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	switch {
	case o.APIVersion == "" || o.Kind == "":
		p.problemf(line, "%s: expected both apiVersion and kind, for example apiVersion: v1, kind: Pod", at)
	case err != nil:
		p.problemf(line, "%s.apiVersion: %v", at, err)
	case gv.Group == "" && o.Kind == "Secret":
		p.problemf(line, "%s: Secrets are not observed, for the status would tell what they hold", at)
	}
}
