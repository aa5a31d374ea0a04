package crd

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/catalog"
)

// outline formats a schema with path, type and description per line.
func outline(s apiextensionsv1.JSONSchemaProps, path string) []string {
	kind := s.Type
	switch {
	case s.XIntOrString:
		kind = "either"
	case kind == "":
		kind = "any"
	}
	lines := []string{strings.TrimRight(fmt.Sprintf("%s <%s> %s", path, kind, s.Description), " ")}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		lines = append(lines, outline(s.Properties[name], path+"."+name)...)
	}
	return lines
}

const inferred = `spec <object> Values of the chart. Omitted values default to those of the chart.
spec.8080 <any> Usually a string. Default: key.
spec.after <any> Usually a string. Default: word.
spec.args <any> Usually a list. Default: ["serve","--fast"].
spec.auth <any> Credentials
spec.auth.apiKey <any> Usually a string.
spec.auth.user <any> Usually a string. Default: root.
spec.base <any>
spec.base.color <any> The color. Usually a string. Default: red.
spec.big <any> Usually a number. Default: 12345678901.
spec.debug <any> Usually a boolean. Default: false.
spec.deep <any>
spec.deep.er <any> Usually a number. Default: 1.
spec.derived <any>
spec.derived.color <any> The color. Usually a string. Default: red.
spec.derived.shape <any> Usually a string. Default: round.
spec.dotted.key/x <any> Usually a string. Default: z.
spec.flag <any> Usually a string. Default: true.
spec.image <any>
spec.image.digest <any> Of the image. Usually a string. Default: sha256:0.
spec.image.pullPolicy <any> one of Always, Never. Usually a string. Default: Always.
spec.image.registry <any> Where the image comes from. Usually a string. Default: docker.io.
spec.image.repository <any> Name of the image, without its registry. Usually a string. Default: web.
spec.image.tag <any> Which one of them. Usually a string.
spec.labels <any> A map, empty by default.
spec.memory <any> Usually a string. Default: 512Mi.
spec.nothing <any> Any type.
spec.nothingYet <any> Any type.
spec.old <any> deprecated: use word. Usually a string. Default: word.
spec.password <any> Usually a string.
spec.percent <any> Usually a string. Default: 50%.
spec.ratio <any> Usually a number. Default: 0.5.
spec.replicas <any> How many pods there are. Usually a number. Default: 2.
spec.resources <any> We do not say how much, for that depends. If you do, uncomment the following lines, and remove the braces. Note: the rest is up to you. A map, empty by default.
spec.same <any>
spec.same.color <any> The color. Usually a string. Default: red.
spec.service <any> The service of the pods See https://example.com
spec.service.limits <any> Limits for the traffic. A map, empty by default.
spec.service.policy <any> Valid values: - Local - Cluster. Usually a string. Default: Local.
spec.service.port <any> Usually a number. Default: 80.
spec.service.targetPort <any> Usually a string. Default: http.
spec.service.type <any> Usually a string. Default: ClusterIP.
spec.sidecar <any>
spec.sidecar.image <any> Image of the sidecar, which stands by. Usually a string. Default: busybox.
spec.sidecar.text <any> Usually a string.
spec.template <any> Usually a string. Default: {{ .Release.Name }}-x.
spec.timeout <any> Usually a string. Default: 30s.
spec.tolerations <any> A list, empty by default.
spec.version <any> Usually a string. Default: 1.25.
spec.word <any> Usually a string. Default: plain.`

// inferredTypes is the outline for authors who write a schema.
const inferredTypes = `spec <object> Values of the chart. Omitted values default to those of the chart.
spec.8080 <string> Default: key.
spec.after <string> Default: word.
spec.args <array> Default: ["serve","--fast"].
spec.auth <object> Credentials
spec.auth.apiKey <string>
spec.auth.user <either> Integer or string. Default: root.
spec.base <object>
spec.base.color <string> The color. Default: red.
spec.big <either> Integer or string. Default: 12345678901.
spec.debug <boolean> Default: false.
spec.deep <object>
spec.deep.er <either> Integer or string. Default: 1.
spec.derived <object>
spec.derived.color <string> The color. Default: red.
spec.derived.shape <string> Default: round.
spec.dotted.key/x <string> Default: z.
spec.flag <any> Any type. Default: true.
spec.image <object>
spec.image.digest <string> Of the image. Default: sha256:0.
spec.image.pullPolicy <string> one of Always, Never. Default: Always.
spec.image.registry <string> Where the image comes from. Default: docker.io.
spec.image.repository <string> Name of the image, without its registry. Default: web.
spec.image.tag <either> Which one of them. Integer or string.
spec.labels <any> A map, empty by default.
spec.memory <either> Integer or string. Default: 512Mi.
spec.nothing <any> Any type.
spec.nothingYet <any> Any type.
spec.old <string> deprecated: use word. Default: word.
spec.password <string>
spec.percent <either> Integer or string. Default: 50%.
spec.ratio <any> Any type. Default: 0.5.
spec.replicas <either> How many pods there are. Integer or string. Default: 2.
spec.resources <any> We do not say how much, for that depends. If you do, uncomment the following lines, and remove the braces. Note: the rest is up to you. A map, empty by default.
spec.same <object>
spec.same.color <string> The color. Default: red.
spec.service <object> The service of the pods See https://example.com
spec.service.limits <any> Limits for the traffic. A map, empty by default.
spec.service.policy <string> Valid values: - Local - Cluster. Default: Local.
spec.service.port <either> Integer or string. Default: 80.
spec.service.targetPort <either> Integer or string. Default: http.
spec.service.type <string> Default: ClusterIP.
spec.sidecar <object>
spec.sidecar.image <string> Image of the sidecar, which stands by. Default: busybox.
spec.sidecar.text <string>
spec.template <string> Default: {{ .Release.Name }}-x.
spec.timeout <either> Integer or string. Default: 30s.
spec.tolerations <any> A list, empty by default.
spec.version <either> Integer or string. Default: 1.25.
spec.word <string> Default: plain.`

// shop returns a kind whose chart has no schema.
func shop(t *testing.T) catalog.Kind {
	t.Helper()
	data, err := os.ReadFile("testdata/inferred/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shop := kind(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0", "values.yaml": string(data)})
	shop.Kind = "Shop"
	return shop
}

func TestInfer_TypesAndDescriptions(t *testing.T) {
	shop := shop(t)
	root := generate(t, shop).Spec.Versions[0].Schema.OpenAPIV3Schema
	defaults, err := shop.Chart.Values()
	if err != nil {
		t.Fatal(err)
	}
	typed, err := inferChart(shop.Chart, defaults, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what, want string
		spec       apiextensionsv1.JSONSchemaProps
	}{{"CRD", inferred, root.Properties["spec"]}, {"schema", inferredTypes, typed}} {
		if diff := cmp.Diff(strings.Split(test.want, "\n"), outline(test.spec, "spec")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.what, diff)
		}
	}
	if len(root.Required) > 0 {
		t.Errorf("got required fields %v, want none", root.Required)
	}
	every(root.Properties["spec"], "spec", func(path string, s apiextensionsv1.JSONSchemaProps) {
		if !s.Nullable || len(s.Required) > 0 || s.Default != nil || len(s.Enum) > 0 || s.Type == "object" && !isOpen(s) {
			t.Errorf("%s rejects values: %+v", path, s)
		}
	})
}

func every(s apiextensionsv1.JSONSchemaProps, path string, check func(string, apiextensionsv1.JSONSchemaProps)) {
	check(path, s)
	for name, inner := range s.Properties {
		every(inner, path+"."+name, check)
	}
	if s.Items != nil {
		every(*s.Items.Schema, path+"[*]", check)
	}
}

func TestInfer_Subcharts(t *testing.T) {
	definition := generate(t, kind(t, map[string]string{
		"Chart.yaml": `
apiVersion: v2
name: box
version: 1.0.0
dependencies:
- {name: lid, version: 1.0.0, alias: top, tags: [lids]}
- {name: bare, version: 1.0.0}`,
		"values.yaml":            "top:\n  # By the box\n  color: red\n",
		"charts/lid/Chart.yaml":  "apiVersion: v2\nname: lid\nversion: 1.0.0",
		"charts/lid/values.yaml": "# By the lid\ncolor: blue\n# How big\nsize: 1\n",
		"charts/bare/Chart.yaml": "apiVersion: v2\nname: bare\nversion: 1.0.0",
	}))
	want := []string{
		"spec <object> " + aboutSpec,
		"spec.bare <object> Values of the subchart bare.",
		"spec.tags <any> Tags that enable or disable groups of subcharts.",
		"spec.top <object> Values of the subchart top.",
		"spec.top.color <any> By the box. Usually a string. Default: red.",
		"spec.top.size <any> How big. Usually a number. Default: 1.",
	}
	if got := outline(definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], "spec"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestInfer_LimitsSize(t *testing.T) {
	var values strings.Builder
	for i := range 2 * maxNodes {
		fmt.Fprintf(&values, "key%d: word\n", i)
	}
	spec := generate(t, kind(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: box\nversion: 1.0.0", "values.yaml": values.String()})).
		Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	typed := 0
	every(spec, "spec", func(_ string, s apiextensionsv1.JSONSchemaProps) {
		if s.Description == "Usually a string. Default: word." {
			typed++
		}
	})
	if typed != maxNodes {
		t.Errorf("got %d keys with a type, want %d", typed, maxNodes)
	}
}

// testInferred creates custom resources of a chart without a schema: with values of
// other types, undeclared keys, missing keys, null and mixed lists. The API server must
// accept all of them and store them unchanged.
func testInferred(t *testing.T, c client.Client) {
	kind := shop(t)
	definition := generate(t, kind)
	install(t, c, definition)
	defaults, err := kind.Chart.Values()
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, c, definition, "the defaults", defaults)
	roundTrip(t, c, definition, "undeclared keys", map[string]any{
		"global": map[string]any{"a": []any{nil}}, "more": map[string]any{"b": nil}, "image": map[string]any{"c": 1.5},
	})
	for seed := range uint64(100) {
		g := generator{rand.New(rand.NewPCG(2, seed))}
		roundTrip(t, c, definition, fmt.Sprintf("seed %d", seed), g.like(defaults))
		if t.Failed() {
			return
		}
	}
	for name, spec := range map[string]any{
		"a string for a boolean": map[string]any{"debug": "on"},
		"a list for an integer":  map[string]any{"replicas": []any{int64(1)}},
		"a fraction":             map[string]any{"replicas": 0.5, "deep": map[string]any{"er": 1e-8}},
		"a string for an object": map[string]any{"image": "web:1"},
		"a boolean for a string": map[string]any{"word": true},
		"a list for a string":    map[string]any{"word": []any{"--verbose", "--debug"}},
		"a map for a list":       map[string]any{"args": map[string]any{"a": int64(1)}},
		"a template for a list":  map[string]any{"args": "{{ .Values.word }}"},
	} {
		roundTrip(t, c, definition, name, spec)
	}
}

// like returns a value that users may set instead of a default.
func (g generator) like(value any) any {
	if g.IntN(10) == 0 {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			return g.value(2)
		}
		given := map[string]any{}
		for key, inner := range v {
			if g.IntN(3) > 0 {
				given[key] = g.like(inner)
			}
		}
		g.some(func() { given["own-"+g.key()] = g.value(2) })
		return given
	case []any:
		list := []any{}
		g.some(func() { list = append(list, g.value(2)) })
		return list
	case bool:
		return g.IntN(2) == 0
	case int64:
		return g.pick(int64(0), int64(-1), int64(12345678901), "7", "50%", "{{ .Values.x }}")
	case string:
		if reflect.DeepEqual(inferText(v, location{path: "spec.word"}), anything()) {
			return g.pick(true, "false", int64(1))
		}
		return g.pick("", "a", "7", "many\nlines")
	default:
		return g.value(1)
	}
}
