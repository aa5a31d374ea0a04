package catalog_test

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/catalog"
)

// own loads a kind whose entry contains these lines, starting at line 5 of the file.
func own(t *testing.T, lines ...string) ([]catalog.Kind, error) {
	t.Helper()
	folder := t.TempDir()
	files := chart("a")
	files["values.yaml"] = "replicas: 2\n"
	write(t, filepath.Join(folder, "a"), files)
	all := append([]string{"- group: g", "version: v1", "kind: A", "chart: a"}, lines...)
	write(t, folder, map[string]string{"watches.yaml": strings.Join(all, "\n  ") + "\n"})
	return catalog.FromFile(filepath.Join(folder, "watches.yaml"))
}

func TestStatusFields(t *testing.T) {
	kinds, err := own(t,
		"observe:",
		"  - name: pods",
		"    apiVersion: v1",
		"    kind: Pod",
		"    selector: {matchLabels: {app: web, instance: '{{ .release.name }}', tier: '{{ .spec.tier }}'}}",
		"status: {count: size(observed.pods), replicas: values.replicas}",
	)
	if err != nil {
		t.Fatal(err)
	}
	kind := kinds[0]
	if names := strings.Join(kind.Fields.Names(), " "); names != "count replicas" {
		t.Errorf("fields are %s", names)
	}
	if kind.Defaults["replicas"] != int64(2) {
		t.Errorf("defaults are %v", kind.Defaults)
	}
	o := kind.Observes[0]
	if selector, err := o.Watch.Selector(); err != nil || selector.String() != "app=web,instance,tier" {
		t.Errorf("watches %v, %v", selector, err)
	}
	release := types.NamespacedName{Namespace: "shop", Name: "web"}
	cr := map[string]any{"spec": map[string]any{"tier": "gold"}}
	selection, err := o.Selection(cr, release)
	if err != nil {
		t.Fatal(err)
	}
	if selection.Name != "pods" || selection.Namespace != "shop" || len(selection.Labels) != 2 || selection.Labels["instance"] != "web" || selection.Labels["tier"] != "gold" {
		t.Errorf("%+v", selection)
	}
	if _, left := cr["release"]; left {
		t.Error("the custom resource was changed")
	}
	for _, spec := range []map[string]any{{}, {"tier": "no label"}} {
		if _, err := o.Selection(map[string]any{"spec": spec}, release); err == nil || !strings.HasPrefix(err.Error(), "observe[0].selector.matchLabels: tier: ") {
			t.Errorf("%v: %v", spec, err)
		}
	}
}

func TestStatusFields_ReportErrors(t *testing.T) {
	for want, lines := range map[string][]string{
		"watches.yaml:6: status.bad: column 8: undefined field 'nmae'":                    {"status:", "  bad: release.nmae", "  good: release.name"},
		"watches.yaml:5: status.bad: observe has no entry pods":                           {"status: {bad: size(observed.pods)}"},
		"watches.yaml:5: status.conditions: the name is reserved":                         {"status: {conditions: release.name}"},
		"watches.yaml:1: observe[0].selector.matchLabels: a: not a template: ":            {"observe: [{name: pods, apiVersion: v1, kind: Pod, selector: {matchLabels: {a: '{{ .release'}}}]"},
		"watches.yaml:7: status.bad: line 2, column 1: undeclared reference to 'nothing'": {"status:", "  good: '1'", "  bad: |", "    1 +", "    nothing"},
		"watches.yaml:5: status.empty is empty":                                           {"status: {empty: ''}"},
	} {
		_, err := own(t, lines...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v\nwant one problem, %s", err, want)
		}
	}
}

func TestDefaults_KeptOnlyIfExpressionsReadValues(t *testing.T) {
	kinds, err := own(t, "status: {a: release.name}")
	if err != nil {
		t.Fatal(err)
	}
	if kinds[0].Defaults != nil {
		t.Errorf("%v", kinds[0].Defaults)
	}
}
