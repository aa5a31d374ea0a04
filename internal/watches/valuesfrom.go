package watches

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ValuesFrom is an object whose content becomes values in addition to the spec.
type ValuesFrom struct {
	// APIVersion is the API version of the object; empty means v1. Kinds other than Secret
	// and ConfigMap require it.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	// Name is the name of an object in the namespace of the custom resource, or of the
	// release if the custom resource is cluster-scoped. It may be a template over the
	// custom resource. It cannot select another namespace. If the result is empty, the
	// custom resource does not have the source.
	Name string `json:"name"`
	// Key is the key in the data of a Secret or ConfigMap; empty means DefaultSourceKey.
	Key string `json:"key,omitempty"`
	// Expression is an expression in CEL over self, the object, in place of Key. Kinds other
	// than Secret and ConfigMap require it.
	Expression string `json:"expression,omitempty"`
	// TargetPath is the value to set to the content of the key, or to the result of the
	// expression, as a path like in helm's --set. If it is empty, the content is YAML, or
	// the result a map, that is merged into the values.
	TargetPath string `json:"targetPath,omitempty"`
	// Optional: the object, or what the expression reads, may be missing.
	Optional bool `json:"optional,omitempty"`
}

// Kinds of sources that have keys. Both are in the core group.
const (
	SourceSecret    = "Secret"
	SourceConfigMap = "ConfigMap"
)

// DefaultSourceKey is the key of a source without Key and Expression.
const DefaultSourceKey = "values.yaml"

// DataKey returns Key or its default, empty for a source with an expression.
func (v ValuesFrom) DataKey() string {
	if v.Expression != "" {
		return v.Key
	}
	return cmp.Or(v.Key, DefaultSourceKey)
}

// GVK returns the kind of the object.
func (v ValuesFrom) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(cmp.Or(v.APIVersion, "v1"), v.Kind)
}

// HasKeys reports whether the object is a Secret or a ConfigMap.
func (v ValuesFrom) HasKeys() bool {
	return v.GVK().Group == "" && (v.Kind == SourceSecret || v.Kind == SourceConfigMap)
}

// checkValuesFrom reports invalid sources. The catalog parses the templates and compiles the
// expressions.
func (p *parser) checkValuesFrom(w *Watch) {
	line := w.Lines["valuesFrom"]
	for i, from := range w.ValuesFrom {
		at := fmt.Sprintf("valuesFrom[%d]", i)
		p.checkSourceKind(line, at, from)
		switch {
		case from.Name == "":
			p.problemf(line, "%s has no name: add one, for example name: \"{{ .metadata.name }}-values\"", at)
		case !IsTemplate(from.Name):
			p.checkName(line, at+".name", from.Name, asError(validation.IsDNS1123Subdomain))
		}
		if from.Expression == "" {
			p.checkName(line, at+".key", from.DataKey(), asError(validation.IsConfigMapKey))
		}
	}
}

// checkSourceKind reports an invalid kind, and keys that do not match the kind.
func (p *parser) checkSourceKind(line int, at string, from ValuesFrom) {
	switch {
	case from.Kind == "":
		p.problemf(line, "%s has no kind: add one, for example kind: %s", at, SourceSecret)
		return
	case !p.checkKind(line, at, cmp.Or(from.APIVersion, "v1"), from.Kind, "apiVersion: example.com/v1, kind: Database"),
		!p.checkName(line, at+".kind", from.Kind, CheckKind):
		return
	case from.HasKeys() && from.GVK().Version != "v1":
		p.problemf(line, "%s.apiVersion is %q: expected v1 for the kind %s", at, from.APIVersion, from.Kind)
	case !from.HasKeys() && from.APIVersion == "":
		p.problemf(line, "%s has no apiVersion: kinds other than %s and %s require it, for example apiVersion: example.com/v1", at, SourceSecret, SourceConfigMap)
	case !from.HasKeys() && from.Expression == "":
		p.problemf(line, "%s has no expression: kinds other than %s and %s require it, for example expression: self.status.host", at, SourceSecret, SourceConfigMap)
	}
	if from.Key != "" && from.Expression != "" {
		p.problemf(line, "%s has both a key and an expression: remove one of them", at)
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
