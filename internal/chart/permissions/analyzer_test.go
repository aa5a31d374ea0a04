package permissions_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// store counts the results that analyses add. It is for one goroutine at a time.
type store struct {
	data map[string][]byte
	puts int
}

func (s *store) Get(key string) ([]byte, bool) { data, ok := s.data[key]; return data, ok }

func (s *store) Put(key string, data []byte) {
	s.puts++
	s.data[key] = data
}

// analyzed is a chart with everything that facts contain.
var analyzed = files{
	"values.yaml": "ingress: {enabled: false}\n",
	"crds/shop.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: carts.shop.io}\n" +
		"spec: {group: shop.io, scope: Cluster, names: {kind: Cart, plural: carts}}\n",
	"templates/a.yaml":    object("v1", "ConfigMap") + "---\n" + object("shop.io/v1", "Cart"),
	"templates/b.yaml":    "{{ if .Values.ingress.enabled }}\n" + object("networking.k8s.io/v1", "Ingress") + "{{ end }}",
	"templates/hook.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n  annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-output-log-policy: hook-failed}\n",
	"templates/role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: reader}\n" +
		"rules:\n- {apiGroups: [\"\"], resources: [endpoints], verbs: [get]}\n---\n" +
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: reader}\nroleRef: {kind: ClusterRole, name: view}\n",
	"templates/never.yaml": "{{ if .Values.never }}\n" + object("batch/v1", "CronJob") + "{{ end }}{{ lookup \"v1\" \"Pod\" \"a\" .Values.pod }}\n{{ tpl .Values.text . }}",
}

// The rules are the same whether the facts come from an analysis, from memory or from the
// store, and an unchanged chart is analyzed once.
func TestAnalyzer_ReusesResults(t *testing.T) {
	kept := &store{data: map[string][]byte{}}
	analyzer := &permissions.Analyzer{Store: kept}
	want := derive(t, permissions.Options{}, kindOf(t, analyzed))
	if len(want.Rules) < 5 || len(want.Unresolved) == 0 {
		t.Fatalf("the chart covers too little: %v", want)
	}
	same := func(what string, analyzer *permissions.Analyzer, puts int, kind catalog.Kind) {
		t.Helper()
		got := derive(t, permissions.Options{Analyzer: analyzer}, kind)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(permissions.Report{})); diff != "" {
			t.Errorf("%s: rules (-analyzed +got):\n%s", what, diff)
		}
		if kept.puts != puts {
			t.Errorf("%s: got %d analyses, want %d", what, kept.puts, puts)
		}
	}
	same("an analysis", analyzer, 1, kindOf(t, analyzed))
	same("memory", analyzer, 1, kindOf(t, analyzed))
	same("the store", &permissions.Analyzer{Store: kept}, 1, kindOf(t, analyzed))
	same("no store", &permissions.Analyzer{}, 1, kindOf(t, analyzed))
	for key := range kept.data {
		kept.data[key] = []byte("damaged")
	}
	same("a damaged result", &permissions.Analyzer{Store: kept}, 2, kindOf(t, analyzed))
}

// A change that rules can depend on leads to another analysis.
func TestAnalyzer_NoticesChanges(t *testing.T) {
	kept := &store{data: map[string][]byte{}}
	analyzer := &permissions.Analyzer{Store: kept}
	needed := func(chart files, entry ...string) bool {
		report := derive(t, permissions.Options{Analyzer: analyzer}, kindOf(t, chart, entry...))
		for _, rule := range report.Rules {
			if strings.Contains(strings.Join(rule.Resources, " "), "endpoints") {
				return true
			}
		}
		return false
	}
	chart := files{"templates/a.yaml": "apiVersion: v1\nkind: {{ .Values.kind | default \"ConfigMap\" }}\nmetadata: {name: a}\n"}
	if needed(chart) {
		t.Fatal("the chart needs endpoints at first")
	}
	with := func(name, text string) files {
		changed := maps.Clone(chart)
		changed[name] = text
		return changed
	}
	for what, got := range map[string]bool{
		"a template":      needed(with("templates/a.yaml", object("v1", "Endpoints"))),
		"a default":       needed(with("values.yaml", "kind: Endpoints\n")),
		"an example":      needed(with("ci/a-values.yaml", "kind: Endpoints\n")),
		"a schema":        needed(with("values.schema.json", `{"properties": {"kind": {"enum": ["Endpoints"]}}}`)),
		"an override":     needed(chart, "overrideValues: {kind: Endpoints}"),
		"the same again":  !needed(chart),
		"another version": needed(with("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 2.0.0\n")) == needed(chart),
	} {
		if !got {
			t.Errorf("the rules do not follow %s", what)
		}
	}
}
