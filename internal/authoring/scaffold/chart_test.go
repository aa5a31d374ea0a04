package scaffold_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/catalog"
)

// pack writes a chart archive like helm package.
func pack(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	var data bytes.Buffer
	zip := gzip.NewWriter(&data)
	archive := tar.NewWriter(zip)
	for _, file := range sorted(files) {
		if err := archive.WriteHeader(&tar.Header{Name: "box/" + file, Mode: 0o644, Size: int64(len(files[file]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(files[file])); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var boxChart = map[string]string{
	"Chart.yaml":              "apiVersion: v2\nname: box\nversion: 1.0.0\n",
	"values.yaml":             "size: 1\n",
	"templates/box.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}\"}\ndata: {size: \"{{ .Values.size }}\"}\n",
	"templates/old.yaml":      "",
	"charts/in/Chart.yaml":    "apiVersion: v2\nname: in\nversion: 1.0.0\n",
	"charts/in/templates/a":   "",
	"charts/in/.helmignore":   "b\n",
	"crds/a.yaml":             "",
	"files/configuration.ini": "a = b\n",
}

// TestAdd_ArchiveIsUnpackedAndUpdated also checks that an update preserves and uses files
// that the user has added, such as a schema, and removes files of the previous chart.
func TestAdd_ArchiveIsUnpackedAndUpdated(t *testing.T) {
	dir := newProject(t)
	add(t, dir, scaffold.Add{Chart: pack(t, "box-1.0.0.tgz", boxChart), Group: "shop", Version: "v1"})
	copied := func() map[string]string { return tree(t, dir+"/charts/box") }
	if diff := cmp.Diff(boxChart, copied()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	const schema = `{"type": "object", "properties": {"size": {"type": "integer", "maximum": 7}}}`
	writeFiles(t, dir+"/charts/box", map[string]string{"values.schema.json": schema})
	newer := maps.Clone(boxChart)
	newer["Chart.yaml"] = strings.Replace(newer["Chart.yaml"], "1.0.0", "2.0.0", 1)
	delete(newer, "templates/old.yaml")
	delete(newer, "charts/in/templates/a")
	delete(newer, "files/configuration.ini")
	add(t, dir, scaffold.Add{Chart: pack(t, "box-2.0.0.tgz", newer)})

	want := maps.Clone(newer)
	want["values.schema.json"] = schema
	if diff := cmp.Diff(want, copied()); diff != "" {
		t.Errorf("after the update (-want +got):\n%s", diff)
	}
	if crd := tree(t, dir)["config/crd/bases/shop.example.com_boxes.yaml"]; !strings.Contains(crd, "maximum: 7") {
		t.Errorf("the CRD ignores the schema of the user:\n%s", crd)
	}
}

// TestAdd_UsesChartInPlace checks that folders and archives in charts/ are not copied.
func TestAdd_UsesChartInPlace(t *testing.T) {
	dir := newProject(t)
	writeFiles(t, dir+"/charts/teams/a-box", boxChart)
	add(t, dir, scaffold.Add{Chart: dir + "/charts/teams/a-box", Group: "shop", Version: "v1"})
	archive, err := os.ReadFile(pack(t, "box.tgz", boxChart))
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{"charts/packed.tgz": string(archive)})
	t.Chdir(dir)
	plan, err := scaffold.Project{Watches: "watches.yaml", Config: "config"}.Add(scaffold.Add{Chart: "charts/packed.tgz", Kind: "Packed", Group: "shop", Version: "v1"})
	for _, path := range write(t, plan, err)[scaffold.OpCreate] {
		if strings.HasPrefix(path, "charts") {
			t.Errorf("%s is created", path)
		}
	}
	kinds, err := catalog.FromFile("watches.yaml")
	if err != nil || len(kinds) != 2 || kinds[0].Watch.Chart != "charts/teams/a-box" || kinds[1].Watch.Chart != "charts/packed.tgz" {
		t.Errorf("%v, %v", kinds, err)
	}
}

// TestAdd_FollowsSymbolicLinks also checks that loops are errors, and that .git is not
// copied.
func TestAdd_FollowsSymbolicLinks(t *testing.T) {
	dir := newProject(t)
	repository := writeFiles(t, t.TempDir(), map[string]string{".git/config": ""})
	shared := writeFiles(t, filepath.Join(repository, "shared"), map[string]string{"in/Chart.yaml": boxChart["charts/in/Chart.yaml"], "in/.git/config": "a", "values.yaml": "size: 2\n"})
	chart := writeFiles(t, filepath.Join(repository, "charts", "box"), map[string]string{
		"Chart.yaml": boxChart["Chart.yaml"], "templates/box.yaml": boxChart["templates/box.yaml"],
	})
	link := func(from, to string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(chart, from)); err != nil {
			t.Fatal(err)
		}
	}
	link("charts", shared)
	link("values.yaml", filepath.Join(shared, "values.yaml"))
	if err := os.Remove(filepath.Join(chart, "charts")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(chart, "charts"), 0o750); err != nil {
		t.Fatal(err)
	}
	link("charts/in", filepath.Join(shared, "in"))
	add(t, dir, scaffold.Add{Chart: chart, Group: "shop", Version: "v1"})
	want := map[string]string{
		"Chart.yaml": boxChart["Chart.yaml"], "templates/box.yaml": boxChart["templates/box.yaml"],
		"values.yaml": "size: 2\n", "charts/in/Chart.yaml": boxChart["charts/in/Chart.yaml"],
	}
	if diff := cmp.Diff(want, tree(t, dir+"/charts/box")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	outside := writeFiles(t, t.TempDir(), map[string]string{"key": "secret"})
	link("key", filepath.Join(outside, "key"))
	if _, err := project(dir).Add(scaffold.Add{Chart: chart}); err == nil || !strings.Contains(err.Error(), "box/key: the symbolic link leads to "+outside+"/key, outside of the chart's repository") {
		t.Errorf("a link to a file outside of the repository: %v", err)
	}
	if err := os.Remove(filepath.Join(chart, "key")); err != nil {
		t.Fatal(err)
	}
	link("templates/dangling.yaml", "nowhere")
	if _, err := project(dir).Add(scaffold.Add{Chart: chart}); err == nil || !strings.Contains(err.Error(), "templates/dangling.yaml: the symbolic link points to a file that does not exist") {
		t.Errorf("a dangling link: %v", err)
	}
	if err := os.Remove(filepath.Join(chart, "templates", "dangling.yaml")); err != nil {
		t.Fatal(err)
	}
	link("templates/loop", chart)
	if _, err := project(dir).Add(scaffold.Add{Chart: chart}); err == nil || !strings.Contains(err.Error(), "loop") {
		t.Errorf("a loop: %v", err)
	}
}

// TestAdd_NewChartHasNoLintFindings also checks that the new kind can be loaded.
func TestAdd_NewChartHasNoLintFindings(t *testing.T) {
	dir := newProject(t)
	plan := add(t, dir, scaffold.Add{New: "api-gateway", Group: "shop", Version: "v1alpha1"})
	if len(plan.Notes) > 0 {
		t.Errorf("notes: %q", plan.Notes)
	}
	kinds, err := catalog.FromFile(dir + "/watches.yaml")
	if err != nil || len(kinds) != 1 || kinds[0].Kind != "ApiGateway" {
		t.Fatalf("%v, %v", kinds, err)
	}
	findings, err := lint.Run(lint.Target{Kind: kinds[0], Path: "charts/api-gateway"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range findings {
		t.Errorf("lint: %v", finding)
	}
	for name, text := range tree(t, dir+"/charts") {
		if strings.Contains(text, "[[") || strings.Contains(text, "<no value>") {
			t.Errorf("%s contains a placeholder:\n%s", name, text)
		}
	}
}
