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

// fieldName is what a field of the status may be called.
var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// builtIn are the fields of the status that every kind has.
var builtIn = slices.Sorted(slices.Values(api.JSONNames(reflect.TypeFor[api.Status]())))

// checkStatus reports fields that cannot be told. Expressions are the catalog's
// to compile.
func (p *parser) checkStatus(w *Watch) {
	for _, name := range slices.Sorted(maps.Keys(w.Status)) {
		line := w.Lines["status."+name]
		switch {
		case slices.Contains(builtIn, name):
			p.problemf(line, "status.%s: every kind has a field of that name: choose another, which is none of %s", name, strings.Join(builtIn, ", "))
		case !fieldName.MatchString(name):
			p.problemf(line, "status: %q is no name of a field: expected letters, digits, - and _, and no digit first", name)
		}
		if strings.TrimSpace(w.Status[name]) == "" {
			p.problemf(line, "status.%s is empty: expected an expression in CEL, for example size(observed.pods)", name)
		}
	}
}

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

// IsTemplate tells a value that differs from one custom resource to another from
// one that does not.
func IsTemplate(value string) bool { return strings.Contains(value, "{{") }

// identifier is what CEL takes for a name.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkObserve reports what nothing can be observed by. Templates are the
// catalog's to parse.
func (p *parser) checkObserve(w *Watch) {
	line := w.Lines["observe"]
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
		if p.checkKind(line, at, o.APIVersion, o.Kind, "apiVersion: v1, kind: Pod") && o.GVK().GroupKind() == secrets {
			p.problemf(line, "%s: Secrets are not observed, for the status would tell what they hold", at)
		}
		if len(o.Selector.MatchLabels) == 0 {
			p.problemf(line, "%s has no selector: add the labels that the objects have, for example selector: {matchLabels: {app: \"{{ .release.name }}\"}}", at)
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

// checkKind reports whether an entry names a kind, and adds a problem if not.
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

// HealthRule tells when objects of a kind are ready, in place of what the
// operator knows of the kind. Its fields are expressions in CEL over self, the
// object.
type HealthRule struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Ready is true of an object that is ready. Required.
	Ready string `json:"ready"`
	// Failed is true of an object that does not become ready by itself.
	Failed string `json:"failed,omitempty"`
	// Message says what an object waits for that is not ready.
	Message string `json:"message,omitempty"`
}

// GroupKind returns the kind of the objects. The rule holds in every version of
// it.
func (h HealthRule) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(h.APIVersion, h.Kind).GroupKind()
}

// checkHealth reports rules that select nothing, or select what others do.
// Expressions are compiled by the catalog.
func (p *parser) checkHealth(w *Watch) {
	seen := map[schema.GroupKind]int{}
	for i, rule := range w.Health {
		at := fmt.Sprintf("health[%d]", i)
		line := w.Lines[at]
		if !p.checkKind(line, at, rule.APIVersion, rule.Kind, "apiVersion: example.com/v1, kind: Widget") {
			continue
		}
		if rule.GroupKind() == secrets {
			p.problemf(line, "%s: a rule for Secrets is not supported, because its message could reveal what they hold", at)
		}
		if first, twice := seen[rule.GroupKind()]; twice {
			p.problemf(line, "%s: health[%d] is a rule for %s, too: write one rule per kind, for all of its versions", at, first, rule.GroupKind())
		}
		seen[rule.GroupKind()] = i
		if strings.TrimSpace(rule.Ready) == "" {
			p.problemf(line, "%s has no ready: add an expression in CEL, for example ready: self.status.phase == 'Running'", at)
		}
	}
}
