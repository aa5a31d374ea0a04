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
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// files is a chart's folder.
type files map[string]string

func (f files) fs() fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, content := range f {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}

// with returns the folder with a file more.
func (f files) with(name, content string) files {
	more := maps.Clone(f)
	more[name] = content
	return more
}

func (f files) load(t testing.TB) *Chart {
	t.Helper()
	c, err := LoadDir(f.fs())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// small is a chart of one ConfigMap.
func small() files {
	return files{
		"Chart.yaml":             "apiVersion: v2\nname: small\nversion: 1.2.3\nappVersion: '9'\n",
		"values.yaml":            "greeting: hello\n",
		"templates/_helpers.tpl": `{{ define "small.name" }}{{ .Release.Name }}-small{{ end }}`,
		"templates/config.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include \"small.name\" . }}\ndata:\n  greeting: {{ .Values.greeting | quote }}\n",
		"templates/NOTES.txt":    "It says {{ .Values.greeting }}.\n",
	}
}

// prepared checks values and returns what an action renders them with.
func prepared(c *Chart, values map[string]any) (*helmchart.Chart, error) {
	_, err := c.Prepare(values)
	return clone(c.chart), err
}

// renderWith renders a chart as an action does.
func renderWith(t testing.TB, c *Chart, values map[string]any) map[string]string {
	t.Helper()
	loaded, err := prepared(c, values)
	if err != nil {
		t.Fatal(err)
	}
	if err := chartutil.ProcessDependenciesWithMerge(loaded, values); err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ToRenderValuesWithSchemaValidation(loaded, values, chartutil.ReleaseOptions{Name: "web", Namespace: "apps"}, chartutil.DefaultCapabilities, true)
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

func TestLoadDir(t *testing.T) {
	c := small().load(t)
	if c.Name() != "small" || c.Version() != "1.2.3" {
		t.Errorf("it is %s-%s", c.Name(), c.Version())
	}
	got := renderWith(t, c, map[string]any{"greeting": "hi"})["small/templates/config.yaml"]
	if want := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web-small\ndata:\n  greeting: \"hi\"\n"; got != want {
		t.Errorf("rendered\n%s", got)
	}
}

func TestLoadDirIgnores(t *testing.T) {
	folder := small().
		with(".helmignore", "# comment\n*.bak\nsecret/\n").
		with("values.yaml.bak", "broken: [").
		with("secret/key", "x").
		with("files/data.txt", "y")
	if diff := cmp.Diff([]string{".helmignore", "Chart.yaml", "files/data.txt", "templates/NOTES.txt", "templates/_helpers.tpl", "templates/config.yaml", "values.yaml"}, names(folder.load(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What is ignored does not count for the digest either.
	if folder.load(t).Digest != folder.with("more.bak", "z").load(t).Digest {
		t.Error("an ignored file changed the digest")
	}
	if _, err := LoadDir(small().with(".helmignore", "a\\\n[\n").fs()); err == nil || !strings.Contains(err.Error(), ".helmignore") {
		t.Errorf("a broken .helmignore: %v", err)
	}
}

func TestLoadDirDropsTheByteOrderMark(t *testing.T) {
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
		t.Error("the mark changed the digest")
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		folder files
		want   string
	}{
		{"no Chart.yaml", files{"values.yaml": ""}, "Chart.yaml file is missing"},
		{"Chart.yaml without a version", small().with("Chart.yaml", "apiVersion: v2\nname: small\n"), "version is required"},
		{"a library", small().with("Chart.yaml", small()["Chart.yaml"]+"type: library\n"), "library chart"},
		{"values that are no YAML", small().with("values.yaml", "a: ["), "values.yaml"},
		{"a missing subchart", small().with("Chart.yaml", small()["Chart.yaml"]+"dependencies: [{name: child, version: '1', repository: 'https://example.com'}]\n"), "child: run 'helm dependency build'"},
		{"a template that does not parse", small().with("templates/bad.yaml", "{{ if }}"), "templates/bad.yaml"},
		{"a schema that is no JSON", small().with("values.schema.json", "{"), "small/values.schema.json"},
		{"a schema that is no schema", small().with("values.schema.json", `{"type": "thing"}`), "small/values.schema.json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := LoadDir(test.folder.fs()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestLoadArchive(t *testing.T) {
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
		t.Error("the archive of a folder has another digest")
	}
	if _, err := LoadArchive(strings.NewReader("text")); err == nil {
		t.Error("text is taken for an archive")
	}
}

func TestDigest(t *testing.T) {
	base := small().load(t).Digest
	for name, folder := range map[string]files{
		"README.md":     small().with("README.md", "read me"),
		"LICENSE":       small().with("LICENSE", "Apache-2.0"),
		"ci values":     small().with("ci/test-values.yaml", "a: b"),
		"ignored files": small().with("templates/.hidden.swp", ""),
	} {
		t.Run("the same with "+name, func(t *testing.T) {
			if strings.HasPrefix(name, "ignored") {
				folder = folder.with(".helmignore", "*.swp")
				if folder.load(t).Digest != small().with(".helmignore", "*.swp").load(t).Digest {
					t.Error("it differs")
				}
				return
			}
			if folder.load(t).Digest != base {
				t.Error("it differs")
			}
		})
	}
	for name := range small() {
		t.Run("another with a byte more in "+name, func(t *testing.T) {
			if small().with(name, small()[name]+"\n").load(t).Digest == base {
				t.Error("it is the same")
			}
		})
	}
	for name, folder := range map[string]files{
		"a file":                small().with("files/a.txt", "a"),
		"a README in templates": small().with("templates/README.md", ""),
		"a folder like ci":      small().with("city/values.yaml", ""),
		"a file renamed":        moved(small(), "templates/config.yaml", "templates/konfig.yaml"),
	} {
		t.Run("another with "+name, func(t *testing.T) {
			if folder.load(t).Digest == base {
				t.Error("it is the same")
			}
		})
	}
}

func moved(f files, from, to string) files {
	f = f.with(to, f[from])
	delete(f, from)
	return f
}

func TestDigestFilesIgnoresOrder(t *testing.T) {
	a := []*loader.BufferedFile{{Name: "a", Data: []byte("1")}, {Name: "b", Data: []byte("2")}, {Name: "c", Data: []byte("3")}}
	b := []*loader.BufferedFile{a[2], a[0], a[1]}
	if digestFiles(a) != digestFiles(b) {
		t.Error("the order of files changes the digest")
	}
	swapped := []*loader.BufferedFile{{Name: "a", Data: []byte("2")}, {Name: "b", Data: []byte("1")}, a[2]}
	if digestFiles(a) == digestFiles(swapped) {
		t.Error("contents that change places keep the digest")
	}
}

// family is a chart with a subchart of each sort: turned on by a condition, by
// a tag, twice under aliases, one with values that the parent imports, and one
// that Chart.yaml does not name, with a subchart of its own.
func family() files {
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

// specs turn the family's subcharts on and off.
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

// TestRendersDoNotDisturbEachOther: Helm changes the charts that it renders,
// and all custom resources of a kind share one.
func TestRendersDoNotDisturbEachOther(t *testing.T) {
	want := make([]map[string]string, len(specs()))
	for i, spec := range specs() {
		want[i] = renderWith(t, family().load(t), spec)
	}
	if _, on := want[0]["parent/charts/switched/templates/config.yaml"]; on {
		t.Fatal("the subchart is on by default")
	}
	if text, on := want[1]["parent/charts/switched/templates/config.yaml"]; !on || !strings.Contains(text, "value: 'from-parent'") {
		t.Fatalf("the subchart is not on: %s", text)
	}

	shared := family().load(t)
	t.Run("one after the other", func(t *testing.T) {
		for range 2 {
			for i, spec := range specs() {
				if diff := cmp.Diff(want[i], renderWith(t, shared, spec)); diff != "" {
					t.Errorf("spec %d (-alone +shared):\n%s", i, diff)
				}
			}
		}
	})
	t.Run("at once", func(t *testing.T) {
		var wait sync.WaitGroup
		for worker := range 4 {
			wait.Go(func() {
				for i := range specs() {
					i = (i + worker) % len(specs())
					if diff := cmp.Diff(want[i], renderWith(t, shared, specs()[i])); diff != "" {
						t.Errorf("spec %d (-alone +shared):\n%s", i, diff)
					}
				}
			})
		}
		wait.Wait()
	})
}

func TestPrepareLeavesTheValuesAlone(t *testing.T) {
	for _, spec := range specs() {
		given := map[string]any{"spec": spec}
		if _, err := prepared(family().load(t), spec); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"spec": spec}, given); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
