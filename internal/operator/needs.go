package operator

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// needsOf returns what serving a kind takes, one resource a rule.
// An operator of some namespaces does without the sight of definitions.
func needsOf(kind catalog.Kind, operator string, namespaced bool) ([]need, error) {
	report, err := permissions.Derive([]catalog.Kind{kind}, permissions.Options{Operator: operator})
	if err != nil {
		return nil, fmt.Errorf("derive its rules: %w", err)
	}
	var needs []need
	for _, rule := range report.Rules {
		// What nobody has is missing whole, and comes back split.
		for _, single := range permissions.Allowed(nil, rule.PolicyRule) {
			if namespaced && permissions.SeesDefinitions(single) {
				continue
			}
			needs = append(needs, need{Rule: permissions.Rule{PolicyRule: single, Why: rule.Why}})
		}
	}
	return needs, nil
}

// markAlways marks the needs that every release has: those of the custom
// resources and the records, and those of the objects that the chart's default
// values render. Where they render nothing, no more is known.
func markAlways(kind catalog.Kind, needs []need, mapper meta.RESTMapper) error {
	definition, _, err := crd.Generate(kind)
	if err != nil {
		return err
	}
	plural := definition.Spec.Names.Plural
	always := []schema.GroupResource{
		{Group: kind.Group, Resource: plural}, {Group: kind.Group, Resource: plural + "/status"}, {Resource: "secrets"},
	}
	rendered, err := kind.Chart.Render(chart.Offline{
		Release: "release", Namespace: "namespace", Values: runtime.DeepCopyJSON(kind.Overrides),
	})
	if err == nil {
		for _, object := range append(rendered.Objects, rendered.Hooks...) {
			gvk := object.GroupVersionKind()
			// A kind that the API server does not have is not one of its rights.
			if mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
				always = append(always, mapping.Resource.GroupResource())
			}
		}
	}
	for i := range needs {
		needs[i].always = slices.ContainsFunc(always, needs[i].of)
	}
	return nil
}

// missingFrom returns what of the needs about the resource of a refused rule was
// not allowed when the rules were last read, so that one addition is enough; the
// refused rule itself where none of them is about it.
func missingFrom(needs []need, have []rbacv1.PolicyRule, refused rbacv1.PolicyRule) []rbacv1.PolicyRule {
	resource := schema.GroupResource{Group: refused.APIGroups[0], Resource: refused.Resources[0]}
	var missing []rbacv1.PolicyRule
	covered := false
	for i := range needs {
		if !needs[i].of(resource) {
			continue
		}
		rules := permissions.Allowed(have, needs[i].PolicyRule)
		covered = covered || len(permissions.Allowed(rules, refused)) == 0
		missing = append(missing, rules...)
	}
	if !covered {
		return append(missing, refused)
	}
	return missing
}
