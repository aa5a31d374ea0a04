package bundle_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chartwright/chartwright/internal/authoring/bundle"
	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/catalog"
)

// repository is the path of the root of this repository.
const repository = "../../.."

// input returns the input for the bundle of a project.
func input(t *testing.T, dir, name string) bundle.Input {
	t.Helper()
	kinds, err := catalog.FromFile(filepath.Join(dir, "watches.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Input{
		Options: bundle.Options{Version: "1.2.3", Image: "registry.example.com/" + name + ":v1.2.3", Channels: []string{"stable"}},
		Name:    name, Folder: "bundle", Kinds: kinds, Objects: build(t, filepath.Join(dir, "config", "manifests")),
	}
}

// ofRepository caches the input of this repository, because building config is slow.
var ofRepository struct {
	once sync.Once
	in   bundle.Input
}

// fresh returns a copy of the input of this repository, which tests can change.
func fresh(t *testing.T) bundle.Input {
	t.Helper()
	ofRepository.once.Do(func() { ofRepository.in = input(t, repository, "chartwright") })
	in := ofRepository.in
	in.Objects = nil
	for _, object := range ofRepository.in.Objects {
		in.Objects = append(in.Objects, object.DeepCopy())
	}
	return in
}

func build(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := bundle.Build(folder)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func makeBundle(t *testing.T, in bundle.Input) *bundle.Bundle {
	t.Helper()
	b, err := bundle.Make(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// find converts the object with a kind and name.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string, to any) {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, to); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no %s %s", kind, name)
}

// TestMake_BundleOfThisRepositoryEqualsConfig checks that the bundle is valid, and that it
// deploys the same as config/default.
func TestMake_BundleOfThisRepositoryEqualsConfig(t *testing.T) {
	in := fresh(t)
	b := makeBundle(t, in)
	if len(b.Notes) > 0 {
		t.Errorf("notes: %q", b.Notes)
	}
	found := checkFormat(t, b)
	if len(found.csv.Spec.CustomResourceDefinitions.Owned) != len(in.Kinds) {
		t.Errorf("%d kinds are owned, of %d", len(found.csv.Spec.CustomResourceDefinitions.Owned), len(in.Kinds))
	}

	deployed := build(t, filepath.Join(repository, "config", "default"))
	var deployment struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
			Replicas *int32                 `json:"replicas"`
		} `json:"spec"`
	}
	find(t, deployed, "Deployment", "chartwright-controller-manager", &deployment)
	got := found.csv.Spec.Install.Spec.Deployments[0]
	if got.Name != "chartwright-controller-manager" || got.Label["app.kubernetes.io/name"] != "chartwright" {
		t.Errorf("the deployment is %s, %v", got.Name, got.Label)
	}
	// Intended differences.
	manager := &deployment.Spec.Template.Spec.Containers[0]
	manager.Image = in.Image
	manager.Env = append(manager.Env, corev1.EnvVar{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['olm.targetNamespaces']"},
	}})
	if diff := cmp.Diff(deployment.Spec.Template, got.Spec.Template); diff != "" || *deployment.Spec.Replicas != *got.Spec.Replicas {
		t.Errorf("the deployment differs from config/manager (-config +bundle):\n%s", diff)
	}
}

// single splits rules into single permissions.
func single(rules []rbacv1.PolicyRule) map[string]bool {
	found := map[string]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					found[resource+"."+group+" "+verb] = true
				}
			}
		}
	}
	return found
}

// TestMake_PermissionsEqualRoles checks that the permissions of the bundle are those of the
// roles in config, and that rules for namespaced resources are in permissions.
func TestMake_PermissionsEqualRoles(t *testing.T) {
	in := fresh(t)
	install := read(t, makeBundle(t, in)).csv.Spec.Install.Spec
	deployed := build(t, filepath.Join(repository, "config", "default"))
	var manager, metrics rbacv1.ClusterRole
	find(t, deployed, "ClusterRole", "chartwright-manager-role", &manager)
	find(t, deployed, "ClusterRole", "chartwright-metrics-auth-role", &metrics)
	everywhere := slices.Concat(manager.Rules, metrics.Rules)
	var election rbacv1.Role
	find(t, deployed, "Role", "chartwright-leader-election-role", &election)
	if len(install.Permissions) != 1 || len(install.ClusterPermissions) != 1 {
		t.Fatalf("%d permissions, %d clusterPermissions", len(install.Permissions), len(install.ClusterPermissions))
	}
	namespaced, cluster := single(install.Permissions[0].Rules), single(install.ClusterPermissions[0].Rules)
	want := single(slices.Concat(everywhere, election.Rules))
	got := maps.Clone(namespaced)
	maps.Copy(got, cluster)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-roles +bundle):\n%s", diff)
	}
	resources := map[string]bool{}
	for permission := range cluster {
		resource, _, _ := strings.Cut(permission, " ")
		resources[resource] = true
		if namespaced[permission] {
			t.Errorf("duplicate permission %s", permission)
		}
	}
	if diff := cmp.Diff([]string{
		"clusteraddons.operator.example.com", "clusteraddons/status.operator.example.com",
		"configs.operator.example.com", "configs/status.operator.example.com", "customresourcedefinitions.apiextensions.k8s.io", "namespaces.",
		"subjectaccessreviews.authorization.k8s.io", "tokenreviews.authentication.k8s.io",
	}, slices.Sorted(maps.Keys(resources))); diff != "" {
		t.Errorf("clusterPermissions (-want +got):\n%s", diff)
	}

	// For all namespaces, rules are not split.
	setModes(in, "AllNamespaces")
	install = read(t, makeBundle(t, in)).csv.Spec.Install.Spec
	if diff := cmp.Diff(single(everywhere), single(install.ClusterPermissions[0].Rules)); diff != "" {
		t.Errorf("for all namespaces (-role +clusterPermissions):\n%s", diff)
	}
	if diff := cmp.Diff(single(election.Rules), single(install.Permissions[0].Rules)); diff != "" {
		t.Errorf("for all namespaces (-role +permissions):\n%s", diff)
	}
}

// TestMake_OmitsAccountsWithoutRules checks that the bundle has no permissions with an
// empty list of rules.
func TestMake_OmitsAccountsWithoutRules(t *testing.T) {
	for _, test := range []struct {
		without              string
		permissions, cluster int
	}{
		{"ClusterRoleBinding", 1, 0},
		{"RoleBinding", 0, 1},
	} {
		in := fresh(t)
		setModes(in, "AllNamespaces")
		without(&in, test.without)
		install := read(t, makeBundle(t, in)).csv.Spec.Install.Spec
		if len(install.Permissions) != test.permissions || len(install.ClusterPermissions) != test.cluster {
			t.Errorf("without a %s: permissions %v, clusterPermissions %v, want %d and %d",
				test.without, install.Permissions, install.ClusterPermissions, test.permissions, test.cluster)
		}
	}
}

// setModes sets the supported install modes of the base.
func setModes(in bundle.Input, modes ...string) {
	list := []any{}
	for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		list = append(list, map[string]any{"type": mode, "supported": slices.Contains(modes, mode)})
	}
	set(in, "ClusterServiceVersion", list, "spec", "installModes")
}

// set sets a field of the objects of a kind.
func set(in bundle.Input, kind string, value any, fields ...string) {
	for _, object := range in.Objects {
		if object.GetKind() == kind {
			if err := unstructured.SetNestedField(object.Object, value, fields...); err != nil {
				panic(err)
			}
		}
	}
}

func TestMake_IsDeterministic(t *testing.T) {
	first := makeBundle(t, input(t, repository, "chartwright"))
	for range 3 {
		if diff := cmp.Diff(first, makeBundle(t, input(t, repository, "chartwright"))); diff != "" {
			t.Fatalf("the bundles differ:\n%s", diff)
		}
	}
}

func TestMake_AppliesOptions(t *testing.T) {
	in := fresh(t)
	in.Channels, in.DefaultChannel = []string{"candidate-v1", "stable-v1"}, "stable-v1"
	in.Replaces = "1.2.2"
	in.CreatedAt = time.Date(2026, 1, 31, 13, 0, 0, 0, time.FixedZone("", 3600))
	b := makeBundle(t, in)
	found := checkFormat(t, b)
	if found.csv.Metadata.Name != "chartwright.v1.2.3" || found.csv.Spec.Replaces != "chartwright.v1.2.2" {
		t.Errorf("%s replaces %q", found.csv.Metadata.Name, found.csv.Spec.Replaces)
	}
	for key, want := range map[string]string{
		"createdAt": "2026-01-31T12:00:00Z", "containerImage": in.Image, "operatorframework.io/suggested-namespace": "chartwright-system",
		"capabilities": "Full Lifecycle",
	} {
		if got := found.csv.Metadata.Annotations[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for _, line := range []string{"bundle.channels.v1: candidate-v1,stable-v1\n", "bundle.channel.default.v1: stable-v1\n"} {
		if !strings.Contains(string(b.Files["metadata/annotations.yaml"]), line) {
			t.Errorf("no %q in\n%s", line, b.Files["metadata/annotations.yaml"])
		}
	}
}

// TestMake_BundleOfNewProjectIsValid uses a project from Init and Add. A note lists the field
// to complete.
func TestMake_BundleOfNewProjectIsValid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	write := func(plan *scaffold.Plan, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Write(); err != nil {
			t.Fatal(err)
		}
	}
	write(scaffold.Init{Dir: dir, Domain: "example.com", Image: "chartwright:v1"}.Plan())
	project := scaffold.Project{Watches: filepath.Join(dir, "watches.yaml"), Config: filepath.Join(dir, "config")}
	if _, err := project.Bundle(t.Context(), filepath.Join(dir, "bundle"), bundle.Options{Version: "1.2.3", Image: "shop:v1", Channels: []string{"stable"}}); err == nil ||
		err.Error() != "config/manifests has no CustomResourceDefinition: add a kind with 'chartwright add'" {
		t.Errorf("without kinds: %v", err)
	}
	write(project.Add(scaffold.Add{New: "web", Group: "shop", Version: "v1alpha1", Scope: "Namespaced"}))
	b := makeBundle(t, input(t, dir, "shop"))
	found := checkFormat(t, b)
	if diff := cmp.Diff([]string{"ClusterServiceVersion: spec.maintainers: recommended: the contacts in catalogs such as OperatorHub"}, b.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	var shown []string
	for _, d := range found.csv.Spec.CustomResourceDefinitions.Owned[0].SpecDescriptors {
		shown = append(shown, d.Path+" "+strings.Join(d.XDescriptors, " "))
	}
	for _, want := range []string{
		"replicas urn:alm:descriptor:com.tectonic.ui:number", "ingress.enabled urn:alm:descriptor:com.tectonic.ui:booleanSwitch",
		"ingress.tlsSecret urn:alm:descriptor:io.kubernetes:Secret", "resources urn:alm:descriptor:com.tectonic.ui:resourceRequirements",
		"image.pullPolicy urn:alm:descriptor:com.tectonic.ui:imagePullPolicy", "service ", "tolerations ",
	} {
		if !slices.Contains(shown, want) {
			t.Errorf("no descriptor %q in\n%s", want, strings.Join(shown, "\n"))
		}
	}
}
