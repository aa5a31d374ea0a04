package permissions

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// Rule is a rule for one resource that a kind requires, or the part of the rule that the
// operator lacks.
type Rule struct {
	permissions.Rule
	// Always: every release of the kind requires the rule, with any values.
	Always bool
	// Namespaces are the namespaces in which the rule is missing; none means all that the
	// operator watches.
	Namespaces []string
}

// ownRules returns the rules that a kind requires regardless of its chart, one resource
// per rule.
func ownRules(kind catalog.Kind, operator string, namespaced bool) []Rule {
	required := split(permissions.Own([]catalog.Kind{kind}, permissions.Options{Operator: operator}), namespaced)
	markAlways(required, ownResources(kind))
	return required
}

// deriveRules returns all rules that a kind requires, one resource per rule. It renders the
// chart many times. A kind that was removed has no chart.
func deriveRules(kind catalog.Kind, operator string, namespaced bool, mapper meta.RESTMapper) ([]Rule, error) {
	if kind.Chart == nil {
		return ownRules(kind, operator, namespaced), nil
	}
	report, err := permissions.Derive([]catalog.Kind{kind}, permissions.Options{Operator: operator})
	if err != nil {
		return nil, fmt.Errorf("derive its rules: %w", err)
	}
	required := split(report.Rules, namespaced)
	markAlways(required, append(ownResources(kind), defaultResources(kind, mapper)...))
	return required, nil
}

// split returns one rule per resource. An operator of some namespaces works without the
// permission to watch CRDs.
func split(rules []permissions.Rule, namespaced bool) []Rule {
	var required []Rule
	for _, rule := range rules {
		// Without any rules the whole rule is missing, split by resource.
		for _, single := range permissions.Allowed(nil, rule.PolicyRule) {
			if namespaced && permissions.SeesDefinitions(single) {
				continue
			}
			required = append(required, Rule{Rule: permissions.Rule{PolicyRule: single, Why: rule.Why}})
		}
	}
	return required
}

// markAlways marks the rules for resources that every release uses.
func markAlways(required []Rule, resources []schema.GroupResource) {
	for i := range required {
		required[i].Always = required[i].Always || slices.ContainsFunc(resources, required[i].of)
	}
}

// ownResources returns the resources of the custom resources and the release records.
func ownResources(kind catalog.Kind) []schema.GroupResource {
	own := crd.Resource(kind)
	return []schema.GroupResource{own, {Group: own.Group, Resource: own.Resource + "/status"}, {Resource: "secrets"}}
}

// defaultResources returns the resources of the objects that the chart renders with its
// default values, if that succeeds.
func defaultResources(kind catalog.Kind, mapper meta.RESTMapper) (resources []schema.GroupResource) {
	rendered, err := kind.Chart.Render(chart.Offline{
		Release: "release", Namespace: "namespace", Values: runtime.DeepCopyJSON(kind.Overrides), Numbers: kind.TemplateNumbers(),
	})
	if err != nil {
		return nil
	}
	for _, object := range append(rendered.Objects, rendered.Hooks...) {
		gvk := object.GroupVersionKind()
		// Rules for kinds that the API server does not serve have no effect.
		if mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			resources = append(resources, mapping.Resource.GroupResource())
		}
	}
	return resources
}

// missingRules returns the required rules, or parts of them, that the rules of each
// namespace do not allow. A namespace with unknown rules lacks none.
func missingRules(required []Rule, namespaces []string, have map[string][]rbacv1.PolicyRule) []Rule {
	var found []Rule
	for _, rule := range required {
		for _, namespace := range namespaces {
			rules, known := have[namespace]
			if !known {
				continue
			}
			for _, missing := range permissions.Allowed(rules, rule.PolicyRule) {
				text := permissions.RuleText(missing)
				at := slices.IndexFunc(found, func(other Rule) bool { return permissions.RuleText(other.PolicyRule) == text })
				if at < 0 {
					at, found = len(found), append(found, Rule{Rule: permissions.Rule{PolicyRule: missing, Why: rule.Why}})
				}
				found[at].Always = found[at].Always || rule.Always
				if !slices.Contains(found[at].Namespaces, namespace) {
					found[at].Namespaces = append(found[at].Namespaces, namespace)
				}
			}
		}
	}
	for i := range found {
		if len(found[i].Namespaces) == len(namespaces) {
			found[i].Namespaces = nil
		}
	}
	return found
}

// missingFrom returns the rules to add after a refused request: all missing rules for its
// resource, when the rules were last read, so that one change of the role is sufficient. It
// includes the refused rule if no required rule covers it.
func missingFrom(required []Rule, have []rbacv1.PolicyRule, refused rbacv1.PolicyRule) []rbacv1.PolicyRule {
	resource := schema.GroupResource{Group: refused.APIGroups[0], Resource: refused.Resources[0]}
	var missing []rbacv1.PolicyRule
	covered := false
	for _, rule := range required {
		if !rule.of(resource) {
			continue
		}
		rules := permissions.Allowed(have, rule.PolicyRule)
		covered = covered || len(permissions.Allowed(rules, refused)) == 0
		missing = append(missing, rules...)
	}
	if !covered {
		return append(missing, refused)
	}
	return missing
}

// of reports whether the rule is about a resource.
func (r Rule) of(resource schema.GroupResource) bool {
	return slices.Contains(r.APIGroups, resource.Group) && slices.Contains(r.Resources, resource.Resource)
}

// in reports whether the rule is missing in a namespace.
func (r Rule) in(namespace string) bool {
	return len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, namespace)
}

func (r Rule) equal(other Rule) bool {
	return r.Always == other.Always && permissions.RuleText(r.PolicyRule) == permissions.RuleText(other.PolicyRule) && slices.Equal(r.Namespaces, other.Namespaces)
}

// Text formats rules on one line.
func Text(missing []Rule) string {
	texts := make([]string, len(missing))
	for i := range missing {
		texts[i] = permissions.RuleText(missing[i].PolicyRule)
	}
	return strings.Join(texts, ", ")
}

// WatchRule formats the rule for reading and watching a resource on one line.
func WatchRule(resource schema.GroupVersionResource) string {
	return permissions.RuleText(rbacv1.PolicyRule{
		APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: []string{"get", "list", "watch"},
	})
}

// Lines formats rules as a list that can be copied into a Role, with the reasons as
// comments.
func Lines(missing []Rule) (lines []string) {
	for _, part := range []struct {
		always bool
		title  string
	}{
		{true, "rules missing from the operator's role"},
		{false, "rules missing from the operator's role that only some values need"},
	} {
		first := len(lines)
		for _, m := range missing {
			if m.Always != part.always {
				continue
			}
			why := m.Why
			if len(m.Namespaces) > 0 {
				why = fmt.Sprintf("in %s; %s", strings.Join(m.Namespaces, ", "), why)
			}
			lines = append(lines, fmt.Sprintf("  - %s # %s", permissions.RuleText(m.PolicyRule), why))
		}
		if len(lines) > first {
			lines = slices.Insert(lines, first, "  "+part.title)
		}
	}
	return lines
}
