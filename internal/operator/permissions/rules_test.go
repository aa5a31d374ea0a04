package permissions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/chart/permissions"
)

func requiredOf(r rbacv1.PolicyRule, always bool) Rule {
	return Rule{Rule: permissions.Rule{PolicyRule: r, Why: "why"}, Always: always}
}

func TestMissingRules(t *testing.T) {
	deployments := requiredOf(rule("apps", "deployments", "get", "create"), true)
	pods := requiredOf(rule("", "pods", "list"), false)
	for _, test := range []struct {
		name       string
		needs      []Rule
		namespaces []string
		have       map[string][]rbacv1.PolicyRule
		want       []Rule
	}{
		{"all is there", []Rule{deployments, pods}, []string{allNamespaces}, map[string][]rbacv1.PolicyRule{allNamespaces: {rule("*", "*", "*")}}, nil},
		{
			"a verb and a resource", []Rule{deployments, pods}, []string{allNamespaces}, map[string][]rbacv1.PolicyRule{allNamespaces: {rule("apps", "deployments", "get")}},
			[]Rule{missingOf(true, "why", rule("apps", "deployments", "create")), missingOf(false, "why", rule("", "pods", "list"))},
		},
		{
			"in one namespace of two", []Rule{deployments}, []string{"a", "b"},
			map[string][]rbacv1.PolicyRule{"a": {rule("apps", "deployments", "*")}, "b": {}},
			[]Rule{missingOf(true, "why", rule("apps", "deployments", "get", "create"), "b")},
		},
		{
			"in each of two another", []Rule{deployments}, []string{"a", "b"},
			map[string][]rbacv1.PolicyRule{"a": {rule("apps", "deployments", "get")}, "b": {rule("apps", "deployments", "create")}},
			[]Rule{missingOf(true, "why", rule("apps", "deployments", "create"), "a"), missingOf(true, "why", rule("apps", "deployments", "get"), "b")},
		},
		{
			"in both", []Rule{pods}, []string{"a", "b"}, map[string][]rbacv1.PolicyRule{"a": {}, "b": {}},
			[]Rule{missingOf(false, "why", rule("", "pods", "list"))},
		},
		{"where nothing is known", []Rule{deployments}, []string{"a"}, map[string][]rbacv1.PolicyRule{}, nil},
		{
			"for two reasons, one for every release", []Rule{requiredOf(pods.PolicyRule, false), requiredOf(pods.PolicyRule, true)}, []string{allNamespaces},
			map[string][]rbacv1.PolicyRule{allNamespaces: nil}, []Rule{missingOf(true, "why", rule("", "pods", "list"))},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := missingRules(test.needs, test.namespaces, test.have)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Rule{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMissingRules_AreSufficient: after adding these rules in these namespaces, the operator
// lacks no rules.
func TestMissingRules_AreSufficient(t *testing.T) {
	rules := rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		words := func(name string, from ...string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, 2, rapid.ID[string]).Draw(t, name)
		}
		return rbacv1.PolicyRule{
			APIGroups: words("groups", "", "apps"), Resources: words("resources", "a", "b", "b/status"), Verbs: words("verbs", "get", "list", "create"),
			ResourceNames: rapid.SampledFrom([][]string{nil, {"x"}, {"x", "y"}}).Draw(t, "names"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		namespaces := []string{"one", "two"}
		var needs []Rule
		for _, r := range rapid.SliceOfN(rules, 1, 4).Draw(t, "needs") {
			needs = append(needs, requiredOf(r, false))
		}
		have := map[string][]rbacv1.PolicyRule{}
		for _, namespace := range namespaces {
			have[namespace] = rapid.SliceOfN(rules, 0, 3).Draw(t, namespace)
		}
		for _, l := range missingRules(needs, namespaces, have) {
			added := false
			for _, namespace := range namespaces {
				if l.in(namespace) {
					added = true
					have[namespace] = append(have[namespace], l.PolicyRule)
				}
			}
			if !added {
				t.Errorf("%s is lacking nowhere", permissions.RuleText(l.PolicyRule))
			}
		}
		if left := missingRules(needs, namespaces, have); len(left) > 0 {
			t.Errorf("%s are still lacking", Text(left))
		}
	})
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func missingOf(always bool, why string, r rbacv1.PolicyRule, namespaces ...string) Rule {
	return Rule{Rule: permissions.Rule{PolicyRule: r, Why: why}, Always: always, Namespaces: namespaces}
}
