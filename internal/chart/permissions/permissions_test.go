package permissions_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/chart/permissions"
)

func words(list string) []string { return strings.Fields(list) }

func TestAllowed(t *testing.T) {
	rule := func(verbs, groups, resources, names string) rbacv1.PolicyRule {
		if groups == "core" {
			groups = ""
		}
		return rbacv1.PolicyRule{Verbs: words(verbs), APIGroups: strings.Split(groups, " "), Resources: words(resources), ResourceNames: words(names)}
	}
	url := func(verb string, urls ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: urls}
	}
	for _, test := range []struct {
		name string
		have []rbacv1.PolicyRule
		need rbacv1.PolicyRule
		want []string
	}{
		{"nothing", nil, rule("get list", "core", "pods", ""), []string{"pods: get list"}},
		{"the same", []rbacv1.PolicyRule{rule("get", "core", "pods", "")}, rule("get", "core", "pods", ""), nil},
		{"a verb less", []rbacv1.PolicyRule{rule("get watch", "core", "pods", "")}, rule("get list watch", "core", "pods", ""), []string{"pods: list"}},
		{"another group", []rbacv1.PolicyRule{rule("get", "apps", "pods", "")}, rule("get", "core", "pods", ""), []string{"pods: get"}},
		{"by two rules", []rbacv1.PolicyRule{rule("get", "core", "pods", ""), rule("list", "core", "pods services", "")}, rule("get list", "core", "pods", ""), nil},
		{"by all verbs", []rbacv1.PolicyRule{rule("*", "core", "pods", "")}, rule("get list", "core", "pods", ""), nil},
		{"by all groups", []rbacv1.PolicyRule{rule("get", "*", "pods", "")}, rule("get", "core", "pods", ""), nil},
		{"by all resources", []rbacv1.PolicyRule{rule("get", "core", "*", "")}, rule("get", "core", "pods pods/log", ""), nil},
		{"a subresource", []rbacv1.PolicyRule{rule("get", "core", "pods", "")}, rule("get", "core", "pods/log", ""), []string{"pods/log: get"}},
		{"a subresource of all", []rbacv1.PolicyRule{rule("get", "apps", "*/scale", "")}, rule("get", "apps", "deployments/scale deployments", ""), []string{"deployments.apps: get"}},
		{"a name, by all", []rbacv1.PolicyRule{rule("get", "core", "pods", "")}, rule("get", "core", "pods", "web"), nil},
		{"all, by a name", []rbacv1.PolicyRule{rule("get", "core", "pods", "web")}, rule("get", "core", "pods", ""), []string{"pods: get"}},
		{"a name less", []rbacv1.PolicyRule{rule("get", "core", "pods", "web")}, rule("get", "core", "pods", "web api"), []string{"pods (api): get"}},
		{"what needs everything", []rbacv1.PolicyRule{rule("get list", "core", "pods", "")}, rule("*", "core", "pods", ""), []string{"pods: *"}},
		{"a path", []rbacv1.PolicyRule{url("get", "/metrics")}, url("get", "/metrics", "/healthz"), []string{"/healthz: get"}},
		{"paths below", []rbacv1.PolicyRule{url("get", "/healthz/*")}, url("get", "/healthz/ping", "/healthz"), []string{"/healthz: get"}},
		{"a path is no resource", []rbacv1.PolicyRule{rule("get", "*", "*", "")}, url("get", "/metrics"), []string{"/metrics: get"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, missing := range permissions.Allowed(test.have, test.need) {
				var verbs []string
				resource := ""
				for _, line := range lines(permissions.Rule{PolicyRule: missing}) {
					name, verb, _ := strings.Cut(line, ": ")
					resource, verbs = name, append(verbs, verb)
				}
				got = append(got, resource+": "+strings.Join(verbs, " "))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

// drawRule draws a rule from few words, so that rules often overlap.
func drawRule(t *rapid.T) rbacv1.PolicyRule {
	some := func(label string, from ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, 2, rapid.ID[string]).Draw(t, label)
	}
	rule := rbacv1.PolicyRule{Verbs: some("verbs", "get", "list", "*")}
	if rapid.IntRange(0, 5).Draw(t, "path") == 0 {
		rule.NonResourceURLs = some("urls", "/a", "/a/b", "/a/*")
		return rule
	}
	rule.APIGroups = some("groups", "", "apps", "*")
	rule.Resources = some("resources", "pods", "pods/log", "*/log", "*")
	if rapid.Bool().Draw(t, "named") {
		rule.ResourceNames = some("names", "web", "api")
	}
	return rule
}

func TestAllowed_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have := rapid.SliceOfN(rapid.Custom(drawRule), 0, 4).Draw(t, "have")
		need := drawRule(t)
		missing := permissions.Allowed(have, need)
		if left := permissions.Allowed(append(slices.Clone(have), need), need); left != nil {
			t.Errorf("the rule itself lacks %v", left)
		}
		if left := permissions.Allowed(append(slices.Clone(have), missing...), need); left != nil {
			t.Errorf("with the missing rules added, the rules lack %v", left)
		}
		more := append(slices.Clone(have), drawRule(t))
		for _, still := range permissions.Allowed(more, need) {
			if left := permissions.Allowed(missing, still); left != nil {
				t.Errorf("with one more rule, the rules lack more: %v", left)
			}
		}
		for _, one := range missing {
			if left := permissions.Allowed([]rbacv1.PolicyRule{need}, one); left != nil {
				t.Errorf("missing, but not in the needed rule: %v", left)
			}
			for _, single := range permissions.Allowed(nil, one) {
				if permissions.Allowed(have, single) == nil {
					t.Errorf("missing, but allowed: %v", single)
				}
			}
		}
	})
}
