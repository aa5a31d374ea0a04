package watches

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ValuesFrom is a Secret or ConfigMap whose content becomes values in addition to the spec.
type ValuesFrom struct {
	Kind SourceKind `json:"kind"`
	// Name is the name of an object in the namespace of the custom resource, or of the
	// release if the custom resource is cluster-scoped. It may be a template over the
	// custom resource. It cannot select another namespace.
	Name string `json:"name"`
	// Key is the key in the object's data; empty means DefaultSourceKey.
	Key string `json:"key,omitempty"`
	// TargetPath is the value to set to the content of the key, as a path like in helm's
	// --set. If it is empty, the content is YAML that is merged into the values.
	TargetPath string `json:"targetPath,omitempty"`
	// Optional: the object may be missing.
	Optional bool `json:"optional,omitempty"`
}

// SourceKind is the kind of a source of values.
type SourceKind string

// Source kinds.
const (
	SourceSecret    SourceKind = "Secret"
	SourceConfigMap SourceKind = "ConfigMap"
)

// DefaultSourceKey is the key of a source without Key.
const DefaultSourceKey = "values.yaml"

// DataKey returns Key or its default.
func (v ValuesFrom) DataKey() string { return cmp.Or(v.Key, DefaultSourceKey) }

// checkValuesFrom reports invalid sources. The catalog parses the templates.
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
			p.checkName(line, at+".name", from.Name, asError(validation.IsDNS1123Subdomain))
		}
		p.checkName(line, at+".key", from.DataKey(), asError(validation.IsConfigMapKey))
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

// isEmpty reports whether the rule allows nothing, so that it only declares that its
// template needs no more rules.
func (r RBACRule) isEmpty() bool {
	return len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames)+len(r.NonResourceURLs)+len(r.Verbs) == 0
}

// CoversTemplate reports whether a rule exists for a template of the chart.
func (w Watch) CoversTemplate(template string) bool {
	return slices.ContainsFunc(w.RBAC, func(r RBACRule) bool { return r.Template == template })
}

// checkRBAC reports rules that the API server would reject, or that allow nothing.
func (p *parser) checkRBAC(w *Watch) {
	for i, rule := range w.RBAC {
		at := fmt.Sprintf("rbac[%d]", i)
		line := w.Lines[at]
		switch {
		case rule.isEmpty() && rule.Template == "":
			p.problemf(line, "%s is empty: add apiGroups, resources and verbs, or the template that needs no more rules", at)
		case rule.isEmpty():
		case len(rule.NonResourceURLs) > 0 && len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0:
			p.problemf(line, "%s: nonResourceURLs cannot be combined with resources: use separate rules", at)
		case len(rule.NonResourceURLs) > 0 && len(rule.Verbs) == 0:
			p.problemf(line, "%s has no verbs: add them, for example verbs: [get]", at)
		case len(rule.NonResourceURLs) > 0:
		case len(rule.APIGroups) == 0 || len(rule.Resources) == 0:
			p.problemf(line, "%s: expected both apiGroups and resources, for example apiGroups: [\"\"], resources: [configmaps]", at)
		}
		for _, list := range [][]string{rule.Resources, rule.ResourceNames, rule.NonResourceURLs, rule.Verbs} {
			if slices.Contains(list, "") {
				p.problemf(line, "%s: a name is empty: only the core API group has an empty name", at)
			}
		}
		for _, resource := range rule.Resources {
			if resource != strings.ToLower(resource) {
				p.problemf(line, "%s.resources: %q: expected the plural name in lower case, such as configmaps", at, resource)
			}
		}
	}
}
