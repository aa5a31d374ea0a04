package scaffold_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGenerate_AggregatesOnlyRolesOfOneNamespace: the built-in roles admin and
// edit are for one namespace, and must not contain a kind whose custom resources
// have effects outside theirs.
func TestGenerate_AggregatesOnlyRolesOfOneNamespace(t *testing.T) {
	const clusterRole = "clusterScoped: [ClusterRole.rbac.authorization.k8s.io]"
	for _, test := range []struct {
		name, keys, why string
	}{
		{"nothing allowed", "allow: {}", ""},
		{"own namespace only", "allow: {lookup: own, takeOwnership: onRequest}", ""},
		{"cluster-scoped kind", "scope: Cluster, releaseNamespace: '{{ .spec.target }}'", "the kind is cluster-scoped"},
		{"namespace from the spec", "releaseNamespace: '{{ .spec.target }}'", "releaseNamespace"},
		{"fixed namespace", "releaseNamespace: apps", "releaseNamespace"},
		{"other namespaces", "allow: {otherNamespaces: true}", "allow.otherNamespaces"},
		{"cluster-scoped objects", "allow: {" + clusterRole + "}", "allow.clusterScoped"},
		{"lookups everywhere", "allow: {lookup: all}", "allow.lookup"},
		{"entry of the operator-sdk", "dryRunOption: server", "no allow block"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := newProject(t)
			writeFiles(t, filepath.Join(dir, "charts", "box"), boxChart)
			entry := "- {group: shop.example.com, version: v1, kind: Box, chart: charts/box, " + test.keys + "}\n"
			if err := os.WriteFile(filepath.Join(dir, "watches.yaml"), []byte(entry), 0o600); err != nil {
				t.Fatal(err)
			}
			plan, err := project(dir).Generate()
			carryOut(t, plan, err)
			for level, aggregated := range map[string]bool{"admin": test.why == "", "editor": test.why == "", "viewer": true} {
				role := tree(t, dir)["config/rbac/box_"+level+"_role.yaml"]
				if role == "" || strings.Contains(role, "aggregate-to-") != aggregated {
					t.Errorf("the %s role is aggregated: want %t\n%s", level, aggregated, role)
				}
				if !aggregated && !strings.Contains(role, test.why) {
					t.Errorf("the %s role does not say %q:\n%s", level, test.why, role)
				}
			}
		})
	}
}
