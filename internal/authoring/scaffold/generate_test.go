package scaffold_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

func generate(t *testing.T, dir string) (*scaffold.Plan, map[scaffold.Op][]string) {
	t.Helper()
	plan, err := project(dir).Generate()
	return plan, write(t, plan, err)
}

// TestGenerate_RemovesFilesOfRemovedKind removes the entry of a kind from the watches file.
func TestGenerate_RemovesFilesOfRemovedKind(t *testing.T) {
	dir := newProject(t)
	before := tree(t, dir)
	add(t, dir, scaffold.Add{Chart: pack(t, "box.tgz", boxChart), Group: "shop", Version: "v1"})
	writeFiles(t, dir, map[string]string{"watches.yaml": before["watches.yaml"]})
	plan, _ := generate(t, dir)
	sample := dir + "/config/samples/shop_v1_box.yaml"
	if notes := strings.Join(plan.Notes, "\n"); !strings.Contains(notes, sample+" is a sample of a kind that is not in the watches file: delete it") {
		t.Errorf("notes: %s", notes)
	}
	if err := os.Remove(sample); err != nil {
		t.Fatal(err)
	}
	plan, _ = generate(t, dir)
	if len(plan.Notes) > 0 {
		t.Errorf("notes: %s", plan.Notes)
	}
	after := tree(t, dir)
	maps.DeleteFunc(after, func(name, _ string) bool {
		return strings.HasPrefix(name, "charts/box/") || name == "charts/checksums.txt"
	})
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestGenerate_SameKindInTwoGroupsHasSeparateFiles checks that kinds with the same name in
// two groups have separate files and roles.
func TestGenerate_SameKindInTwoGroupsHasSeparateFiles(t *testing.T) {
	dir := newProject(t)
	for _, group := range []string{"shop.example.com", "shop.example.org"} {
		add(t, dir, scaffold.Add{Chart: pack(t, "box.tgz", boxChart), Group: group, Version: "v1"})
	}
	// When the first kind was added, its name was unique.
	files := tree(t, dir)
	for _, want := range []string{
		"config/crd/bases/shop.example.com_boxes.yaml", "config/crd/bases/shop.example.org_boxes.yaml",
		"config/rbac/boxes.shop.example.com_viewer_role.yaml", "config/rbac/boxes.shop.example.org_viewer_role.yaml",
		"config/samples/shop_v1_box.yaml", "config/samples/shop.example.org_v1_box.yaml",
	} {
		if _, exists := files[want]; !exists {
			t.Errorf("%s is missing", want)
		}
	}
	if _, exists := files["config/rbac/box_viewer_role.yaml"]; exists {
		t.Error("the role of the first kind with the ambiguous name still exists")
	}
	build(t, dir+"/config/default")
	build(t, dir+"/config/samples")
}

// TestGenerate_RolesAllowScale checks that roles that allow changes also allow scaling.
func TestGenerate_RolesAllowScale(t *testing.T) {
	dir := newProject(t)
	chart := maps.Clone(boxChart)
	chart["values.schema.json"] = `{"type": "object", "properties": {"size": {"type": "integer"}}}`
	add(t, dir, scaffold.Add{Chart: pack(t, "box.tgz", chart), Group: "shop", Version: "v1"})
	writeFiles(t, dir, map[string]string{"watches.yaml": tree(t, dir)["watches.yaml"] + `  status: {size: size(resources)}
  subresources:
    scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
`})
	generate(t, dir)
	for level, verbs := range map[string]string{"admin": "[get, update, patch]", "editor": "[get, update, patch]", "viewer": "[get]"} {
		role := tree(t, dir)["config/rbac/box_"+level+"_role.yaml"]
		if !strings.HasSuffix(role, "    resources: [boxes/scale]\n    verbs: "+verbs+"\n") {
			t.Errorf("the role %s does not allow scale with %s:\n%s", level, verbs, role)
		}
	}
}

func TestGenerate_ThisRepositoryIsUpToDate(t *testing.T) {
	t.Chdir(repository)
	plan, err := scaffold.Project{Watches: "watches.yaml", Config: "config"}.Generate()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range plan.Stale() {
		t.Errorf("%s: %s", file.Op, file.Path)
	}
	for _, note := range plan.Notes {
		t.Error(note)
	}
}

func TestGenerate_IgnoresLineEndings(t *testing.T) {
	dir := newProject(t)
	add(t, dir, scaffold.Add{Chart: pack(t, "box.tgz", boxChart), Group: "shop", Version: "v1"})
	for name, text := range tree(t, dir) {
		writeFiles(t, dir, map[string]string{name: strings.ReplaceAll(text, "\n", "\r\n")})
	}
	if _, done := generate(t, dir); len(done[scaffold.OpCreate])+len(done[scaffold.OpUpdate])+len(done[scaffold.OpRemove]) > 0 {
		t.Errorf("not up to date: %v", done)
	}
}

func TestGenerate_ReportsInvalidFiles(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		err   string
	}{
		{"an invalid watches file", map[string]string{"watches.yaml": "- kind: A\n"}, "watches.yaml:1: the entry has no version"},
		{"an invalid kustomization", map[string]string{"config/crd/kustomization.yaml": "resources: a\n"}, "config/crd/kustomization.yaml: line 1: resources: want a list"},
		{"an invalid sample", map[string]string{"config/samples/a.yaml": "a: [\n"}, "config/samples/a.yaml: "},
		{"an invalid kustomization of config/default", map[string]string{"config/default/kustomization.yaml": "a: [\n"}, "config/default/kustomization.yaml: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := newProject(t)
			add(t, dir, scaffold.Add{Chart: pack(t, "box.tgz", boxChart), Group: "shop", Version: "v1"})
			writeFiles(t, dir, test.files)
			if _, err := project(dir).Generate(); err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

// TestGenerate_AggregatesOnlyRolesOfOneNamespace checks that the built-in roles admin and
// edit, which apply to one namespace, do not contain kinds whose custom resources have
// effects outside their namespace.
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
			write(t, plan, err)
			for level, aggregated := range map[string]bool{"admin": test.why == "", "editor": test.why == "", "viewer": true} {
				role := tree(t, dir)["config/rbac/box_"+level+"_role.yaml"]
				if role == "" || strings.Contains(role, "aggregate-to-") != aggregated {
					t.Errorf("the %s role is aggregated: want %t\n%s", level, aggregated, role)
				}
				if !aggregated && !strings.Contains(role, test.why) {
					t.Errorf("the %s role does not contain %q:\n%s", level, test.why, role)
				}
			}
		})
	}
}

// TestGenerate_NamespacedOverlayHasRole checks that the overlay has the permissions that a
// Role can grant, lists the others, and is not generated for projects that have removed
// it.
func TestGenerate_NamespacedOverlayHasRole(t *testing.T) {
	dir := newProject(t)
	chart := maps.Clone(boxChart)
	chart["templates/role.yaml"] = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: box}\nrules: []\n"
	add(t, dir, scaffold.Add{Chart: pack(t, "box.tgz", chart), Group: "shop", Version: "v1", Allow: new(true)})
	role := tree(t, dir)["config/namespaced/role.yaml"]
	for _, want := range []string{
		"kind: Role\nmetadata:\n  name: manager-role\n", "resources: [boxes]",
		"# Permissions that a Role cannot grant", "# - Box: ClusterRole is cluster-scoped, which no Role can allow",
	} {
		if !strings.Contains(role, want) {
			t.Errorf("config/namespaced/role.yaml does not contain %q:\n%s", want, role)
		}
	}
	if strings.Contains(role, "\nkind: ClusterRole") {
		t.Errorf("config/namespaced/role.yaml contains a ClusterRole:\n%s", role)
	}
	declare(t, dir, "  rbac: [{nonResourceURLs: [/version], verbs: [get]}]\n")
	generate(t, dir)
	built := build(t, dir+"/config/namespaced")
	for _, want := range []string{"name: shop-manager-role-cluster\n", "name: shop-manager-rolebinding-cluster\n", "name: WATCH_NAMESPACE\n", "fieldPath: metadata.namespace\n"} {
		if !strings.Contains(built, want) {
			t.Errorf("config/namespaced does not contain %q", want)
		}
	}
	for _, wrong := range []string{"name: shop-manager-role\nrules", "name: shop-manager-rolebinding\nroleRef", "name: system\n", "namespace: system\n"} {
		if strings.Contains(built, wrong) {
			t.Errorf("config/namespaced contains %q: a cluster-wide role, or a wrong name", wrong)
		}
	}
	if err := os.RemoveAll(dir + "/config/namespaced"); err != nil {
		t.Fatal(err)
	}
	generate(t, dir)
	if _, exists := tree(t, dir)["config/namespaced/role.yaml"]; exists {
		t.Error("config/namespaced/role.yaml is generated again")
	}
}

// declare adds a key to the only entry of the watches file.
func declare(t *testing.T, dir, key string) {
	t.Helper()
	watches := tree(t, dir)["watches.yaml"]
	writeFiles(t, dir, map[string]string{"watches.yaml": strings.TrimRight(watches, "\n") + "\n" + key})
}

// TestConfig_RestrictsIngress checks that a network policy only allows connections to the
// metrics, from labeled namespaces. A bundle has no network policy, because older
// versions of OLM reject it.
func TestConfig_RestrictsIngress(t *testing.T) {
	for _, root := range []string{repository, newProject(t)} {
		for _, folder := range []string{"default", "namespaced"} {
			var policies []networkingv1.NetworkPolicy
			var manager appsv1.Deployment
			for document := range strings.SplitSeq(build(t, filepath.Join(root, "config", folder)), "\n---\n") {
				var meta metav1.TypeMeta
				decodeYAML(t, document, &meta)
				switch meta.Kind {
				case "NetworkPolicy":
					policies = append(policies, networkingv1.NetworkPolicy{})
					decodeYAML(t, document, &policies[len(policies)-1])
				case "Deployment":
					decodeYAML(t, document, &manager)
				}
			}
			if len(policies) != 1 {
				t.Fatalf("%s: config/%s has %d network policies, want 1", root, folder, len(policies))
			}
			policy := policies[0]
			if policy.Namespace != manager.Namespace || !cmp.Equal(policy.Spec.PodSelector.MatchLabels, manager.Spec.Template.Labels) {
				t.Errorf("%s: the policy of config/%s does not select the pods of the Deployment: %v", root, folder, policy.Spec.PodSelector)
			}
			want := networkingv1.NetworkPolicySpec{
				PodSelector: policy.Spec.PodSelector,
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress: []networkingv1.NetworkPolicyIngressRule{{
					From:  []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"metrics": "enabled"}}}},
					Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromString("metrics")), Protocol: new(corev1.ProtocolTCP)}},
				}},
			}
			if diff := cmp.Diff(want, policy.Spec); diff != "" {
				t.Errorf("%s: config/%s (-want +got):\n%s", root, folder, diff)
			}
		}
		if strings.Contains(build(t, filepath.Join(root, "config", "manifests")), "kind: NetworkPolicy") {
			t.Errorf("%s: the bundle has a NetworkPolicy", root)
		}
	}
}

func decodeYAML(t *testing.T, document string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(document), into); err != nil {
		t.Fatal(err)
	}
}
