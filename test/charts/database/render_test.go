package database

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/chart"
)

const chartDir = "../../../charts/database"

// render renders the chart for a release and returns its objects and hooks, by
// kind and name.
func render(t *testing.T, release string, values map[string]any, apis ...string) map[string]chart.RenderedObject {
	t.Helper()
	loaded, err := chart.LoadDir(os.DirFS(chartDir))
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := loaded.Render(chart.Offline{Release: release, Namespace: "test", Values: values, APIVersions: apis, KubeVersion: "v1.36.0"})
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]chart.RenderedObject{}
	for _, object := range append(rendered.Objects, rendered.Hooks...) {
		objects[object.GetKind()+"/"+object.GetName()] = object
	}
	return objects
}

// data returns the data of a rendered ConfigMap.
func data(t *testing.T, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	object, ok := render(t, "db", nil)["ConfigMap/"+name]
	if !ok {
		t.Fatalf("no ConfigMap %s", name)
	}
	for key, value := range object.Object["data"].(map[string]any) {
		found[key] = value.(string)
	}
	return found
}

// config returns the configuration files of the servers.
func config(t *testing.T) map[string]string { return data(t, "db-config") }

// scripts returns the chart's scripts as mounted in the pods.
func scripts(t *testing.T) map[string]string { return data(t, "db-scripts") }

func TestScripts_AreMounted(t *testing.T) {
	mounted := scripts(t)
	files, err := fs.Glob(os.DirFS(chartDir), "files/*.sh")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(chartDir, file))
		if err != nil {
			t.Fatal(err)
		}
		if mounted[filepath.Base(file)] != string(text) {
			t.Errorf("%s is not mounted unchanged", file)
		}
	}
}

func TestImage_WithAndWithoutTag(t *testing.T) {
	for given, want := range map[string]string{
		"super-great-docker-image":                   "super-great-docker-image:18",
		"super-great-docker-image:16.4":              "super-great-docker-image:16.4",
		"registry.example.com:5000/postgres":         "registry.example.com:5000/postgres:18",
		"registry.example.com:5000/postgres:16":      "registry.example.com:5000/postgres:16",
		"registry.example.com/postgres@sha256:abcde": "registry.example.com/postgres@sha256:abcde",
		"": "docker.io/library/postgres:18.6",
	} {
		values := map[string]any{}
		if given != "" {
			values["image"] = given
		}
		set := render(t, "db", values)["StatefulSet/db"]
		containers, _, err := unstructured.NestedSlice(set.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			t.Fatal(containers, err)
		}
		if got := containers[0].(map[string]any)["image"]; got != want {
			t.Errorf("image %q becomes %q, want %q", given, got, want)
		}
	}
}

// The name of a CronJob has at most 52 characters, and a StatefulSet's pods get
// labels with its name and a hash of at most 63 characters.
func TestNames_FitLengthLimits(t *testing.T) {
	long := strings.Repeat("long-", 10) + "abc"
	seen := map[string]bool{}
	for _, release := range []string{long, long[:52] + "d"} {
		for key, object := range render(t, release, nil) {
			if len(object.GetName()) > 52 {
				t.Errorf("%s has %d characters", key, len(object.GetName()))
			}
			if seen[key] {
				t.Errorf("%s belongs to two releases", key)
			}
			seen[key] = true
		}
	}
}

func TestMonitoring_RenderedIfAPIExists(t *testing.T) {
	apis := []string{"monitoring.coreos.com/v1/ServiceMonitor", "monitoring.coreos.com/v1/PrometheusRule"}
	on := map[string]any{"metrics": map[string]any{"enabled": true}}
	for _, test := range []struct {
		values map[string]any
		apis   []string
		want   bool
	}{{nil, apis, false}, {on, nil, false}, {on, apis, true}} {
		objects := render(t, "db", test.values, test.apis...)
		for _, key := range []string{"ServiceMonitor/db", "PrometheusRule/db"} {
			if _, got := objects[key]; got != test.want {
				t.Errorf("%s with %v and %v: %v", key, test.values, test.apis, got)
			}
		}
	}
}

// Each hook runs only in its phases.
func TestHooks(t *testing.T) {
	want := map[string]string{
		"ConfigMap/db-hook-scripts": "pre-upgrade pre-rollback pre-delete",
		"Job/db-init":               "post-install post-upgrade post-rollback",
		"Job/db-rollback-check":     "pre-rollback",
		"Job/db-upgrade-check":      "pre-upgrade",
		"Job/db-upgrade":            "pre-upgrade",
		"Job/db-snapshot-check":     "pre-delete",
		"Job/db-snapshot":           "pre-delete",
		"Pod/db-test":               "test",
	}
	for _, snapshot := range []bool{true, false} {
		if !snapshot {
			delete(want, "Job/db-snapshot-check")
			delete(want, "Job/db-snapshot")
		}
		got := map[string]string{}
		for key, object := range render(t, "db", map[string]any{"snapshotOnDelete": snapshot}) {
			if len(object.Events) > 0 {
				got[key] = strings.Join(object.Events, " ")
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("with snapshotOnDelete %v the hooks are %v, want %v", snapshot, got, want)
		}
	}
}

// Only the claim with the backups is kept.
func TestKeep_OnlyBackupsClaim(t *testing.T) {
	for key, object := range render(t, "db", nil) {
		if keeps := object.GetAnnotations()["helm.sh/resource-policy"] == "keep"; keeps != (key == "PersistentVolumeClaim/db-backups") {
			t.Errorf("%s: keep is %v", key, keeps)
		}
	}
}

// TestPods_OpenShift checks that no pod has a fixed user if OpenShift assigns it.
func TestPods_OpenShift(t *testing.T) {
	for key, object := range render(t, "db", map[string]any{"openShift": true, "metrics": map[string]any{"enabled": true}}) {
		if text, err := object.MarshalJSON(); err != nil || strings.Contains(string(text), "runAsUser") || strings.Contains(string(text), "fsGroup\"") {
			t.Errorf("%s has a fixed user or group: %v", key, err)
		}
	}
}

// TestClaim_OnlyWithBackups checks that a release without backups has no claim for
// them.
func TestClaim_OnlyWithBackups(t *testing.T) {
	off := map[string]any{"backup": map[string]any{"enabled": false}, "snapshotOnDelete": false}
	for name, test := range map[string]struct {
		values map[string]any
		want   bool
	}{
		"defaults":         {nil, true},
		"nothing":          {off, false},
		"only a restore":   {map[string]any{"backup": off["backup"], "snapshotOnDelete": false, "restoreFrom": "latest"}, true},
		"only a snapshot":  {map[string]any{"backup": off["backup"]}, true},
		"only on request":  {map[string]any{"backup": map[string]any{"enabled": false, "request": "now"}, "snapshotOnDelete": false}, true},
		"no earlier data":  {map[string]any{"backup": off["backup"], "snapshotOnDelete": false, "restoreFrom": "none"}, false},
		"only a schedule":  {map[string]any{"snapshotOnDelete": false}, true},
		"null is the same": {map[string]any{"backup": nil, "snapshotOnDelete": nil}, true},
	} {
		if _, got := render(t, "db", test.values)["PersistentVolumeClaim/db-backups"]; got != test.want {
			t.Errorf("%s: there is a claim: %t, want %t", name, got, test.want)
		}
	}
}

// TestRestore_RunsOnSchedule checks that a lost volume is restored without an
// upgrade: hooks run only at an install, an upgrade or a rollback.
func TestRestore_RunsOnSchedule(t *testing.T) {
	for from, want := range map[string]bool{"": false, "none": false, "latest": true, "final/20260101T000000Z": true} {
		job, got := render(t, "db", map[string]any{"restoreFrom": from})["CronJob/db-restore"]
		if got != want {
			t.Errorf("restoreFrom %q: there is a CronJob: %t, want %t", from, got, want)
		}
		if !got {
			continue
		}
		text, err := job.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		contains(t, string(text), `"command":["sh","/scripts/init.sh"]`, `"args":["if-needed"]`, `{"name":"RESTORE_FROM","value":"`+from+`"}`, `"schedule":"*/5 * * * *"`)
	}
}
