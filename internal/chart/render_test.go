package chart

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// patient returns the default limits without that of time: a busy machine with the race detector
// exceeds it with large charts. The tests of package render cover it.
func patient() render.Limits {
	limits := render.Defaults()
	limits.Time = time.Hour
	return limits
}

func TestMain(m *testing.M) {
	offline = render.New(patient())
	os.Exit(m.Run())
}

// chartFolders returns the folders of the charts in this repository.
func chartFolders(t testing.TB) []string {
	t.Helper()
	var found []string
	for _, root := range []string{"../../charts", "../../test", "../authoring/lint", "../chart"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Name() == "Chart.yaml" && filepath.Base(filepath.Dir(filepath.Dir(path))) != "charts" || filepath.Dir(filepath.Dir(path)) == "../../charts" {
				found = append(found, filepath.Dir(path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 20 {
		t.Fatalf("got %d charts, want at least 20", len(found))
	}
	return found
}

// webRelease contains the options of a first install.
var webRelease = engine.ReleaseOptions{Name: "web", Namespace: "apps", Revision: 1, IsInstall: true}

// renderByHelm renders a chart with Helm's engine.
func renderByHelm(c *Chart, given map[string]any) (map[string]string, error) {
	in, err := c.Prepare(given, values.Numbers{})
	if err != nil {
		return nil, err
	}
	top, err := engine.ToRenderValuesWithSchemaValidation(in.Chart, values.Numbers{}.For(given), webRelease, engine.DefaultCapabilities, true)
	if err != nil {
		return nil, err
	}
	return engine.Render(in.Chart, top)
}

// renderByPackage renders a chart with package render. Unlike an action, it does not pass
// the result to Helm's engine.
func renderByPackage(t testing.TB, by *render.Renderer, c *Chart, given map[string]any) (map[string]string, error) {
	in, err := c.Prepare(given, values.Numbers{})
	if err != nil {
		return nil, err
	}
	return c.execute(t.Context(), in, by, webRelease, engine.DefaultCapabilities, render.Options{})
}

// The renderer and Helm's engine produce the same output for every chart, with and
// without templates that the renderer parsed. Values that differ between two
// renders by Helm itself are passwords and certificates, and are ignored.
func TestRender_ChartsMatchHelm(t *testing.T) {
	t.Parallel()
	renderer, compared := render.New(patient()), 0
	for _, folder := range chartFolders(t) {
		c, err := LoadDir(os.DirFS(folder))
		if err != nil {
			continue
		}
		inputs, err := c.Examples()
		if err != nil {
			t.Fatal(err)
		}
		inputs["no values"] = map[string]any{}
		for name, values := range inputs {
			want, wantErr := renderByHelm(c, maps.Clone(values))
			got, err := renderByPackage(t, renderer, c, maps.Clone(values))
			if !cmp.Equal(errorText(wantErr), errorText(err)) {
				t.Errorf("%s with %s: got error %v, want Helm's %v", folder, name, err, wantErr)
			}
			if wantErr != nil {
				continue
			}
			fixed, err := renderByHelm(&Chart{chart: written(c.chart, c.Name(), got)}, maps.Clone(values))
			if diff := cmp.Diff(withoutPartials(got), fixed); err != nil || diff != "" {
				t.Errorf("%s with %s: Helm changes the rendered files (-before +after): %v\n%s", folder, name, err, diff)
			}
			again := want
			if !maps.Equal(want, got) {
				// Some files contain passwords that differ in each render.
				again, _ = renderByHelm(c, maps.Clone(values))
			}
			for file := range want {
				if want[file] != again[file] {
					continue
				}
				compared++
				if diff := cmp.Diff(want[file], got[file]); diff != "" {
					t.Errorf("%s with %s (-Helm +package render):\n%s", file, name, diff)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s with %s: got %d files, want Helm's %d", folder, name, len(got), len(want))
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d files were compared", compared)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	if engine.Major == 4 {
		// Helm 4 formats the errors of templates.
		return unformatted.Replace(err.Error())
	}
	return err.Error()
}

var unformatted = strings.NewReplacer("template: ", "", "\n", "", " ", "", ":", "")

func withoutPartials(files map[string]string) map[string]string {
	left := map[string]string{}
	for name, text := range files {
		if filepath.Base(name)[0] != '_' {
			left[name] = text
		}
	}
	return left
}

// BenchmarkRender compares Helm's engine with package render. An action uses both.
func BenchmarkRender(b *testing.B) {
	for _, name := range []string{"podset", "database"} {
		c, err := LoadDir(os.DirFS("../../charts/" + name))
		if err != nil {
			continue
		}
		b.Run(name+"/helm", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := renderByHelm(c, map[string]any{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		renderer := render.New(patient())
		b.Run(name+"/ours", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := renderByPackage(b, renderer, c, map[string]any{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/both", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				in, err := c.Prepare(map[string]any{}, values.Numbers{})
				if err != nil {
					b.Fatal(err)
				}
				fixed, err := c.ExecuteTemplates(b.Context(), in, renderer, webRelease, engine.DefaultCapabilities, render.Options{})
				if err != nil {
					b.Fatal(err)
				}
				top, err := engine.ToRenderValuesWithSchemaValidation(fixed, nil, webRelease, engine.DefaultCapabilities, true)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := engine.Render(fixed, top); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// snippets are templates that another engine could easily render differently from Helm.
var snippets = []string{
	`{{ .Values.missing }}{{ .Values.map.missing }}{{ .Values.null }}|{{ .Values.list }}|{{ .Values.map }}|{{ .Values.number }}|{{ .Values.float }}|{{ .Values.yes }}`,
	`{{ .Values.missing.more }}`, `{{ index .Values.list 7 }}`, `{{ .Values.map | get "a" }}`, `{{ nonsense }}`, `{{ if }}`, `{{ "a" | nindent -1 }}`,
	`{{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.APIVersions.Has "v1" }} {{ .Capabilities.HelmVersion }}`,
	`{{ semver "1.2.3" }} {{ (semver "1.2.3").Major }} {{ $v := semver "1.2.3" }}{{ $v }}`,
	`{{ .Release.Name }} {{ .Release.Namespace }} {{ .Release.Revision }} {{ .Release.IsInstall }} {{ .Release.IsUpgrade }} {{ .Release.Service }} {{ .Release }}`,
	`{{ .Chart.Name }} {{ .Chart.Version }} {{ .Chart.IsRoot }} {{ .Template.Name }} {{ .Template.BasePath }}`,
	`{{ .Files.Get "files/a.txt" }} {{ (.Files.Glob "files/*").AsConfig }} {{ .Files.Lines "files/a.txt" }} {{ .Files.Get "none" }}`,
	`{{ fail "not like this" }}`, `{{ required "it is needed" .Values.missing }}`, `{{ required "it is needed" .Values.number }}`,
	`{{ define "fails" }}{{ fail "deep down" }}{{ end }}{{ include "fails" . }}`, `{{ tpl "{{ fail .Values.text }}" . }}`,
	`{{ tpl .Values.text . }} {{ tpl "{{ .Values.number }} {{ .Values.missing }}" . }} {{ tpl "" . }} {{ tpl "<no value>" . }} {{ tpl "{{ broken" . }}`,
	`{{ tpl "{{ define \"x\" }}from tpl{{ end }}{{ include \"x\" . }}" . }} {{ define "x" }}outer{{ end }}{{ include "x" . }} {{ template "x" . }}`,
	`{{ tpl "{{ tpl .Values.template . }} {{ include \"small.name\" . }}" . }} {{ tpl "{{ .Values.nothing.more }}" . }}`,
	`{{ block "b" .Values.map }}{{ .a }}{{ end }} {{ template "none" }}`, `{{ include "none" . }}`,
	`{{ range $i, $x := .Values.list }}{{ if eq $i 1 }}{{ continue }}{{ end }}{{ $x }},{{ else }}none{{ end }}{{ range .Values.map }}{{ break }}{{ end }}{{ range .Values.missing }}{{ else }}none{{ end }}`,
	"a\n{{- /* a comment */ -}}\n b {{- 1 }} {{ 2 -}} \n c {{ with .Values.missing }}x{{ else with .Values.map }}{{ .a }}{{ else }}y{{ end }}{{ if false }}{{ else if true }}z{{ end }}",
	`{{ print "a" 1 2 "b" 3 nil }} {{ printf "%s %d %5.2f %v %q %05d %*d" "a" 1 1.5 .Values.map "q" 7 8 9 }} {{ println "x" }} {{ html "<a>" }} {{ js "'" }} {{ urlquery "a b" }}`,
	`{{ toYaml .Values.map }} {{ toJson .Values.list }} {{ toToml .Values.map }} {{ toYamlPretty .Values }} {{ fromYaml "a: 1" }} {{ fromJson "{" }} {{ fromJsonArray "[1]" }} {{ fromYamlArray "- 1" }} {{ fromToml "a=1" }} {{ fromYaml "a: [" }} {{ fromToml "[" }} {{ fromJsonArray "x" }} {{ fromYamlArray "{" }}`,
	`{{ quote "a\nb" 1 nil .Values.list }} {{ squote "a" nil }} {{ cat "a" 1 nil .Values.map }} {{ join "," .Values.list }} {{ toString .Values.map }} {{ toStrings .Values.list }}`,
	`{{ repeat 3 "ab" }} {{ indent 2 "a\nb" }} {{ nindent 2 "a\nb" }} {{ wrap 3 "aaaa bbb" }} {{ wrapWith 3 "\t" "aaaa bbb" }} {{ replace "a" "b" "aaa" }} {{ until 3 }} {{ until -3 }} {{ untilStep 3 9 3 }} {{ seq 3 }} {{ seq 1 2 9 }} {{ seq -2 2 }}`,
	`{{ regexReplaceAll "a(b)" "ab ab" "$1-" }} {{ regexReplaceAllLiteral "a" "aa" "$1" }} {{ regexFindAll "a." "ab ac" -1 }} {{ regexSplit "," "a,b" -1 }} {{ regexMatch "a" "b" }} {{ regexFind "b" "abc" }} {{ mustRegexReplaceAll "(" "a" "b" }}`,
	`{{ split "," "a,b" }} {{ splitn "," 2 "a,b,c" }} {{ splitList "," "a,b" }} {{ sortAlpha .Values.list }} {{ uniq (list 1 1 2) }} {{ without (list 1 2) 1 }} {{ has 1 (list 1) }} {{ concat (list 1) (list 2) }} {{ deepEqual .Values.map .Values.map }}`,
	`{{ $d := dict "a" 1 }}{{ $_ := set $d "b" (deepCopy .Values.map) }}{{ merge $d (dict "c" 3) }} {{ mergeOverwrite $d (dict "a" 4) }} {{ mustMerge (dict) $d }} {{ dig "a" "x" .Values.map }} {{ dig "a" "x" .Values }}`,
	`{{ default "x" .Values.missing }} {{ coalesce nil "" "y" }} {{ ternary 1 2 true }} {{ empty .Values.map }} {{ kindOf .Values.number }} {{ typeOf .Values }} {{ get .Values.map "a" }} {{ keys .Values.map | sortAlpha }} {{ pick .Values.map "a" }} {{ first .Values.list }} {{ slice .Values.list 1 }} {{ index .Values.list 0 }} {{ len .Values.list }}`,
	`{{ (lookup "v1" "Pod" "a" "b") }} {{ getHostByName "localhost" }}`, `{{ env "HOME" }}`,
	`{{ trunc 2 "abc" }} {{ b64enc "a" }} {{ sha256sum "a" }} {{ add 1 2 }} {{ mul 2 3 }} {{ round 1.5 0 }} {{ int "7" }} {{ ceil 1.1 }} {{ date "2006" (toDate "2006-01-02" "2020-01-01") }} {{ semverCompare ">=1" "1.2.3" }} {{ snakecase "aB" }} {{ .Values.map.a | default 1 | toString | quote }}`,
	`{{"{{"}} .Values.x }} {{ "{{ a }}" }}`, `{{{ "x" }}}`,
	`{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }} {{ (dict "a" 1).a }} {{ not true }} {{ and 1 0 }} {{ or 0 "" "z" }} {{ eq 1 1 2 }} {{ lt 1 2 }}`,
	`{{ .Subcharts.inner.Values }} {{ .Subcharts.inner.Chart.Name }} {{ .Values.inner }} {{ .Values.global }}`,
}

// Helm and package render must return the same output or the same error.
func TestRender_SnippetsMatchHelm(t *testing.T) {
	folder := small().with("files/a.txt", "one\ntwo\n").
		with("Chart.yaml", small()["Chart.yaml"]+"dependencies: [{name: child, alias: inner, version: '1', repository: ''}, {name: lib, version: '1', repository: ''}, {name: away, version: '1', repository: '', condition: away.use}]\n").
		with("charts/child/Chart.yaml", "apiVersion: v2\nname: child\nversion: '1'\n").
		with("charts/child/values.yaml", "own: 1\n").
		with("charts/child/templates/x.yaml", "{{ .Values.own }} {{ .Values.global }} {{ .Chart.Name }} {{ .Template.Name }} {{ .Release.Name }} {{ .Files.Get \"f\" }} {{ include \"small.name\" . }} {{ include \"lib.it\" . }} {{ .Chart.IsRoot }}").
		with("charts/child/f", "content").
		with("charts/lib/Chart.yaml", "apiVersion: v2\nname: lib\nversion: '1'\ntype: library\n").
		with("charts/lib/templates/_it.tpl", `{{ define "lib.it" }}it{{ end }}{{ define "small.name" }}not this one{{ end }}`).
		with("charts/lib/templates/not.yaml", "{{ nonsense }}").
		with("charts/away/Chart.yaml", "apiVersion: v2\nname: away\nversion: '1'\n").
		with("charts/away/values.yaml", "use: false\n").
		with("charts/away/templates/x.yaml", "{{ fail \"the subchart is disabled\" }}")
	values := map[string]any{
		"map": map[string]any{"a": "1", "b": map[string]any{"c": []any{int64(1), nil, "x"}}}, "list": []any{"b", "a", "c"},
		"number": int64(7), "float": 1.25, "yes": true, "null": nil, "text": "plain", "template": "{{ .Values.number }}", "global": map[string]any{"g": "G"},
	}
	renderer := render.New(patient())
	failed := 0
	for _, snippet := range snippets {
		c := &Chart{chart: folder.with("templates/snippet.yaml", snippet).unchecked(t)}
		want, wantErr := renderByHelm(c, maps.Clone(values))
		got, err := renderByPackage(t, renderer, c, maps.Clone(values))
		if diff := cmp.Diff(errorText(wantErr), errorText(err)); diff != "" {
			t.Errorf("%s\nerror (-Helm +package render):\n%s", snippet, diff)
		}
		if wantErr != nil {
			failed++
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n(-Helm +package render):\n%s", snippet, diff)
		}
		fixed, err := renderByHelm(&Chart{chart: written(c.chart, "small", got)}, maps.Clone(values))
		if diff := cmp.Diff(got, fixed); err != nil || diff != "" {
			t.Errorf("%s: Helm changes the rendered files (-before +after): %v\n%s", snippet, err, diff)
		}
	}
	if failed < 5 || failed > len(snippets)/2 {
		t.Errorf("%d of %d snippets fail, want between 5 and half of them", failed, len(snippets))
	}
}

// unchecked loads a chart without parsing its templates.
func (f files) unchecked(t testing.TB) *engine.Chart {
	t.Helper()
	var buffered []*engine.BufferedFile
	for name, content := range f {
		buffered = append(buffered, &engine.BufferedFile{Name: name, Data: []byte(content)})
	}
	loaded, err := engine.LoadFiles(buffered)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}
