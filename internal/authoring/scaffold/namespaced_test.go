package scaffold_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

// TestGenerateNamespaced: the overlay for one namespace has the rights that a
// Role can allow, says what it cannot, and nobody gets it who has taken it out.
func TestGenerateNamespaced(t *testing.T) {
	dir := newProject(t)
	chart := maps.Clone(boxChart)
	chart["templates/role.yaml"] = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: box}\nrules: []\n"
	add(t, dir, scaffold.Add{Chart: pack(t, "box.tgz", chart), Group: "shop", Version: "v1"})
	role := tree(t, dir)["config/namespaced/role.yaml"]
	for _, want := range []string{
		"kind: Role\nmetadata:\n  name: manager-role\n", "resources: [boxes]",
		"# What no Role can allow, or what is not known", "# - Box: ClusterRole is cluster-scoped, which no Role can allow",
	} {
		if !strings.Contains(role, want) {
			t.Errorf("config/namespaced/role.yaml lacks %q:\n%s", want, role)
		}
	}
	if strings.Contains(role, "\nkind: ClusterRole") {
		t.Errorf("config/namespaced/role.yaml asks for what is cluster-wide:\n%s", role)
	}
	declare(t, dir, "  rbac: [{nonResourceURLs: [/version], verbs: [get]}]\n")
	generate(t, dir)
	built := build(t, dir+"/config/namespaced")
	for _, want := range []string{"name: shop-manager-role-cluster\n", "name: shop-manager-rolebinding-cluster\n", "name: WATCH_NAMESPACE\n", "fieldPath: metadata.namespace\n"} {
		if !strings.Contains(built, want) {
			t.Errorf("config/namespaced lacks %q", want)
		}
	}
	for _, wrong := range []string{"name: shop-manager-role\nrules", "name: shop-manager-rolebinding\nroleRef", "name: system\n", "namespace: system\n"} {
		if strings.Contains(built, wrong) {
			t.Errorf("config/namespaced has %q: a role of the whole cluster, or a name that nobody has", wrong)
		}
	}
	if err := os.RemoveAll(dir + "/config/namespaced"); err != nil {
		t.Fatal(err)
	}
	generate(t, dir)
	if _, exists := tree(t, dir)["config/namespaced/role.yaml"]; exists {
		t.Error("it is made again")
	}
}

// declare adds a key to the only entry of the watches file.
func declare(t *testing.T, dir, key string) {
	t.Helper()
	watches := tree(t, dir)["watches.yaml"]
	writeFiles(t, dir, map[string]string{"watches.yaml": strings.TrimRight(watches, "\n") + "\n" + key})
}
