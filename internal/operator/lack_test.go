package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/chart/permissions"
)

func needOf(r rbacv1.PolicyRule, always bool) need {
	return need{Rule: permissions.Rule{PolicyRule: r, Why: "why"}, always: always}
}

func TestLacking(t *testing.T) {
	deployments := needOf(rule("apps", "deployments", "get", "create"), true)
	pods := needOf(rule("", "pods", "list"), false)
	for _, test := range []struct {
		name       string
		needs      []need
		namespaces []string
		have       map[string][]rbacv1.PolicyRule
		want       []lack
	}{
		{"all is there", []need{deployments, pods}, []string{everywhere}, map[string][]rbacv1.PolicyRule{everywhere: {rule("*", "*", "*")}}, nil},
		{
			"a verb and a resource", []need{deployments, pods}, []string{everywhere}, map[string][]rbacv1.PolicyRule{everywhere: {rule("apps", "deployments", "get")}},
			[]lack{lackOf(true, "why", rule("apps", "deployments", "create")), lackOf(false, "why", rule("", "pods", "list"))},
		},
		{
			"in one namespace of two", []need{deployments}, []string{"a", "b"},
			map[string][]rbacv1.PolicyRule{"a": {rule("apps", "deployments", "*")}, "b": {}},
			[]lack{lackOf(true, "why", rule("apps", "deployments", "get", "create"), "b")},
		},
		{
			"in each of two another", []need{deployments}, []string{"a", "b"},
			map[string][]rbacv1.PolicyRule{"a": {rule("apps", "deployments", "get")}, "b": {rule("apps", "deployments", "create")}},
			[]lack{lackOf(true, "why", rule("apps", "deployments", "create"), "a"), lackOf(true, "why", rule("apps", "deployments", "get"), "b")},
		},
		{
			"in both", []need{pods}, []string{"a", "b"}, map[string][]rbacv1.PolicyRule{"a": {}, "b": {}},
			[]lack{lackOf(false, "why", rule("", "pods", "list"))},
		},
		{"where nothing is known", []need{deployments}, []string{"a"}, map[string][]rbacv1.PolicyRule{}, nil},
		{
			"for two reasons, of which one always holds", []need{needOf(pods.PolicyRule, false), needOf(pods.PolicyRule, true)}, []string{everywhere},
			map[string][]rbacv1.PolicyRule{everywhere: nil}, []lack{lackOf(true, "why", rule("", "pods", "list"))},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := lacking(test.needs, test.namespaces, test.have)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(lack{}, need{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsLackingIsEnough: whoever adds just these rules, in these namespaces,
// lacks nothing.
func TestWhatIsLackingIsEnough(t *testing.T) {
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
		var needs []need
		for _, r := range rapid.SliceOfN(rules, 1, 4).Draw(t, "needs") {
			needs = append(needs, needOf(r, false))
		}
		have := map[string][]rbacv1.PolicyRule{}
		for _, namespace := range namespaces {
			have[namespace] = rapid.SliceOfN(rules, 0, 3).Draw(t, namespace)
		}
		for _, l := range lacking(needs, namespaces, have) {
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
		if left := lacking(needs, namespaces, have); len(left) > 0 {
			t.Errorf("%s are still lacking", rulesText(left))
		}
	})
}
