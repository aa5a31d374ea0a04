package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// files maps the paths of a chart's files to their contents.
type files map[string]string

func (f files) fs() fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, content := range f {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}

// with returns a copy of the files, and adds or replaces one file.
func (f files) with(name, content string) files {
	copied := maps.Clone(f)
	copied[name] = content
	return copied
}

func (f files) load(t testing.TB) *Chart {
	t.Helper()
	c, err := LoadDir(f.fs())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// small returns the files of a chart with one ConfigMap.
func small() files {
	return files{
		"Chart.yaml":             "apiVersion: v2\nname: small\nversion: 1.2.3\nappVersion: '9'\n",
		"values.yaml":            "greeting: hello\n",
		"templates/_helpers.tpl": `{{ define "small.name" }}{{ .Release.Name }}-small{{ end }}`,
		"templates/config.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include \"small.name\" . }}\ndata:\n  greeting: {{ .Values.greeting | quote }}\n",
		"templates/NOTES.txt":    "The greeting is {{ .Values.greeting }}.\n",
	}
}

// prepareValues validates values and returns a copy of the chart for rendering.
func prepareValues(c *Chart, given map[string]any) (*engine.Chart, error) {
	_, err := c.Prepare(given, values.Numbers{})
	return clone(c.chart), err
}

// renderWith renders a chart with Helm after the validation of an action.
func renderWith(t testing.TB, c *Chart, values map[string]any) map[string]string {
	t.Helper()
	loaded, err := prepareValues(c, values)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.ProcessDependenciesWithMerge(loaded, values); err != nil {
		t.Fatal(err)
	}
	given, err := engine.ToRenderValuesWithSchemaValidation(loaded, values, engine.ReleaseOptions{Name: "web", Namespace: "apps"}, engine.DefaultCapabilities, true)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(loaded, given)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

func names(c *Chart) []string {
	var found []string
	for _, f := range c.chart.Raw {
		found = append(found, f.Name)
	}
	slices.Sort(found)
	return found
}

func TestLoadDir_RendersValues(t *testing.T) {
	c := small().load(t)
	if c.Name() != "small" || c.Version() != "1.2.3" {
		t.Errorf("got chart %s-%s, want small-1.2.3", c.Name(), c.Version())
	}
	got := renderWith(t, c, map[string]any{"greeting": "hi"})["small/templates/config.yaml"]
	if want := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web-small\ndata:\n  greeting: \"hi\"\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLoadDir_AppliesHelmignore(t *testing.T) {
	folder := small().
		with(".helmignore", "# comment\n*.bak\nsecret/\n").
		with("values.yaml.bak", "broken: [").
		with("secret/key", "x").
		// Helm always ignores hidden files in templates.
		with("templates/.config.yaml.swp", "broken: {{").
		with("files/data.txt", "y")
	if diff := cmp.Diff([]string{".helmignore", "Chart.yaml", "files/data.txt", "templates/NOTES.txt", "templates/_helpers.tpl", "templates/config.yaml", "values.yaml"}, names(folder.load(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The digest does not include ignored files.
	if folder.load(t).Digest != folder.with("more.bak", "z").load(t).Digest {
		t.Error("an ignored file changed the digest")
	}
	if _, err := LoadDir(small().with(".helmignore", "a\\\n[\n").fs()); err == nil || !strings.Contains(err.Error(), ".helmignore") {
		t.Errorf("invalid .helmignore: got error %v, want one with the file name", err)
	}
}

func TestLoadDir_RemovesByteOrderMarks(t *testing.T) {
	const mark = "\ufeff"
	folder := files{}
	for name, content := range small() {
		folder[name] = mark + content
	}
	c := folder.load(t)
	if diff := cmp.Diff(renderWith(t, small().load(t), map[string]any{}), renderWith(t, c, map[string]any{})); diff != "" {
		t.Errorf("(-without +with):\n%s", diff)
	}
	if c.Digest != small().load(t).Digest {
		t.Error("the byte order mark changed the digest")
	}
}

func TestLoadDir_RejectsInvalidCharts(t *testing.T) {
	for _, test := range []struct {
		name   string
		folder files
		want   string
	}{
		{"no Chart.yaml", files{"values.yaml": ""}, "Chart.yaml file is missing"},
		{"Chart.yaml without a version", small().with("Chart.yaml", "apiVersion: v2\nname: small\n"), "version is required"},
		{"a library chart", small().with("Chart.yaml", small()["Chart.yaml"]+"type: library\n"), "library chart"},
		{"invalid YAML in values.yaml", small().with("values.yaml", "a: ["), "values.yaml"},
		{"a missing subchart", small().with("Chart.yaml", small()["Chart.yaml"]+"dependencies: [{name: child, version: '1', repository: 'https://example.com'}]\n"), "child: run 'helm dependency build'"},
		{"a template with a syntax error", small().with("templates/bad.yaml", "{{ if }}"), "templates/bad.yaml"},
		{"invalid JSON in values.schema.json", small().with("values.schema.json", "{"), "small/values.schema.json"},
		{"an unknown type in values.schema.json", small().with("values.schema.json", `{"type": "thing"}`), "small/values.schema.json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := LoadDir(test.folder.fs()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestLoadArchive_HasDigestOfFolder(t *testing.T) {
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	tw := tar.NewWriter(gz)
	for name, content := range small() {
		if err := tw.WriteHeader(&tar.Header{Name: "small/" + name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := LoadArchive(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if c.Digest != small().load(t).Digest {
		t.Error("the archive and the folder have different digests")
	}
	if _, err := LoadArchive(strings.NewReader("text")); err == nil {
		t.Error("a text was accepted as an archive")
	}
}

func TestDigest_CoversFilesThatHelmUses(t *testing.T) {
	base := small().load(t).Digest
	for name, folder := range map[string]files{
		"README.md":     small().with("README.md", "read me"),
		"LICENSE":       small().with("LICENSE", "Apache-2.0"),
		"ci values":     small().with("ci/test-values.yaml", "a: b"),
		"ignored files": small().with("templates/.hidden.swp", ""),
	} {
		t.Run("ignores "+name, func(t *testing.T) {
			if strings.HasPrefix(name, "ignored") {
				folder = folder.with(".helmignore", "*.swp")
				if folder.load(t).Digest != small().with(".helmignore", "*.swp").load(t).Digest {
					t.Error("the digest differs")
				}
				return
			}
			if folder.load(t).Digest != base {
				t.Error("the digest differs")
			}
		})
	}
	for name := range small() {
		t.Run("differs with another byte in "+name, func(t *testing.T) {
			if small().with(name, small()[name]+"\n").load(t).Digest == base {
				t.Error("the digest is the same")
			}
		})
	}
	for name, folder := range map[string]files{
		"a file":                small().with("files/a.txt", "a"),
		"a README in templates": small().with("templates/README.md", ""),
		"a folder city":         small().with("city/values.yaml", ""),
		"a renamed file":        renamed(small(), "templates/config.yaml", "templates/konfig.yaml"),
	} {
		t.Run("differs with "+name, func(t *testing.T) {
			if folder.load(t).Digest == base {
				t.Error("the digest is the same")
			}
		})
	}
}

func renamed(f files, from, to string) files {
	f = f.with(to, f[from])
	delete(f, from)
	return f
}

func TestDigestFiles_IgnoresOrder(t *testing.T) {
	a := []*engine.BufferedFile{{Name: "a", Data: []byte("1")}, {Name: "b", Data: []byte("2")}, {Name: "c", Data: []byte("3")}}
	b := []*engine.BufferedFile{a[2], a[0], a[1]}
	if digestFiles(a) != digestFiles(b) {
		t.Error("the order of files changes the digest")
	}
	swapped := []*engine.BufferedFile{{Name: "a", Data: []byte("2")}, {Name: "b", Data: []byte("1")}, a[2]}
	if digestFiles(a) == digestFiles(swapped) {
		t.Error("files with swapped contents have the same digest")
	}
}

// parentChart returns a chart with five subcharts. A condition enables switched, a tag
// enables tagged, and aliases use twin twice. The parent imports values of giver. The
// subchart loose is missing in Chart.yaml and has a subchart of its own.
func parentChart() files {
	template := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Chart.Name }}'}\ndata: {value: '{{ .Values.value }}', global: '{{ .Values.global.g }}'}\n"
	f := files{
		"Chart.yaml": `apiVersion: v2
name: parent
version: 1.0.0
dependencies:
- {name: switched, version: 1.0.0, condition: switched.enabled}
- {name: tagged, version: 1.0.0, tags: [extra]}
- {name: twin, version: 1.0.0, alias: first}
- {name: twin, version: 1.0.0, alias: second, condition: second.enabled}
- name: giver
  version: 1.0.0
  import-values: [{child: given, parent: taken}]
`,
		"values.yaml":            "switched: {enabled: false, value: from-parent}\ntags: {extra: false}\nsecond: {enabled: true, value: two}\nglobal: {g: parent}\ntaken: {own: 1}\n",
		"templates/taken.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: taken}\ndata: {taken: '{{ toJson .Values.taken }}'}\n",
		"charts/switched/README": "",
	}
	for _, child := range []string{"switched", "tagged", "twin", "giver", "loose"} {
		f["charts/"+child+"/Chart.yaml"] = "apiVersion: v2\nname: " + child + "\nversion: 1.0.0\n"
		f["charts/"+child+"/values.yaml"] = "value: default\ngiven: {present: " + child + "}\n"
		f["charts/"+child+"/templates/config.yaml"] = template
	}
	f["charts/loose/Chart.yaml"] += "dependencies: [{name: deep, version: 1.0.0, condition: deep.enabled}]\n"
	f["charts/loose/charts/deep/Chart.yaml"] = "apiVersion: v2\nname: deep\nversion: 1.0.0\n"
	f["charts/loose/charts/deep/values.yaml"] = "value: deep\n"
	f["charts/loose/charts/deep/templates/config.yaml"] = template
	return f
}

// specs returns values that enable and disable the subcharts of parentChart.
func specs() []map[string]any {
	return []map[string]any{
		{},
		{"switched": map[string]any{"enabled": true}},
		{"tags": map[string]any{"extra": true}, "tagged": map[string]any{"value": "mine"}},
		{"second": map[string]any{"enabled": false}, "first": map[string]any{"value": "one"}},
		{"global": map[string]any{"g": "spec"}, "giver": map[string]any{"given": map[string]any{"present": "spec"}}},
		{"switched": map[string]any{"enabled": true, "value": nil}, "taken": nil},
		{"loose": map[string]any{"deep": map[string]any{"enabled": false}}},
		{"loose": map[string]any{"deep": map[string]any{"enabled": true, "value": "mine"}}},
	}
}

// Helm modifies the charts that it renders, but all custom resources of a kind share one
// chart.
func TestRender_SharedChartGivesIndependentResults(t *testing.T) {
	want := make([]map[string]string, len(specs()))
	for i, spec := range specs() {
		want[i] = renderWith(t, parentChart().load(t), spec)
	}
	if _, on := want[0]["parent/charts/switched/templates/config.yaml"]; on {
		t.Fatal("the subchart is enabled by default")
	}
	if text, on := want[1]["parent/charts/switched/templates/config.yaml"]; !on || !strings.Contains(text, "value: 'from-parent'") {
		t.Fatalf("the subchart is not enabled: %s", text)
	}

	shared := parentChart().load(t)
	t.Run("sequential", func(t *testing.T) {
		for range 2 {
			for i, spec := range specs() {
				if diff := cmp.Diff(want[i], renderWith(t, shared, spec)); diff != "" {
					t.Errorf("spec %d (-own chart +shared chart):\n%s", i, diff)
				}
			}
		}
	})
	t.Run("concurrent", func(t *testing.T) {
		var wait sync.WaitGroup
		for worker := range 4 {
			wait.Go(func() {
				for i := range specs() {
					i = (i + worker) % len(specs())
					if diff := cmp.Diff(want[i], renderWith(t, shared, specs()[i])); diff != "" {
						t.Errorf("spec %d (-own chart +shared chart):\n%s", i, diff)
					}
				}
			})
		}
		wait.Wait()
	})
}

func TestPrepare_DoesNotModifyValues(t *testing.T) {
	for _, spec := range specs() {
		given := map[string]any{"spec": spec}
		if _, err := prepareValues(parentChart().load(t), spec); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"spec": spec}, given); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
