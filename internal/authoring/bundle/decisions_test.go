package bundle

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

func TestInput_ReturnsFormControl(t *testing.T) {
	enum := func(values ...string) []apiextensionsv1.JSON {
		var list []apiextensionsv1.JSON
		for _, value := range values {
			list = append(list, apiextensionsv1.JSON{Raw: []byte(value)})
		}
		return list
	}
	text := props{Type: "string"}
	about := func(description string) props { return props{Type: "string", Description: description} }
	for _, test := range []struct {
		name  string
		field props
		want  string
	}{
		{"replicas", props{Type: "integer"}, "podCount"},
		{"minReplicas", props{Type: "integer"}, "number"},
		{"ratio", props{Type: "number"}, "number"},
		{"enabled", props{Type: "boolean"}, "booleanSwitch"},
		{"host", text, "text"},
		{"size", props{XIntOrString: true}, "text"},
		{"mode", props{Type: "string", Enum: enum(`"a"`, `"b c"`, `""`, `null`)}, "select:a select:b c"},
		{"level", props{Type: "integer", Enum: enum(`1`, `2`)}, "select:1 select:2"},
		{"pull", props{Type: "string", Enum: enum(`"Never"`, `"Always"`, `"IfNotPresent"`, `null`)}, "imagePullPolicy"},
		{"tlsSecretName", text, "io.kubernetes:Secret"},
		{"existing-secret-ref", text, "io.kubernetes:Secret"},
		{"existingSecret", about("A Secret of the namespace."), "io.kubernetes:Secret"},
		{"clientSecret", about("The credentials of the client."), "text"},
		{"createSecret", props{Type: "boolean", Description: "Create a Secret."}, "booleanSwitch"},
		{"configMap", text, "io.kubernetes:ConfigMap"},
		{"serviceAccountName", text, "io.kubernetes:ServiceAccount"},
		{"password", text, "password"},
		{"adminPassword", text, "password"},
		{"passwordLength", props{Type: "integer"}, "number"},
		{"token", props{Type: "string", Format: "password"}, "password"},
		{"resources", props{Type: "object", Properties: map[string]props{"requests": {}, "limits": {}}}, "resourceRequirements"},
		{"resources", props{Type: "object", Properties: map[string]props{"cpu": {}}}, ""},
		{"list", props{Type: "array"}, ""},
		{"anything", props{}, ""},
	} {
		var got []string
		for _, show := range input(test.name, test.name, "replicas", test.field) {
			got = append(got, strings.TrimPrefix(strings.TrimPrefix(show, prefixUI), "urn:alm:descriptor:"))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestOutput_ReturnsDescriptor(t *testing.T) {
	for _, test := range []struct {
		path  string
		field props
		want  []string
	}{
		{"conditions", props{Type: "array"}, []string{showConditions}},
		{"phase", props{Type: "string"}, []string{showPhase}},
		{"phase", props{Type: "integer"}, []string{showText}},
		{"address", props{Type: "string", Format: "uri"}, []string{showLink}},
		{"replicas", props{Type: "integer"}, []string{showText}},
		{"podNames", props{Type: "array"}, nil},
		{"anything", props{}, nil},
	} {
		if diff := cmp.Diff(test.want, output(test.path, test.field)); diff != "" {
			t.Errorf("%s:\n%s", test.path, diff)
		}
	}
}

// TestSpecDescriptors_OfTopLevelAndEditableFields checks that all top-level fields have a
// descriptor, and of nested fields only those that forms can edit.
func TestSpecDescriptors_OfTopLevelAndEditableFields(t *testing.T) {
	spec := props{Type: "object", Properties: map[string]props{
		"size":   {Type: "integer", Description: "How many.", Title: "Number of pods"},
		"a.b":    {Type: "string"},
		"lists":  {Type: "array"},
		"nested": {Type: "object", Properties: map[string]props{"inner": {Type: "object", Properties: map[string]props{"flag": {Type: "boolean"}, "list": {Type: "array"}}}}},
	}}
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &props{Properties: map[string]props{"spec": spec}}},
		Subresources: &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.size"}},
	}
	want := []descriptor{
		{Path: "lists", DisplayName: "Lists"},
		{Path: "nested", DisplayName: "Nested"},
		{Path: "nested.inner.flag", DisplayName: "Nested Inner Flag", XDescriptors: []string{prefixUI + "booleanSwitch"}},
		{Path: "size", DisplayName: "Number of pods", Description: "How many.", XDescriptors: []string{prefixUI + "podCount"}},
	}
	if diff := cmp.Diff(want, specDescriptors(version)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWords_SplitsNames(t *testing.T) {
	for name, want := range map[string]string{
		"existingSecret": "Existing Secret", "storage-size": "Storage Size", "number_of_replicas": "Number Of Replicas",
		"VmGroup": "Vm Group", "OvhNginx": "Ovh Nginx", "Database": "Database", "targetCPUUtilization": "Target CPU Utilization",
		"URL": "URL", "ipV4Address": "Ip V4 Address", "image tag": "Image Tag", "": "", "-": "",
	} {
		if got := words(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

var clusterThings = func(r schema.GroupResource) bool { return strings.HasPrefix(r.Resource, "cluster") }

func TestSplit_ByScope(t *testing.T) {
	rule := func(groups, resources, names, urls string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: strings.Fields(groups), Resources: strings.Fields(resources), ResourceNames: strings.Fields(names),
			NonResourceURLs: strings.Fields(urls), Verbs: []string{"get"},
		}
	}
	for _, test := range []struct {
		name                string
		rule                rbacv1.PolicyRule
		namespaced, cluster string
	}{
		{"namespaced", rule("apps", "deployments deployments/scale", "", ""), "deployments deployments/scale", ""},
		{"cluster", rule("x", "clusterthings/status", "", ""), "", "clusterthings/status"},
		{"both", rule("x", "things clusterthings", "a", ""), "things", "clusterthings"},
		{"any resource", rule("x", "*", "", ""), "", "*"},
		{"any group", rule("*", "things", "", ""), "", "things"},
		{"a path", rule("", "", "", "/metrics"), "", ""},
	} {
		namespaced, cluster := split(test.rule, clusterThings)
		for what, got := range map[string][]rbacv1.PolicyRule{test.namespaced: namespaced, test.cluster: cluster} {
			var resources []string
			for _, part := range got {
				resources = append(resources, part.Resources...)
				if !slices.Equal(part.ResourceNames, test.rule.ResourceNames) || !slices.Equal(part.Verbs, test.rule.Verbs) {
					t.Errorf("%s: %+v has other names or verbs", test.name, part)
				}
			}
			if test.namespaced != test.cluster && strings.Join(resources, " ") != what {
				t.Errorf("%s: %q, want %q", test.name, resources, what)
			}
		}
		if len(test.rule.NonResourceURLs) > 0 && len(cluster) != 1 {
			t.Errorf("%s: %d cluster-wide rules", test.name, len(cluster))
		}
	}
}

// TestSplit_PreservesAllPermissions splits random rules.
func TestSplit_PreservesAllPermissions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := func(label string, from ...string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, len(from), rapid.ID).Draw(t, label)
		}
		rule := rbacv1.PolicyRule{
			APIGroups: words("groups", "", "apps", "x"),
			Resources: words("resources", "things", "things/status", "clusterthings", "clusterthings/status", "*"),
			Verbs:     words("verbs", "get", "list"),
		}
		namespaced, cluster := split(*rule.DeepCopy(), clusterThings)
		var resources []string
		for _, part := range slices.Concat(namespaced, cluster) {
			resources = append(resources, part.Resources...)
			part.Resources = rule.Resources
			if diff := cmp.Diff(rule, part); diff != "" {
				t.Fatalf("the rule differs:\n%s", diff)
			}
		}
		slices.Sort(resources)
		if diff := cmp.Diff(slices.Sorted(slices.Values(rule.Resources)), resources); diff != "" {
			t.Fatalf("the resources differ:\n%s", diff)
		}
	})
}

func TestOverlay_OverridesDerivedFields(t *testing.T) {
	written := []any{
		map[string]any{"name": "webs.example.com", "version": "v1", "displayName": "Web site", "specDescriptors": []any{}},
		map[string]any{"name": "webs.example.com", "version": "v2", "displayName": "Not this one"},
	}
	data, err := json.Marshal(overlay(owned{Name: "webs.example.com", Version: "v1", Kind: "Web", DisplayName: "Web", Description: "A web site.",
		SpecDescriptors: []descriptor{{Path: "replicas"}}}, written))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"description":"A web site.","displayName":"Web site","kind":"Web","name":"webs.example.com","specDescriptors":[],"version":"v1"}`
	if string(data) != want {
		t.Errorf("%s\nwant\n%s", data, want)
	}
}
