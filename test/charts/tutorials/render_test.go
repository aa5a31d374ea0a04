package tutorials

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart"
)

const chartsDir = "../../../charts"

// charts are the tested charts with their required values.
var charts = map[string]map[string]any{
	"podset":       {},
	"ovhnginx":     {"replicaCount": 1, "port": 80},
	"experimental": {},
	"vmgroup":      {"cpu": 2, "memory": 4, "template": "debian"},
	"config":       {"targetNamespace": "test"},
	"addon":        {},
}

// with returns values, with others merged over them.
func with(values, more map[string]any) map[string]any {
	merged := maps.Clone(values)
	maps.Copy(merged, more)
	return merged
}

// tryRender renders a chart and returns objects and hooks in order.
func tryRender(t *testing.T, name, release string, values map[string]any) ([]chart.RenderedObject, error) {
	t.Helper()
	return renderOn(t, name, chart.Offline{Release: release, Values: values})
}

// renderOn is tryRender with other properties of the cluster.
func renderOn(t *testing.T, name string, cluster chart.Offline) ([]chart.RenderedObject, error) {
	t.Helper()
	cluster.Namespace, cluster.KubeVersion = "test", "v1.36.0"
	loaded, err := chart.LoadDir(os.DirFS(filepath.Join(chartsDir, name)))
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := loaded.Render(cluster)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(rendered.Notes) == "" || strings.Contains(rendered.Notes, "<no value>") {
		t.Errorf("%s: the notes are %q", name, rendered.Notes)
	}
	return append(rendered.Objects, rendered.Hooks...), nil
}

func render(t *testing.T, name, release string, values map[string]any) []chart.RenderedObject {
	t.Helper()
	objects, err := tryRender(t, name, release, values)
	if err != nil {
		t.Fatalf("%s with %v: %v", name, values, err)
	}
	return objects
}

// find returns the object of a kind and name, or nil.
func find(objects []chart.RenderedObject, kind, name string) map[string]any {
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object.Object
		}
	}
	return nil
}

// at returns the value at a path of fields.
func at(object map[string]any, fields ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	return value
}

// TestNullValues_UseDefaults: in Helm, a null removes a default. The charts
// apply their defaults again.
func TestNullValues_UseDefaults(t *testing.T) {
	for chart, least := range charts {
		data, err := os.ReadFile(filepath.Join(chartsDir, chart, "values.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var defaults map[string]any
		if err := yaml.Unmarshal(data, &defaults); err != nil {
			t.Fatal(err)
		}
		wanted := render(t, chart, "web", least)
		for key := range defaults {
			got := render(t, chart, "web", with(least, map[string]any{key: nil}))
			if key == "resources" || chart == "podset" && key == "version" {
				// A null has a meaning of its own.
				continue
			}
			if fmt.Sprint(texts(t, got)) != fmt.Sprint(texts(t, wanted)) {
				t.Errorf("%s: with %s null the output is\n%v\nwant\n%v", chart, key, texts(t, got), texts(t, wanted))
			}
		}
	}
}

func texts(t *testing.T, objects []chart.RenderedObject) []string {
	t.Helper()
	list := make([]string, 0, len(objects))
	for _, object := range objects {
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(data))
	}
	return list
}

// TestNames_FitLongestReleaseName checks names and labels for a release name of
// the maximum length.
func TestNames_FitLongestReleaseName(t *testing.T) {
	for _, release := range []string{strings.Repeat("a", 53), strings.Repeat("a", 43) + "-" + strings.Repeat("b", 9), strings.Repeat("a", 52)} {
		for chart, least := range charts {
			for _, object := range render(t, chart, release, least) {
				longest := validation.DNS1123LabelMaxLength
				if object.GetKind() == "StatefulSet" {
					// The pods' label has this name, a dash and ten characters.
					longest -= 11
				}
				if name := object.GetName(); len(name) > longest || len(validation.IsDNS1123Label(name)) > 0 {
					t.Errorf("%s: %s has the invalid name %s", chart, object.GetKind(), name)
				}
				for key, value := range object.GetLabels() {
					if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
						t.Errorf("%s: label %s of %s: %v", chart, key, object.GetName(), problems)
					}
				}
			}
		}
	}
}

// TestObjects_AreLabeled checks the labels and the namespace of all objects.
func TestObjects_AreLabeled(t *testing.T) {
	for chart, least := range charts {
		for _, object := range render(t, chart, "web", least) {
			if object.GetNamespace() != "test" {
				t.Errorf("%s: %s %s has namespace %q", chart, object.GetKind(), object.GetName(), object.GetNamespace())
			}
			for _, key := range []string{"helm.sh/chart", "app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"} {
				if object.GetLabels()[key] == "" {
					t.Errorf("%s: %s %s has no label %s", chart, object.GetKind(), object.GetName(), key)
				}
			}
		}
	}
}

// TestExperimental_Spellings: the newer spelling takes precedence, also if its
// value is false.
func TestExperimental_Spellings(t *testing.T) {
	for _, test := range []struct {
		values   map[string]any
		replicas int
		public   bool
	}{
		{map[string]any{}, 1, false},
		{map[string]any{"is_public": true}, 1, true},
		{map[string]any{"is_public": true, "number_of_replicas": 3}, 3, true},
		{map[string]any{"isPublic": true, "numberOfReplicas": 3}, 3, true},
		{map[string]any{"isPublic": false, "is_public": true}, 1, false},
		{map[string]any{"isPublic": true, "is_public": false}, 1, true},
		{map[string]any{"numberOfReplicas": 0, "number_of_replicas": 3}, 0, false},
		{map[string]any{"numberOfReplicas": 2, "number_of_replicas": 0}, 2, false},
		{map[string]any{"number_of_replicas": 0, "is_public": false}, 0, false},
		{map[string]any{"numberOfReplicas": 2, "is_public": true}, 2, true},
		{map[string]any{"isPublic": nil, "numberOfReplicas": nil, "is_public": true, "number_of_replicas": 3}, 3, true},
		{map[string]any{"isPublic": nil, "numberOfReplicas": nil, "is_public": nil, "number_of_replicas": nil}, 1, false},
	} {
		given := fmt.Sprint(test.values)
		objects := render(t, "experimental", "web", test.values)
		if got := fmt.Sprint(at(find(objects, "StatefulSet", "web"), "spec", "replicas")); got != strconv.Itoa(test.replicas) {
			t.Errorf("%s: %s replicas, want %d", given, got, test.replicas)
		}
		want := map[bool]string{true: "LoadBalancer", false: "ClusterIP"}[test.public]
		if got := at(find(objects, "Service", "web"), "spec", "type"); got != want {
			t.Errorf("%s: the Service is %v, want %s", given, got, want)
		}
	}
	for _, wrong := range []map[string]any{{"isPublic": "true"}, {"numberOfReplicas": -1}, {"number_of_replicas": 1.5}, {"is_public": 1}, {"replicas": 1}} {
		if _, err := tryRender(t, "experimental", "web", wrong); err == nil {
			t.Errorf("%v is not refused", wrong)
		}
	}
}

// TestVmGroup_SecretIsPassedOnlyToGovc: only in its environment, and only by
// reference.
func TestVmGroup_SecretIsPassedOnlyToGovc(t *testing.T) {
	objects := render(t, "vmgroup", "web", with(charts["vmgroup"], map[string]any{"credentials": map[string]any{"secretName": "vsphere"}}))
	jobs := 0
	for _, object := range objects {
		if object.GetKind() != "Job" {
			continue
		}
		jobs++
		containers, ok := at(object.Object, "spec", "template", "spec", "containers").([]any)
		if !ok || len(containers) != 1 {
			t.Fatalf("the containers are %v", containers)
		}
		container, _ := containers[0].(map[string]any)
		if command := fmt.Sprint(container["command"], container["args"]); !strings.HasPrefix(command, "[sh /scripts/vms.sh ") || strings.Contains(command, "$") {
			t.Errorf("the command is %s", command)
		}
		keys := map[string]string{}
		for _, entry := range container["env"].([]any) { //nolint:forcetypeassert // a panic is sufficient
			variable, _ := entry.(map[string]any)
			if at(variable, "valueFrom", "secretKeyRef", "name") == "vsphere" {
				keys[fmt.Sprint(variable["name"])] = fmt.Sprint(at(variable, "valueFrom", "secretKeyRef", "key"))
			}
		}
		if want := (map[string]string{"GOVC_URL": "VC_HOST", "GOVC_USERNAME": "VC_USER", "GOVC_PASSWORD": "VC_PASS"}); !maps.Equal(keys, want) {
			t.Errorf("keys of the Secret are %v", keys)
		}
	}
	if jobs != 3 {
		t.Errorf("%d Jobs", jobs)
	}
	mounted, _ := at(find(objects, "ConfigMap", "web"), "data", "vms.sh").(string)
	script, err := os.ReadFile(filepath.Join(chartsDir, "vmgroup", "files", "vms.sh"))
	if err != nil || mounted != string(script) {
		t.Errorf("the script is not mounted unchanged: %v", err)
	}
}

// TestVmGroup_Hooks checks the phases and delete policies of all hooks.
func TestVmGroup_Hooks(t *testing.T) {
	var got []string
	for _, object := range render(t, "vmgroup", "web", charts["vmgroup"]) {
		if len(object.Events) > 0 {
			got = append(got, fmt.Sprint(object.GetKind(), " ", object.GetName(), " ", object.Events, " ", object.DeletePolicies))
		}
	}
	slices.Sort(got)
	want := []string{
		"ConfigMap web-deletion [pre-delete] [before-hook-creation hook-succeeded]",
		"ConfigMap web-location [post-delete] [before-hook-creation hook-succeeded]",
		"ConfigMap web-location [post-install post-upgrade post-rollback] [before-hook-creation]",
		"ConfigMap web-state [post-delete] [before-hook-creation hook-succeeded]",
		"ConfigMap web-state [post-install post-upgrade post-rollback] [before-hook-creation]",
		"Job web-vms [post-install post-upgrade post-rollback] [before-hook-creation hook-succeeded]",
		"Job web-vms [post-install post-upgrade post-rollback] [before-hook-creation hook-succeeded]",
		"Job web-vms [pre-delete] [before-hook-creation hook-succeeded]",
		"Pod web-test [test] [before-hook-creation hook-succeeded]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the hooks are\n%s", strings.Join(got, "\n"))
	}
}

func TestConfig_Profiles(t *testing.T) {
	for profile, want := range map[any][]string{
		nil:     {"web-controller", "web-dashboard", "web-webhook"},
		"all":   {"web-controller", "web-dashboard", "web-webhook"},
		"basic": {"web-controller", "web-webhook"},
		"lite":  {"web-controller"},
	} {
		values := map[string]any{"targetNamespace": "test", "settings": map[string]any{"a": "b"}}
		if profile != nil {
			values["profile"] = profile
		}
		objects := render(t, "config", "web", values)
		for _, kind := range []string{"Deployment", "Service"} {
			var got []string
			for _, object := range objects {
				if object.GetKind() == kind {
					got = append(got, object.GetName())
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("profile %v has %s %v, want %v", profile, kind, got, want)
			}
		}
		var settings struct {
			Profile  string
			Settings map[string]string
		}
		text, _ := at(find(objects, "ConfigMap", "web-settings"), "data", "settings.json").(string)
		if err := yaml.Unmarshal([]byte(text), &settings); err != nil || settings.Settings["a"] != "b" || settings.Profile == "" {
			t.Errorf("profile %v: the settings are %s: %v", profile, text, err)
		}
	}
}
