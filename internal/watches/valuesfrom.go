package watches

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
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
func (v ValuesFrom) DataKey() string { return cmp.Or(v.Key, DefaultSourceKey) }

// checkValuesFrom reports sources that no object can be. Templates are the
// catalog's to parse.
func (p *parser) checkValuesFrom(w *Watch) {
	line := w.Lines["valuesFrom"]
	for i, from := range w.ValuesFrom {
		at := fmt.Sprintf("valuesFrom[%d]", i)
		if from.Kind != SourceSecret && from.Kind != SourceConfigMap {
			p.problemf(line, "%s.kind is %q: expected one of [%s %s]", at, from.Kind, SourceSecret, SourceConfigMap)
		}
		switch {
		case from.Name == "":
			p.problemf(line, "%s has no name: add one, for example name: \"{{ .metadata.name }}-values\"", at)
		case !IsTemplate(from.Name):
			p.checkName(line, at+".name", from.Name, validation.IsDNS1123Subdomain)
		}
		p.checkName(line, at+".key", from.DataKey(), validation.IsConfigMapKey)
	}
}

// RBACRule is a rule that the kind's chart needs and that cannot be derived from its
// templates, for example because values choose the objects. Without verbs it allows
// what the operator does with the objects of a release.
type RBACRule struct {
	rbacv1.PolicyRule
	// Template is the template that needs the rule. Everything that could not be
	// derived from the template then counts as declared.
	Template string `json:"template,omitempty"`
}

// isEmpty tells a rule that just says that its template needs no more.
func (r RBACRule) isEmpty() bool {
	return len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames)+len(r.NonResourceURLs)+len(r.Verbs) == 0
}

// CoversTemplate reports whether a rule speaks for a template of the chart.
func (w Watch) CoversTemplate(template string) bool {
	return slices.ContainsFunc(w.RBAC, func(r RBACRule) bool { return r.Template == template })
}

// checkRBAC reports rules that the API server would refuse, or that allow
// nothing.
func (p *parser) checkRBAC(w *Watch) {
	for i, rule := range w.RBAC {
		at := fmt.Sprintf("rbac[%d]", i)
		line := w.Lines[at]
		switch {
		case rule.isEmpty() && rule.Template == "":
			p.problemf(line, "%s says nothing: add apiGroups, resources and verbs, or the template that needs no more", at)
		case rule.isEmpty():
		case len(rule.NonResourceURLs) > 0 && len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0:
			p.problemf(line, "%s: nonResourceURLs stand alone: put resources into a rule of their own", at)
		case len(rule.NonResourceURLs) > 0 && len(rule.Verbs) == 0:
			p.problemf(line, "%s has no verbs: add them, for example verbs: [get]", at)
		case len(rule.NonResourceURLs) > 0:
		case len(rule.APIGroups) == 0 || len(rule.Resources) == 0:
			p.problemf(line, "%s: expected both apiGroups and resources, for example apiGroups: [\"\"], resources: [configmaps]", at)
		}
		for _, list := range [][]string{rule.Resources, rule.ResourceNames, rule.NonResourceURLs, rule.Verbs} {
			if slices.Contains(list, "") {
				p.problemf(line, "%s: a name is empty; only the group of Kubernetes' own objects is", at)
			}
		}
		for _, resource := range rule.Resources {
			if resource != strings.ToLower(resource) {
				p.problemf(line, "%s.resources: %q: expected the name that stands in paths, such as configmaps", at, resource)
			}
		}
	}
}
