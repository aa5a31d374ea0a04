package permissions_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/chartwright/chartwright"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// The role in config/rbac must be the derived role of the embedded kinds.
func TestRole_OfRepositoryIsUpToDate(t *testing.T) {
	kinds, err := catalog.FromFS(chartwright.Files, chartwright.WatchesFile)
	if err != nil {
		t.Fatal(err)
	}
	report := derive(t, permissions.Options{}, kinds...)
	role, err := report.Role("manager-role")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(role)); diff != "" {
		t.Errorf("run 'make generate' (-config/rbac/role.yaml +derived):\n%s", diff)
	}
	if len(report.Unresolved) > 0 {
		t.Errorf("not resolved: %v", report.Unresolved)
	}
}

func decode(t *testing.T, text []byte) (roles []rbacv1.ClusterRole) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(string(text)), 4096)
	for {
		var role rbacv1.ClusterRole
		switch err := decoder.Decode(&role); {
		case errors.Is(err, io.EOF):
			return roles
		case err != nil:
			t.Fatalf("%v:\n%s", err, text)
		}
		roles = append(roles, role)
	}
}

// The printed role must contain the same rules.
func TestRole_ContainsDerivedRules(t *testing.T) {
	kind := kindOf(t, files{"templates/a.yaml": object("v1", "ConfigMap")},
		`rbac: [{apiGroups: ["", apps, "*"], resources: ["*", "*/scale", pods], resourceNames: ["yes", "1", "a, b", "null"], verbs: ["*", "use"]}, {nonResourceURLs: ["/healthz/*"], verbs: [get]}]`)
	report := derive(t, permissions.Options{Operator: "shop-operator"}, kind)
	text, err := report.Role("manager-role")
	if err != nil {
		t.Fatal(err)
	}
	roles := decode(t, text)
	if len(roles) != 1 || roles[0].Kind != "ClusterRole" || roles[0].Name != "manager-role" || roles[0].Labels["app.kubernetes.io/name"] != "shop-operator" {
		t.Fatalf("printed:\n%s", text)
	}
	var want []rbacv1.PolicyRule
	for _, rule := range report.Rules {
		want = append(want, rule.PolicyRule)
	}
	if diff := cmp.Diff(want, roles[0].Rules); diff != "" {
		t.Errorf("(-rules +printed):\n%s", diff)
	}
	for line := range strings.Lines(string(text)) {
		if len(line) > 110 {
			t.Errorf("the line is too long: %s", line)
		}
	}
}

func TestRole_Namespaced(t *testing.T) {
	chart := files{"templates/a.yaml": object("v1", "ConfigMap")}
	text, err := derive(t, permissions.Options{Namespaced: true}, kindOf(t, chart)).Role("manager-role")
	if err != nil {
		t.Fatal(err)
	}
	if roles := decode(t, text); len(roles) != 1 || roles[0].Kind != "Role" || strings.Contains(string(text), "customresourcedefinitions") {
		t.Errorf("printed:\n%s", text)
	}

	// Declared rules are printed, too.
	report := derive(t, permissions.Options{Namespaced: true}, kindOf(t, chart, `rbac: [{nonResourceURLs: ["/healthz"], verbs: [get]}]`))
	if text, err = report.Role("manager-role"); err != nil {
		t.Fatal(err)
	}
	roles := decode(t, text)
	if len(roles) != 2 || roles[0].Kind != "Role" || roles[1].Kind != "ClusterRole" || roles[1].Name != "manager-role-cluster" {
		t.Fatalf("printed:\n%s", text)
	}
	want := []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}}}
	if diff := cmp.Diff(want, roles[1].Rules); diff != "" {
		t.Errorf("ClusterRole (-want +got):\n%s", diff)
	}
	if len(roles[0].Rules)+1 != len(report.Rules) {
		t.Errorf("the roles together have %d rules, want %d", len(roles[0].Rules)+1, len(report.Rules))
	}
}

// Declared rules are split by resource. Rules that a Role of the chart grants stay in the
// Role, because the API server checks them in the namespace of that Role.
func TestRole_NamespacedIsSplitByResource(t *testing.T) {
	chart := files{
		"templates/a.yaml": object("v1", "ConfigMap"),
		"templates/role.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "{{ .Release.Name }}"}
rules: [{apiGroups: [""], resources: [namespaces], verbs: [get]}]
`,
		"crds/a.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: racks.shop.example.com}
spec:
  group: shop.example.com
  scope: Cluster
  names: {kind: Rack, plural: racks}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`,
	}
	text, err := derive(t, permissions.Options{Namespaced: true}, kindOf(t, chart, "crds: Skip", `rbac: [
  {apiGroups: [""], resources: [nodes, nodes/proxy, services, namespaces], verbs: [list]},
  {apiGroups: [""], resources: [nodes], resourceNames: [one], verbs: [patch]},
  {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles, roles], verbs: [bind]},
  {apiGroups: [shop.example.com], resources: [racks], verbs: [get]},
  {apiGroups: [metrics.k8s.io], resources: [nodes, pods], verbs: [get]},
  {apiGroups: ["*"], resources: ["*"], verbs: [watch]}]`)).Role("manager-role")
	if err != nil {
		t.Fatal(err)
	}
	roles := decode(t, text)
	if len(roles) != 2 || roles[0].Kind != "Role" || roles[1].Kind != "ClusterRole" {
		t.Fatalf("printed:\n%s", text)
	}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "nodes", "nodes/proxy"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, ResourceNames: []string{"one"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterroles"}, Verbs: []string{"bind"}},
		{APIGroups: []string{"shop.example.com"}, Resources: []string{"racks"}, Verbs: []string{"get"}},
		{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
	}
	if diff := cmp.Diff(want, roles[1].Rules); diff != "" {
		t.Errorf("ClusterRole (-want +got):\n%s", diff)
	}
	inNamespace := map[string]bool{}
	for _, rule := range roles[0].Rules {
		for _, line := range lines(permissions.Rule{PolicyRule: rule}) {
			inNamespace[line] = true
		}
	}
	for line, want := range map[string]bool{
		"services: list": true, "namespaces: get": true, "namespaces: list": false, "nodes: list": false, "*.*: watch": true,
		"roles.rbac.authorization.k8s.io: bind": true, "clusterroles.rbac.authorization.k8s.io: bind": false,
		"pods.metrics.k8s.io: get": true, "nodes.metrics.k8s.io: get": false,
	} {
		if inNamespace[line] != want {
			t.Errorf("%s is in the Role: %v, want %v\n%s", line, !want, want, text)
		}
	}
}

func TestDerive_InstallCRDs(t *testing.T) {
	kind := kindOf(t, nil)
	without := derive(t, permissions.Options{}, kind)
	with := derive(t, permissions.Options{InstallCRDs: true}, kind)
	have, more := map[string]bool{}, []string{}
	for _, rule := range without.Rules {
		for _, line := range lines(rule) {
			have[line] = true
		}
	}
	for _, rule := range with.Rules {
		for _, line := range lines(rule) {
			if !have[line] {
				more = append(more, line)
			}
		}
	}
	const crds = "customresourcedefinitions.apiextensions.k8s.io"
	want := []string{crds + ": create", crds + " (shops.shop.example.com): get", crds + " (shops.shop.example.com): patch"}
	if diff := cmp.Diff(want, more); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Two kinds of one chart need the same rules as one of them, except for the custom
// resources.
func TestDerive_RepeatsNoRule(t *testing.T) {
	chart := files{"templates/a.yaml": object("v1", "Secret")}
	one, other := kindOf(t, chart), kindOf(t, chart)
	other.Kind = "Store"
	report := derive(t, permissions.Options{}, one, other)
	seen := map[string]bool{}
	for _, rule := range report.Rules {
		for _, line := range lines(rule) {
			if seen[line] {
				t.Errorf("%s appears twice", line)
			}
			seen[line] = true
		}
	}
	for _, want := range []string{"shops.shop.example.com: list", "stores.shop.example.com: list", "secrets: update"} {
		if !seen[want] {
			t.Errorf("missing: %s", want)
		}
	}
}
