package permissions

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestDerive_ChartKinds compares the rules with the ClusterRole in config/chartkinds, and
// expects them in a ClusterRole even for an operator of some namespaces.
func TestDerive_ChartKinds(t *testing.T) {
	data, err := os.ReadFile("../../../config/chartkinds/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096).Decode(&role); err != nil {
		t.Fatal(err)
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return rule.Resources[0] == "events" })
	for _, namespaced := range []bool{false, true} {
		report, err := Derive(nil, Options{ChartKinds: true, Namespaced: namespaced})
		if err != nil {
			t.Fatal(err)
		}
		var rules []rbacv1.PolicyRule
		for _, rule := range report.Rules {
			if rule.APIGroups[0] != "chartwright.dev" {
				continue
			}
			if rule.Everywhere != namespaced {
				t.Errorf("%v requires a ClusterRole: %v, want %v", rule.Resources, rule.Everywhere, namespaced)
			}
			rules = append(rules, rule.PolicyRule)
		}
		if diff := cmp.Diff(role.Rules, rules); diff != "" {
			t.Errorf("config/chartkinds/role.yaml differs (-role +derived):\n%s", diff)
		}
	}
	plain, err := Derive(nil, Options{InstallCRDs: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range plain.Rules {
		if rule.APIGroups[0] == "chartwright.dev" {
			t.Errorf("without ChartKinds, the role has %v", rule.PolicyRule)
		}
	}
}
