package watches_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chartwright/chartwright/internal/watches"
)

func TestRBACRules(t *testing.T) {
	entries, err := watches.Parse("watches.yaml", []byte(`- version: v1
  kind: A
  chart: a
  rbac:
    - apiGroups: [""]
      resources: [configmaps]
      template: templates/extra.yaml
    - {apiGroups: [apps], resources: [deployments/scale], resourceNames: [web], verbs: [patch]}
    - {nonResourceURLs: [/metrics], verbs: [get]}
    - template: templates/none.yaml
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []watches.RBACRule{
		{PolicyRule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}}, Template: "templates/extra.yaml"},
		{PolicyRule: rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, ResourceNames: []string{"web"}, Verbs: []string{"patch"}}},
		{PolicyRule: rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		{Template: "templates/none.yaml"},
	}
	if diff := cmp.Diff(want, entries[0].RBAC); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for template, settled := range map[string]bool{"templates/extra.yaml": true, "templates/none.yaml": true, "templates/other.yaml": false, "extra.yaml": false} {
		if entries[0].CoversTemplate(template) != settled {
			t.Errorf("%s is settled: %t", template, !settled)
		}
	}
}

func TestRBACRules_Rejected(t *testing.T) {
	for _, test := range []refusal{
		{"nothing", []string{"rbac:", "  - {template: a}", "  - {}"}, []string{"watches.yaml:6: rbac[1] is empty: add apiGroups, resources and verbs"}},
		{"no resources", []string{`rbac: [{apiGroups: [""], verbs: [get]}]`}, []string{"watches.yaml:4: rbac[0]: expected both apiGroups and resources"}},
		{"no groups", []string{"rbac: [{resources: [pods]}]"}, []string{"watches.yaml:4: rbac[0]: expected both apiGroups and resources"}},
		{"only verbs", []string{"rbac: [{verbs: [get]}]"}, []string{"watches.yaml:4: rbac[0]: expected both apiGroups and resources"}},
		{"a URL without verbs", []string{"rbac: [{nonResourceURLs: [/metrics]}]"}, []string{"watches.yaml:4: rbac[0] has no verbs: add them"}},
		{"a URL and resources", []string{`rbac: [{nonResourceURLs: [/metrics], apiGroups: [""], resources: [pods], verbs: [get]}]`}, []string{"watches.yaml:4: rbac[0]: nonResourceURLs cannot be combined with resources"}},
		{"an empty verb", []string{`rbac: [{apiGroups: [""], resources: [pods], verbs: [""]}]`}, []string{"watches.yaml:4: rbac[0]: a name is empty"}},
		{"a kind", []string{`rbac: [{apiGroups: [""], resources: [ConfigMap]}]`}, []string{`watches.yaml:4: rbac[0].resources: "ConfigMap": expected the plural name in lower case`}},
		{"an unknown key", []string{`rbac: [{apiGroup: [""]}]`}, []string{`watches.yaml:4: rbac: unknown field "apiGroup"`}},
	} {
		t.Run(test.name, test.run)
	}
}
