package preview_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/authoring/preview"
	"github.com/chartwright/chartwright/internal/catalog"
)

// operator returns one kind. more contains additional lines of its watches entry.
func operator(t *testing.T, more string) []catalog.Kind {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"watches.yaml":            "- group: example.com\n  version: v1\n  kind: Box\n  chart: box\n" + more,
		"box/Chart.yaml":          "apiVersion: v2\nname: box\nversion: 1.0.0\n",
		"box/values.yaml":         "size: 1\nword: hello\nfree: {}\n",
		"box/templates/NOTES.txt": "size {{ .Values.size }}",
		"box/values.schema.json": `{"type": "object", "additionalProperties": false, "properties": {
			"size": {"type": "integer", "maximum": 9}, "word": {"type": "string"}, "free": {"type": "object"}, "global": {},
			"place": {"type": "string"}, "list": {"type": "array", "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}}, "role": {"type": "boolean"}},
			"if": {"properties": {"size": {"const": 7}}, "required": ["size"]}, "then": {"properties": {"word": {"minLength": 3}}}}`,
		"box/templates/a.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  {{- with .Values.place }}
  namespace: {{ . }}
  {{- end }}
data: {{ dict "size" .Values.size "word" .Values.word "free" .Values.free "in" .Release.Namespace | toJson }}
`,
		"box/templates/b.yaml": `{{ if .Values.role }}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .Release.Name }}
{{ end }}`,
		"box/templates/c.yaml": `apiVersion: v1
kind: Pod
metadata:
  name: hook
  annotations:
    helm.sh/hook: pre-install
`,
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	kinds, err := catalog.FromFS(files, "watches.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// box returns a custom resource with a spec.
func box(spec string) string {
	return "apiVersion: example.com/v1\nkind: Box\nmetadata:\n  name: web.one\nspec: " + spec + "\n"
}

func TestRender_Values(t *testing.T) {
	const (
		fromMap    = "  valuesFrom:\n  - {kind: ConfigMap, name: '{{ .metadata.name }}-values'}\n"
		fromSecret = "  valuesFrom:\n  - {kind: Secret, name: shared, key: word, targetPath: word, optional: true}\n"
		configMap  = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web.one-values}\ndata: {values.yaml: 'free: {a: [1]}'}\n"
		fromObject = "  valuesFrom:\n  - {apiVersion: example.com/v2, kind: Database, name: db, expression: 'self.status.size + 1', targetPath: size}\n"
		database   = "---\napiVersion: example.com/v2\nkind: Database\nmetadata: {name: db}\n"
		fromBox    = "  valuesFrom:\n  - {apiVersion: example.com/v1, kind: Box, name: web.one, expression: '{\"word\": self.status.word}', optional: true}\n"
		secret     = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: shared, namespace: shop}\n"
	)
	for _, test := range []struct {
		name, entry, file string
		data              string
		warnings          []string
		fails             string
	}{
		{name: "the defaults", file: box("{}"), data: `{"free":{},"in":"shop","size":1,"word":"hello"}`},
		{name: "no spec at all", file: strings.Replace(box(""), "spec: \n", "", 1), data: `{"free":{},"in":"shop","size":1,"word":"hello"}`},
		{name: "the spec, with numbers as from the API server", file: box("{size: 2.0, free: {big: 1000000}}"), data: `{"free":{"big":1000000},"in":"shop","size":2,"word":"hello"}`},
		{
			name: "an unknown field is dropped", file: box("{sise: 2, word: x}\nstatus: {a: b}"), data: `{"free":{},"in":"shop","size":1,"word":"x"}`,
			warnings: []string{"spec.sise: the CRD does not have this field: kubectl rejects it, and the API server drops it for other clients"},
		},
		{name: "a null, which removes a default", file: box("{word: null}"), data: `{"free":{},"in":"shop","size":1,"word":null}`},
		{name: "a null that the CRD does not allow", entry: "", file: box("{list: [{a: null}]}"), fails: "spec.list[0]: missing property 'a'"},
		{name: "overrides win", entry: "  overrideValues: {size: '3', word: '{{ upper \"x\" }}'}\n", file: box("{size: 2}"), data: `{"free":{},"in":"shop","size":3,"word":"X"}`},
		{name: "a ConfigMap over the spec", entry: fromMap, file: box("{free: {a: x, b: z}}") + configMap, data: `{"free":{"a":[1],"b":"z"},"in":"shop","size":1,"word":"hello"}`},
		{name: "a Secret in base64", entry: fromSecret, file: box("{}") + secret + "data: {word: c2VjcmV0}\n", data: `{"free":{},"in":"shop","size":1,"word":"secret"}`},
		{name: "a Secret in plain text, which has priority", entry: fromSecret, file: box("{}") + secret + "data: {word: c2VjcmV0}\nstringData: {word: plain}\n", data: `{"free":{},"in":"shop","size":1,"word":"plain"}`},
		{
			name: "an optional Secret that does not exist", entry: fromSecret, file: box("{}"), data: `{"free":{},"in":"shop","size":1,"word":"hello"}`,
			warnings: []string{"the optional source of values Secret shop/shared is not in the file"},
		},
		{
			name: "an optional Secret in another namespace", entry: fromSecret, file: box("{}") + strings.Replace(secret, "shop", "other", 1) + "stringData: {word: other}\n", data: `{"free":{},"in":"shop","size":1,"word":"hello"}`,
			warnings: []string{"the optional source of values Secret shop/shared is not in the file"},
		},
		{name: "a ConfigMap that does not exist", entry: fromMap, file: box("{}"), fails: "valuesFrom[0]: ConfigMap shop/web.one-values does not exist: create it with the key values.yaml; for a preview, add it to the file as a separate document"},
		{name: "a ConfigMap without the key", entry: fromMap, file: box("{}") + strings.Replace(configMap, "values.yaml", "values.yml", 1), fails: "valuesFrom[0]: ConfigMap shop/web.one-values has no key values.yaml"},
		{name: "an object of another kind", entry: fromObject, file: box("{}") + database + "status: {size: 2}\n", data: `{"free":{},"in":"shop","size":3,"word":"hello"}`},
		{name: "an object without the field", entry: fromObject, file: box("{}") + database, fails: "valuesFrom[0]: Database shop/db: the expression self.status.size + 1 has no value: no such key: status; for a preview, add it to the file as a separate document"},
		{name: "a custom resource with a status", entry: fromBox, file: box("{}\nstatus: {word: own}"), data: `{"free":{},"in":"shop","size":1,"word":"own"}`},
		{name: "a custom resource without a status", entry: fromBox, file: box("{}"), data: `{"free":{},"in":"shop","size":1,"word":"hello"}`},
		{name: "an expression over a Secret", entry: "  valuesFrom:\n  - {kind: Secret, name: shared, expression: self.data.word.upperAscii(), targetPath: word}\n", file: box("{}") + secret + "stringData: {word: plain}\n", data: `{"free":{},"in":"shop","size":1,"word":"PLAIN"}`},
		{name: "a release namespace from the spec", entry: "  releaseNamespace: '{{ .spec.place }}'\n", file: box("{place: there}"), data: `{"free":{},"in":"there","size":1,"word":"hello"}`},
		{name: "a release namespace missing in the spec", entry: "  releaseNamespace: '{{ .spec.place }}'\n", file: box("{}"), fails: "releaseNamespace: "},
		{name: "a release namespace from the status, which is not applied", entry: "  releaseNamespace: '{{ .status.place }}'\n", file: box("{}\nstatus: {place: there}"), fails: "releaseNamespace: "},
		{name: "a missing service account name", entry: "  serviceAccountName: '{{ .metadata.labels.account }}'\n", file: box("{}"), fails: "serviceAccountName: "},
		{name: "a cluster-scoped kind", entry: "  scope: Cluster\n  releaseNamespace: fixed\n", file: box("{}"), data: `{"free":{},"in":"fixed","size":1,"word":"hello"}`},
		{
			name: "labels that do not match the selector", entry: "  selector: {matchLabels: {team: a}}\n", file: box("{}"), data: `{"free":{},"in":"shop","size":1,"word":"hello"}`,
			warnings: []string{"the operator would ignore the custom resource: its labels do not match the selector of the watches entry"},
		},
		{
			name: "a version that is not served", file: strings.Replace(box("{}"), "/v1", "/v9", 1), data: `{"free":{},"in":"shop","size":1,"word":"hello"}`,
			warnings: []string{"apiVersion: version v9 is not served: want one of example.com/v1"},
		},
		{name: "a spec that the chart rejects", file: box("{size: 7, word: ab}"), fails: "the spec violates the chart's schema: spec.word: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := first(t, operator(t, test.entry), test.file, preview.Options{})
			if diff := cmp.Diff(test.warnings, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("error %v, want %s", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got.Manifest, "data: "+test.data+"\n") {
				t.Errorf("want data %s in\n%s", test.data, got.Manifest)
			}
			if got.Release != "web-one" || !strings.HasPrefix(got.Manifest, "---\n# Source: box/templates/a.yaml\n") || got.Notes == "" {
				t.Errorf("release %s, notes %q:\n%s", got.Release, got.Notes, got.Manifest)
			}
			if hooks := got.HookManifest(); !strings.HasPrefix(hooks, "---\n# Source: box/templates/c.yaml\napiVersion: v1\nkind: Pod\n") {
				t.Errorf("hooks:\n%s", hooks)
			}
		})
	}
}

// first renders the first custom resource of a file in the namespace shop.
func first(t *testing.T, kinds []catalog.Kind, text string, o preview.Options) (*preview.Preview, error) {
	t.Helper()
	file := preview.NewFile(kinds, "shop")
	if err := file.Parse("web.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	if len(file.Resources) != 1 {
		t.Fatalf("%d custom resources", len(file.Resources))
	}
	return file.Render(t.Context(), file.Resources[0], o)
}

func TestRender_Validate(t *testing.T) {
	for _, test := range []struct {
		name, entry, file string
		// fails lists the lines of the error after the first one.
		fails []string
	}{
		{name: "valid", file: box("{size: 2}")},
		{name: "wrong types", file: box("{size: many, word: 1}"), fails: []string{
			`spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`,
			`spec.word: Invalid value: "integer": spec.word in body must be of type string: "integer"`,
		}},
		{name: "a number that is too large", file: box("{size: 10}"), fails: []string{"spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9"}},
		{name: "values that only the chart rejects", file: box("{size: 7, word: ab}"), fails: []string{"the spec violates the chart's schema: spec.word: minLength: got 2, want 3"}},
		{name: "a version that is not served", file: strings.Replace(box("{}"), "/v1", "/v2", 1), fails: []string{"apiVersion: version v2 is not served: want one of example.com/v1"}},
		{name: "another served version", entry: "  versions: [{name: v1, storage: true}, {name: v2}]\n", file: strings.Replace(box("{}"), "/v1", "/v2", 1)},
		{name: "a version with served: false", entry: "  versions: [{name: v1, storage: true}, {name: v2, served: false}]\n", file: strings.Replace(box("{}"), "/v1", "/v2", 1), fails: []string{"apiVersion: version v2 is not served: want one of example.com/v1"}},
		{name: "no name", file: strings.Replace(box("{}"), "name: web.one", "labels: {}", 1), fails: []string{"metadata.name: Required value"}},
		{name: "an invalid name", file: strings.Replace(box("{}"), "web.one", "Web_1", 1), fails: []string{`metadata.name: Invalid value: "Web_1": `}},
		{name: "a namespace of a cluster-scoped kind", entry: "  scope: Cluster\n  releaseNamespace: fixed\n", file: strings.Replace(box("{}"), "name: web.one", "{name: web, namespace: shop}", 1), fails: []string{`metadata.namespace: got "shop", want none: the kind is cluster-scoped`}},
		{name: "an object in another namespace, and a cluster-scoped object", file: box("{place: there, role: true}"), fails: []string{
			"templates/b.yaml: ClusterRole web-one is cluster-scoped (allow.clusterScoped does not hold ClusterRole.rbac.authorization.k8s.io)",
			"templates/a.yaml: ConfigMap there/web-one is outside the release's namespace shop (allow.otherNamespaces is false)",
		}},
		{name: "an object in another namespace, and a cluster-scoped object, both allowed", entry: "  allow: {otherNamespaces: true, clusterScoped: [ClusterRole.rbac.authorization.k8s.io]}\n", file: box("{place: there, role: true}")},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := strings.Replace(test.file, "metadata:\n  {", "metadata: {", 1)
			_, err := first(t, operator(t, test.entry), file, preview.Options{Validate: true})
			if len(test.fails) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatalf("no error, want %q", test.fails)
			}
			for _, want := range test.fails {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error\n%v\ndoes not contain\n%s", err, want)
				}
			}
			if lines := strings.Count(err.Error(), "\n"); lines > 0 && lines != len(test.fails) {
				t.Errorf("%d lines, want %d:\n%v", lines, len(test.fails), err)
			}
		})
	}
}

func TestParse_Documents(t *testing.T) {
	kinds := operator(t, "")
	file := preview.NewFile(kinds, "shop")
	err := file.Parse("all.yaml", []byte("# nothing\n---\n"+box("{}")+"---\n"+`apiVersion: v1
kind: List
items:
- {apiVersion: example.com/v1, kind: Box, metadata: {name: two, namespace: other}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}
- {apiVersion: example.org/v1, kind: Box, metadata: {name: three}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range file.Resources {
		got = append(got, r.Place+": "+r.String())
	}
	if diff := cmp.Diff([]string{"all.yaml: document 2: Box shop/web.one", "all.yaml: document 3, item 1: Box other/two"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []string{"all.yaml: document 3, item 2: Deployment web is ignored: the watches file does not have its kind", "all.yaml: document 3, item 3: Box three is ignored: the watches file does not have its kind"}
	if diff := cmp.Diff(want, file.Others); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		"---\na: [":  "bad.yaml: document 1: line 2",
		"a: 1\na: 2": `bad.yaml: document 1: unmarshal errors:`,
		"- a":        "bad.yaml: document 1: want an object with apiVersion and kind",
		"kind: Box":  "bad.yaml: document 1: want an object with apiVersion and kind",
		box("{}") + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: plain!}": "bad.yaml: document 2: data.k: want base64; use stringData for plain text",
	} {
		if err := preview.NewFile(kinds, "shop").Parse("bad.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
