package landing

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart"
)

const testValues = `
replicas: 3
port: 80
limits: {}
labels: {}
list: []
section: {count: 1, inner: {}, enabled: false}
switched: {enabled: false, count: 5}
`

// deployment returns a template of a Deployment with lines of its spec.
func deployment(lines ...string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  " + strings.Join(lines, "\n  ") + "\n"
}

// container returns a template of a Deployment with lines of its container.
func container(lines ...string) string {
	return deployment(append([]string{"template:", "  spec:", "    containers:", "    - name: a"}, indent(lines)...)...)
}

func indent(lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, "      "+line)
	}
	return all
}

// store is for one goroutine at a time.
type store map[string][]byte

func (s store) Get(key string) ([]byte, bool) { data, ok := s[key]; return data, ok }

func (s store) Put(key string, data []byte) {
	if _, twice := s[key]; twice {
		panic("the chart was analyzed twice")
	}
	s[key] = data
}

func TestFind(t *testing.T) {
	const resources = "limits: ResourceRequirements of Deployment spec.template.spec.containers.resources"
	for _, test := range []struct {
		name, template string
		want           []string
	}{
		{"a number", deployment("replicas: {{ .Values.replicas }}"), []string{"replicas: int32 of Deployment spec.replicas"}},
		{"a number that is optional", deployment("{{ with .Values.replicas }}replicas: {{ . }}{{ end }}"), []string{"replicas: int32 of Deployment spec.replicas"}},
		{"a number below a section", deployment("replicas: {{ .Values.section.count }}"), []string{"section.count: int32 of Deployment spec.replicas"}},
		{"a number that a switch enables", deployment("{{ if .Values.switched.enabled }}replicas: {{ .Values.switched.count }}{{ end }}"), []string{"switched.count: int32 of Deployment spec.replicas"}},
		{"a number in quotes", deployment("replicas: {{ .Values.replicas | quote }}"), nil},
		{"a number that accepts any text", deployment("replicas: {{ int .Values.replicas }}"), nil},
		{"a number that templates compare", deployment(`{{ if ne (toString .Values.replicas) "auto" }}replicas: {{ .Values.replicas }}{{ end }}`), nil},
		{"a number in a text, too", deployment("replicas: {{ .Values.replicas }}", "strategy: {type: \"x-{{ .Values.replicas }}\"}"), nil},
		{"a number in an argument", container(`args: ["--replicas={{ .Values.replicas }}"]`), nil},
		{"a port with a target", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: {{ .Values.port }}, targetPort: {{ .Values.port }}}]}\n", []string{"port: int32 of Service spec.ports.port"}},
		{"a port with a probe", container("livenessProbe: {httpGet: {port: {{ .Values.port }}}}", "ports: [{containerPort: {{ .Values.port }}}]"), []string{"port: int32 of Deployment spec.template.spec.containers.ports.containerPort"}},
		{"a target port", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80, targetPort: {{ .Values.port }}}]}\n", nil},
		{"a number after constants", container("ports: [{{ range untilStep 211 230 1 }}{containerPort: {{ . }}},{{ end }}]", "readinessProbe: {initialDelaySeconds: {{ .Values.replicas }}}"), []string{"replicas: int32 of Deployment spec.template.spec.containers.readinessProbe.initialDelaySeconds"}},
		{"a number that repeats", container("ports: [{{ range until (int .Values.replicas) }}{containerPort: 80},{{ end }}]"), nil},
		{"a map", container("resources: {{ toYaml .Values.limits | nindent 10 }}"), []string{resources}},
		{"a map in one line", container("resources: {{ toJson .Values.limits }}"), []string{resources}},
		{"a map that is optional", container("{{ with .Values.limits }}resources: {{ toYaml . | nindent 10 }}{{ end }}"), []string{resources}},
		{"a map that is executed", container("resources: {{ tpl (toYaml .Values.limits) $ | nindent 10 }}"), []string{resources + ", templated"}},
		{"a map below a section", container("resources: {{ toYaml .Values.section.inner | nindent 10 }}"), []string{strings.Replace(resources, "limits", "section.inner", 1)}},
		{"two maps in one", deployment("selector: {matchLabels: {{ merge (dict) .Values.labels .Values.limits | toJson }}}"), []string{"labels: map[string]string of Deployment spec.selector.matchLabels"}},
		{"a map in fields of two types", container("resources: {{ toYaml .Values.limits | nindent 10 }}", "securityContext: {{ toYaml .Values.limits | nindent 10 }}"), nil},
		{"a map in a text", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: {{ toJson .Values.limits | quote }}\n", nil},
		{"a map that becomes a list", container("env: [{{ range $name, $value := .Values.labels }}{name: {{ $name }}, value: {{ $value | quote }}},{{ end }}]"), nil},
		{"a list", deployment("template: {spec: {tolerations: {{ toJson .Values.list }}}}"), []string{"list: []v1.Toleration of Deployment spec.template.spec.tolerations"}},
		{"a list with other items", container("env: [{name: x}, {{ range .Values.list }}{{ toJson . }},{{ end }}]"), []string{"list: []v1.EnvVar of Deployment spec.template.spec.containers.env"}},
		{"a list whose items are used", container("env: [{{ range .Values.list }}{name: {{ .name }}},{{ end }}]"), nil},
		{"a kind that is not of Kubernetes", "apiVersion: shop.io/v1\nkind: Cart\nmetadata: {name: a}\nspec: {replicas: {{ .Values.replicas }}}\n", nil},
		{"a template that fails with one value", deployment("replicas: {{ .Values.replicas }}", "{{ range .Values.list }}{{ .name.first }}{{ end }}"), []string{"replicas: int32 of Deployment spec.replicas"}},
		{"templates that change values", deployment(`{{ $_ := set .Values "x" 1 }}replicas: {{ .Values.replicas }}`), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			loaded, err := chart.LoadDir(fstest.MapFS{
				"Chart.yaml":       {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
				"values.yaml":      {Data: []byte(testValues)},
				"templates/a.yaml": {Data: []byte(test.template)},
			})
			if err != nil {
				t.Fatal(err)
			}
			kept := store{}
			landings, err := (&Finder{Store: kept}).Find(loaded)
			if err != nil {
				t.Fatal(err)
			}
			again, err := (&Finder{Store: kept}).Find(loaded)
			if err != nil || !maps.Equal(again, landings) || len(kept) != 1 {
				t.Errorf("from the store: got %v, error %v; want %v", again, err, landings)
			}
			var got []string
			for _, key := range slices.Sorted(maps.Keys(landings)) {
				landing := landings[key]
				name := strings.TrimPrefix(landing.Type.String(), "v1.")
				text := strings.ReplaceAll(key, "\x00", ".") + ": " + name + " of " + landing.Field
				if landing.Templated {
					text += ", templated"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("landings (-want +got):\n%s", diff)
			}
		})
	}
}
