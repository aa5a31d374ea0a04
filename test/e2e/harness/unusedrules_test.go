package harness

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestGrantedRules_Compare(t *testing.T) {
	t.Parallel()
	granted := &grantedRules{granted: map[string][]rbacv1.PolicyRule{"operator": {
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}},
	}}}
	const namespaces, deployments = "list namespaces", "get deployments.apps"
	for _, test := range []struct {
		name                   string
		used, probed, expected []string
		want                   string
	}{
		{"expected", []string{deployments}, nil, []string{namespaces}, ""},
		{"expected, and used by a probe", []string{deployments}, []string{namespaces}, []string{namespaces}, ""},
		{"expected, but used", []string{deployments, namespaces}, nil, []string{namespaces}, namespaces + " is listed as unused"},
		{"unused", []string{deployments}, nil, nil, namespaces + " is granted but never used"},
		{"used by a probe only", []string{deployments}, []string{namespaces}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			names := func(list []string) map[string]bool {
				set := map[string]bool{}
				for _, name := range list {
					set[name] = true
				}
				return set
			}
			var expected []Unused
			for _, name := range test.expected {
				expected = append(expected, Unused{Permission: name})
			}
			err := granted.compare(names(test.used), names(test.probed), expected)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want an error that contains %q", err, test.want)
			}
		})
	}
}
