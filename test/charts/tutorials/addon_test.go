package tutorials

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart"
)

// versions are the releases of the templates.
var versions = []string{"1.0", "1.1"}

// tekton are the API versions of a cluster with Tekton.
var tekton = []string{"tekton.dev/v1", "tekton.dev/v1/Task", "tekton.dev/v1/Pipeline"}

func TestAddon_ParametersOfChart(t *testing.T) {
	param := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	for _, test := range []struct {
		params []any
		want   string
		fails  string
	}{
		{nil, "web-pipelines web-tasks", ""},
		{[]any{param("clusterTasks", "true")}, "web-pipelines web-tasks", ""},
		{[]any{param("pipelineTemplates", "false")}, "web-tasks", ""},
		{[]any{param("pipelineTemplates", "false"), param("clusterTasks", "false")}, "", ""},
		{[]any{param("clusterTasks", "false")}, "", "pipelineTemplates needs clusterTasks"},
		{[]any{param("clusterTasks", "true"), param("clusterTasks", "false")}, "", "clusterTasks is given twice"},
		{[]any{param("triggers", "true")}, "", "params[0].name"},
		{[]any{param("clusterTasks", "yes")}, "", "params[0].value"},
		{[]any{map[string]any{"name": "clusterTasks"}}, "", "value"},
	} {
		objects, err := tryRender(t, "addon", "web", map[string]any{"params": test.params})
		if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%v: %v, want an error with %q", test.params, err, test.fails)
			continue
		}
		var names []string
		for _, object := range objects {
			names = append(names, object.GetName())
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%v: got %s, want %s", test.params, got, test.want)
		}
	}
}

// TestAddon_TektonObjects: a cluster with Tekton gets Tasks and Pipelines
// instead of ConfigMaps, and the pipelines refer to these tasks.
func TestAddon_TektonObjects(t *testing.T) {
	longest := strings.Repeat("a", 53)
	for _, version := range versions {
		for _, release := range []string{"web", longest} {
			objects, err := renderOn(t, "addon", chart.Offline{Release: release, Values: map[string]any{"version": version}, APIVersions: tekton})
			if err != nil {
				t.Fatal(err)
			}
			tasks := map[string]bool{}
			var kinds, references []string
			for _, object := range objects {
				kinds = append(kinds, object.GetKind())
				if len(object.GetName()) > 63 || !strings.HasPrefix(object.GetName(), release) {
					t.Errorf("%s has the name %s", object.GetKind(), object.GetName())
				}
				if got := object.GetLabels()["app.kubernetes.io/version"]; got != version {
					t.Errorf("%s is labeled with version %s, want %s", object.GetName(), got, version)
				}
				if object.GetKind() == "Task" {
					tasks[object.GetName()] = true
					continue
				}
				steps, _ := at(object.Object, "spec", "tasks").([]any)
				for _, step := range steps {
					step, _ := step.(map[string]any)
					references = append(references, fmt.Sprint(at(step, "taskRef", "name")))
				}
			}
			slices.Sort(kinds)
			if !slices.Equal(kinds, []string{"Pipeline", "Task", "Task"}) || len(references) != 2 {
				t.Errorf("version %s: got %v with references to %v", version, kinds, references)
			}
			for _, reference := range references {
				if !tasks[reference] {
					t.Errorf("version %s: there is no Task %s", version, reference)
				}
			}
		}
	}
	// While only one of the kinds is served, there are still ConfigMaps.
	objects, err := renderOn(t, "addon", chart.Offline{Release: "web", APIVersions: tekton[:2]})
	if err != nil || find(objects, "ConfigMap", "web-tasks") == nil {
		t.Errorf("without Pipelines: %v %v", objects, err)
	}
}

// TestAddon_Values checks the values that are not parameters.
func TestAddon_Values(t *testing.T) {
	file := func(values map[string]any) string {
		text, _ := at(find(render(t, "addon", "web", values), "ConfigMap", "web-tasks"), "data", "git-clone.yaml").(string)
		return text
	}
	plain, err := os.ReadFile(filepath.Join(chartsDir, "addon", "files", "1.0", "tasks", "git-clone.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		values       map[string]any
		has, without string
	}{
		"default":     {map[string]any{}, string(plain), "name: depth"},
		"version 1.1": {map[string]any{"version": "1.1"}, "name: depth", "v2.49.1"},
		"OpenShift":   {map[string]any{"openShift": true}, "runAsNonRoot: true\n        allowPrivilegeEscalation", "runAsUser"},
		"namespace":   {map[string]any{"targetNamespace": "test"}, string(plain), "name: depth"},
	} {
		if text := file(test.values); !strings.Contains(text, test.has) || strings.Contains(text, test.without) {
			t.Errorf("%s: got\n%s", name, text)
		}
	}
	for want, values := range map[string]map[string]any{
		"version": {"version": "2.0"},
		`targetNamespace: got "other", want "test"`: {"targetNamespace": "other"},
	} {
		if _, err := tryRender(t, "addon", "web", values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want an error with %q", values, err, want)
		}
	}
}

// TestAddon_Templates: each file is named like its object, and the pipelines
// refer to existing tasks and parameters.
func TestAddon_Templates(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) { testTemplates(t, version) })
	}
}

func testTemplates(t *testing.T, version string) {
	t.Helper()
	read := func(pattern string) map[string]map[string]any {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(chartsDir, "addon", "files", version, filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		found := map[string]map[string]any{}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var object map[string]any
			if err := yaml.UnmarshalStrict(data, &object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			name := fmt.Sprint(at(object, "metadata", "name"))
			if name+".yaml" != path.Base(filepath.ToSlash(file)) {
				t.Errorf("%s contains %s", file, name)
			}
			found[name] = object
		}
		return found
	}
	tasks := read("tasks/*.yaml")
	for name, pipeline := range read("pipelines/*.yaml") {
		steps, _ := at(pipeline, "spec", "tasks").([]any)
		if len(steps) == 0 {
			t.Errorf("no tasks in pipeline %s", name)
		}
		for _, step := range steps {
			step, _ := step.(map[string]any)
			task := tasks[fmt.Sprint(at(step, "taskRef", "name"))]
			if task == nil {
				t.Errorf("pipeline %s refers to %v", name, at(step, "taskRef", "name"))
				continue
			}
			for _, field := range []string{"params", "workspaces"} {
				given, _ := step[field].([]any)
				for _, name := range namesOf(given) {
					known, _ := at(task, "spec", field).([]any)
					if !slices.Contains(namesOf(known), name) {
						t.Errorf("task %v has no %s of %s", at(task, "metadata", "name"), name, field)
					}
				}
			}
		}
	}
}

func namesOf(list []any) []string {
	var names []string
	for _, item := range list {
		item, _ := item.(map[string]any)
		names = append(names, fmt.Sprint(item["name"]))
	}
	return names
}
