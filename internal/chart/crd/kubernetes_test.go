package crd

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/landing"
	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/internal/watches"
)

// landed is a chart whose values land in fields of Kubernetes: as they are, behind a
// condition, and executed as templates.
var landed = map[string]string{
	"Chart.yaml": "apiVersion: v2\nname: box\nversion: 1.0.0\n",
	"values.yaml": `
replicas: 2
port: 80
minReady: 5
resources: {}
affinity: {}
tolerations: []
nodeSelector: {}
labels: {}
env: []
security: {enabled: true, runAsUser: 1001}
executed: {}
strategy: {}
volumes: []
`,
	"templates/deployment.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: box}
spec:
  replicas: {{ .Values.replicas }}
  {{- with .Values.minReady }}
  minReadySeconds: {{ . }}
  {{- end }}
  {{- if .Values.strategy }}
  strategy: {{- toYaml .Values.strategy | nindent 4 }}
  {{- end }}
  selector: {matchLabels: {app: box}}
  template:
    metadata:
      labels:
        app: box
        {{- with .Values.labels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- with .Values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      affinity: {{- toYaml .Values.affinity | nindent 8 }}
      tolerations: {{- toYaml .Values.tolerations | nindent 8 }}
      volumes: {{- toYaml .Values.volumes | nindent 8 }}
      containers:
      - name: box
        image: box
        env: {{- toYaml .Values.env | nindent 10 }}
        resources: {{- toYaml .Values.resources | nindent 10 }}
        {{- if .Values.security.enabled }}
        securityContext: {{- omit .Values.security "enabled" | toYaml | nindent 10 }}
        {{- end }}
        {{- with .Values.executed }}
        livenessProbe: {{- tpl (toYaml .) $ | nindent 10 }}
        {{- end }}
`,
	"templates/service.yaml": `
apiVersion: v1
kind: Service
metadata: {name: box}
spec: {ports: [{port: {{ .Values.port }}, targetPort: {{ .Values.port }}}]}
`,
}

// fieldsOfLanded holds the types of the fields of each value.
var fieldsOfLanded = map[string]reflect.Type{
	"resources": reflect.TypeFor[corev1.ResourceRequirements](), "affinity": reflect.TypeFor[corev1.Affinity](),
	"tolerations": reflect.TypeFor[[]corev1.Toleration](), "nodeSelector": reflect.TypeFor[map[string]string](),
	"labels": reflect.TypeFor[map[string]string](), "env": reflect.TypeFor[[]corev1.EnvVar](),
	"security": reflect.TypeFor[corev1.SecurityContext](), "executed": reflect.TypeFor[corev1.Probe](),
	"volumes": reflect.TypeFor[[]corev1.Volume](),
}

// testLanded creates random custom resources of the chart. If the API server refuses one, it
// also refuses an object that the chart renders from it.
func testLanded(t *testing.T, c client.Client) {
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	box := kind(t, landed)
	box.Kind = "Landed"
	definition := generate(t, box)
	install(t, c, definition)
	// Otherwise the test would find nothing.
	if !works(t, c, box.Chart, map[string]any{}) {
		t.Fatal("the API server refuses what the chart renders from its defaults")
	}
	refused, accepted := 0, 0
	for seed := range uint64(testenv.Attempts(750, 1500)) {
		g := generator{rand.New(rand.NewPCG(3, seed))}
		spec := map[string]any{}
		for range 1 + g.IntN(2) {
			key := g.pick("replicas", "port", "minReady", "strategy", "resources", "affinity", "tolerations", "nodeSelector", "labels", "env", "security", "executed", "volumes").(string)
			spec[key] = g.wrong(0)
			if field := fieldsOfLanded[key]; field != nil && g.IntN(8) > 0 {
				spec[key] = g.ofType(field, 4)
			}
		}
		err := c.Create(t.Context(), resourceOf(definition, spec), client.DryRunAll)
		switch {
		case err == nil:
			accepted++
			continue
		case !apierrors.IsInvalid(err):
			t.Fatal(err)
		}
		refused++
		if works(t, c, box.Chart, spec) {
			t.Errorf("seed %d: the API server refuses %s, but accepts what the chart renders from it: %v", seed, marshal(t, spec), err)
		}
	}
	if refused < 100 || accepted < 100 {
		t.Errorf("%d custom resources were refused and %d accepted, want at least 100", refused, accepted)
	}
	for name, spec := range map[string]map[string]any{
		"numeric text":       {"replicas": "3", "port": "8080"},
		"empty text":         {"replicas": "", "minReady": ""},
		"null":               {"replicas": nil, "resources": nil, "tolerations": nil},
		"a template":         {"executed": map[string]any{"periodSeconds": "{{ 3 }}"}},
		"empty values":       {"resources": "", "labels": "", "nodeSelector": []any{}, "strategy": false},
		"a quantity":         {"resources": map[string]any{"limits": map[string]any{"cpu": 0.5, "memory": int64(1), "more": "1Gi"}}},
		"a new field":        {"resources": map[string]any{"new": map[string]any{"a": int64(1)}}},
		"a key of the chart": {"security": map[string]any{"enabled": false}},
	} {
		roundTrip(t, c, definition, name, spec)
	}
	for name, spec := range map[string]map[string]any{
		"a word":                    {"replicas": "many"},
		"a word for a port":         {"port": "http"},
		"a text for a number":       {"security": map[string]any{"runAsUser": "root"}},
		"a text for a boolean":      {"security": map[string]any{"privileged": "yes"}},
		"a number for a map":        {"resources": map[string]any{"limits": int64(5)}},
		"a number for a text":       {"env": []any{map[string]any{"name": "A", "value": int64(1)}}},
		"a text for an item":        {"tolerations": []any{"all"}},
		"a number for a text below": {"affinity": map[string]any{"nodeAffinity": "near"}},
	} {
		rejected(t, c, definition, name, spec)
		if works(t, c, box.Chart, spec) {
			t.Errorf("%s: the API server accepts what the chart renders", name)
		}
	}
}

func resourceOf(definition *apiextensionsv1.CustomResourceDefinition, spec any) client.Object {
	return resource(definition, runtime.DeepCopyJSONValue(spec))
}

// works reports whether the API server accepts what a chart renders.
func works(t *testing.T, c client.Client, of *chart.Chart, values map[string]any) bool {
	t.Helper()
	rendered, err := of.Render(chart.Offline{Release: "box", Namespace: metav1.NamespaceDefault, Values: runtime.DeepCopyJSON(values)})
	if err != nil {
		return false
	}
	for _, o := range rendered.Objects {
		o.SetNamespace(metav1.NamespaceDefault)
		if err := c.Create(t.Context(), o.Unstructured, client.DryRunAll); err != nil {
			return false
		}
	}
	return true
}

// ofType returns a value of a Go type, with a mistake in few places.
func (g generator) ofType(t reflect.Type, depth int) any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if g.IntN(12) == 0 {
		return g.wrong(1)
	}
	switch t {
	case reflect.TypeFor[quantity.Quantity]():
		return g.pick("1", "500m", "1Gi", int64(2), 0.5)
	case reflect.TypeFor[intstr.IntOrString]():
		return g.pick(int64(80), "http", "25%")
	}
	switch t.Kind() {
	case reflect.Struct:
		object := map[string]any{}
		if depth == 0 {
			return object
		}
		for range 1 + g.IntN(3) {
			field := t.Field(g.IntN(t.NumField()))
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				object[name] = g.ofType(field.Type, depth-1)
			}
		}
		return object
	case reflect.Map:
		object := map[string]any{}
		g.some(func() { object[g.key()] = g.ofType(t.Elem(), depth-1) })
		return object
	case reflect.Slice:
		list := []any{}
		if depth > 0 {
			g.some(func() { list = append(list, g.ofType(t.Elem(), depth-1)) })
		}
		return list
	case reflect.Bool:
		return g.IntN(2) == 0
	case reflect.String:
		return g.pick("a", "Always", "")
	}
	return g.pick(int64(0), int64(1), int64(5))
}

// wrong returns a value that is wrong in most places.
func (g generator) wrong(depth int) any {
	values := []any{
		"many", "3", "", " ", "1e3", "0x10", "~", "null", "n", "Nothing", "yes", "true", "{{ 3 }}", "a: b", "- a", "[]", "{}", "'3'", "# x", "3 # x", "-1", "+5", ".5",
		int64(0), int64(3), int64(-1), 1.5, true, false, nil, []any{}, map[string]any{},
	}
	if depth < 2 {
		values = append(values, []any{g.wrong(depth + 1)}, map[string]any{g.key(): g.wrong(depth + 1)})
	}
	return values[g.IntN(len(values))]
}

// publicCharts names the folder with public charts, as in test/corpus.
const publicCharts = "CHARTWRIGHT_PUBLIC_CHARTS"

// testPublic installs the CRDs of public charts. The API server must accept the defaults and
// the examples of their authors.
func testPublic(t *testing.T, c client.Client, folder string) {
	folders, err := filepath.Glob(filepath.Join(folder, "*", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range folders {
		loaded, err := chart.LoadDir(os.DirFS(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		of := catalog.Kind{Watch: watches.Watch{Group: "public.example.com", Version: "v1", Kind: fmt.Sprintf("Public%d", i)}, Chart: loaded}
		finder := &landing.Finder{}
		definition, _, err := GenerateWith(of, finder)
		if err != nil {
			t.Fatal(err)
		}
		if size := len(marshal(t, definition)); size > 512<<10 {
			t.Errorf("%s: the CRD has %d bytes", loaded.Name(), size)
		}
		install(t, c, definition)
		defaults, err := loaded.Values()
		if err != nil {
			t.Fatal(err)
		}
		examples, err := loaded.Examples()
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range examples {
			roundTrip(t, c, definition, loaded.Name()+" "+name, values)
		}
		roundTrip(t, c, definition, loaded.Name()+" defaults", defaults)
		if len(loaded.Schema()) == 0 {
			landings, err := finder.Find(loaded)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d values land in fields of Kubernetes", loaded.Name(), len(landings))
		}
	}
}

func TestFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"One sentence":                 "One sentence",
		"Required. First. Second.":     "First.",
		"Optional: Some (e.g. a). End": "Some (e.g. a).",
		"First\nSecond":                "First",
	} {
		if got := firstSentence(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// The schema of a type describes its fields to a depth, and the size of a CRD is limited.
func TestInfer_LimitsSizeOfTypes(t *testing.T) {
	values := strings.Builder{}
	template := strings.Builder{}
	for i := range 40 {
		fmt.Fprintf(&values, "affinity%d: {}\n", i)
		fmt.Fprintf(&template, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {affinity: {{ toJson .Values.affinity%d }}}\n", i, i)
	}
	definition := generate(t, kind(t, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: box\nversion: 1.0.0\n", "values.yaml": values.String(), "templates/a.yaml": template.String(),
	}))
	if size := len(marshal(t, definition)); size > maxSpec+(64<<10) {
		t.Errorf("the CRD has %d bytes", size)
	}
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	field := spec.Properties["affinity7"]
	if len(field.Properties) != 3 || !isAnything(field.Properties["nodeAffinity"]) {
		t.Errorf("got properties %v, want three without types", field.Properties)
	}
}
