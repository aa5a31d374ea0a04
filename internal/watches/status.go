package watches

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/api"
)

// fieldName matches valid names of status fields.
var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// builtIn are the status fields that every kind has.
var builtIn = slices.Sorted(slices.Values(api.JSONNames(reflect.TypeFor[api.Status]())))

// checkStatus reports invalid status fields. The catalog compiles the expressions.
func (p *parser) checkStatus(w *Watch) {
	for _, name := range slices.Sorted(maps.Keys(w.Status)) {
		line := w.Lines["status."+name]
		switch {
		case slices.Contains(builtIn, name):
			p.problemf(line, "status.%s: the name is reserved: choose a name other than %s", name, strings.Join(builtIn, ", "))
		case !fieldName.MatchString(name):
			p.problemf(line, "status: %q is not a field name: expected letters, digits, - and _, not starting with a digit or -", name)
		}
		if strings.TrimSpace(w.Status[name]) == "" {
			p.problemf(line, "status.%s is empty: expected an expression in CEL, for example size(observed.pods)", name)
		}
	}
}

// Observe names objects in the namespace of the release that status expressions read in
// addition to the managed resources, such as the pods of a Deployment.
type Observe struct {
	// Name is the name in expressions: observed.<name>.
	Name       string          `json:"name"`
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Selector   ObserveSelector `json:"selector"`
}

// ObserveSelector selects the objects.
type ObserveSelector struct {
	// MatchLabels are the labels that an object must have. A value may be a template over
	// the release and the custom resource.
	MatchLabels map[string]string `json:"matchLabels"`
}

// GVK returns the kind of the objects.
func (o Observe) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

// IsTemplate reports whether a value is a template.
func IsTemplate(value string) bool { return strings.Contains(value, "{{") }

// identifier matches the names that CEL accepts.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkObserve reports invalid entries of observe. The catalog parses the templates.
func (p *parser) checkObserve(w *Watch) {
	line := w.Lines["observe"]
	seen := map[string]bool{}
	for i, o := range w.Observe {
		at := fmt.Sprintf("observe[%d]", i)
		switch {
		case o.Name == "":
			p.problemf(line, "%s has no name: add one; expressions refer to it as observed.<name>", at)
		case !identifier.MatchString(o.Name):
			p.problemf(line, "%s.name: %q: expected letters, digits and _, not starting with a digit", at, o.Name)
		case seen[o.Name]:
			p.problemf(line, "%s.name: %s is already the name of another entry", at, o.Name)
		}
		seen[o.Name] = true
		if p.checkKind(line, at, o.APIVersion, o.Kind, "apiVersion: v1, kind: Pod") && o.GVK().GroupKind() == secrets {
			p.problemf(line, "%s: Secrets cannot be observed, because the status could reveal their content", at)
		}
		if len(o.Selector.MatchLabels) == 0 {
			p.problemf(line, "%s has no selector: add labels of the objects, for example selector: {matchLabels: {app: \"{{ .release.name }}\"}}", at)
		}
		for _, key := range slices.Sorted(maps.Keys(o.Selector.MatchLabels)) {
			value := o.Selector.MatchLabels[key]
			problems := validation.IsQualifiedName(key)
			if !IsTemplate(value) {
				problems = append(problems, validation.IsValidLabelValue(value)...)
			}
			if len(problems) > 0 {
				p.problemf(line, "%s.selector.matchLabels: %s: %q: %s", at, key, value, strings.Join(problems, "; "))
			}
		}
	}
}

// secrets is the kind that neither health rules nor status fields may read.
var secrets = schema.GroupKind{Kind: "Secret"}

// checkKind reports an entry without a valid kind. It returns whether the kind is valid.
func (p *parser) checkKind(line int, at, apiVersion, kind, example string) bool {
	if apiVersion == "" || kind == "" {
		p.problemf(line, "%s: expected both apiVersion and kind, for example %s", at, example)
		return false
	}
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		p.problemf(line, "%s.apiVersion: %v", at, err)
		return false
	}
	return true
}

// HealthRule determines when objects of a kind are ready. It replaces the operator's own
// rule for the kind. Its fields are expressions in CEL over self, the object.
type HealthRule struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Ready is true for an object that is ready. Required.
	Ready string `json:"ready"`
	// Failed is true for an object that cannot become ready without a change.
	Failed string `json:"failed,omitempty"`
	// Message explains why an object is not ready.
	Message string `json:"message,omitempty"`
}

// GroupKind returns the kind of the objects. The rule applies to every version of the kind.
func (h HealthRule) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(h.APIVersion, h.Kind).GroupKind()
}

// checkHealth reports rules without a valid kind, and duplicate rules. The catalog compiles
// the expressions.
func (p *parser) checkHealth(w *Watch) {
	seen := map[schema.GroupKind]int{}
	for i, rule := range w.Health {
		at := fmt.Sprintf("health[%d]", i)
		line := w.Lines[at]
		if !p.checkKind(line, at, rule.APIVersion, rule.Kind, "apiVersion: example.com/v1, kind: Widget") {
			continue
		}
		if rule.GroupKind() == secrets {
			p.problemf(line, "%s: a rule for Secrets is not supported, because its message could reveal their content", at)
		}
		if first, twice := seen[rule.GroupKind()]; twice {
			p.problemf(line, "%s: health[%d] is already a rule for %s: write one rule per kind, for all of its versions", at, first, rule.GroupKind())
		}
		seen[rule.GroupKind()] = i
		if strings.TrimSpace(rule.Ready) == "" {
			p.problemf(line, "%s has no ready: add an expression in CEL, for example ready: self.status.phase == 'Running'", at)
		}
	}
}
