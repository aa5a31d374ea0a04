package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/watches"
)

// TestEntry: what the entry in the watches file says is held against the chart.
func TestEntry(t *testing.T) {
	cluster := files{"templates/b.yaml": object("scheduling.k8s.io/v1", "PriorityClass", "{{ .Release.Namespace }}-{{ .Release.Name }}", "value: 1")}
	shared := files{"templates/b.yaml": object("scheduling.k8s.io/v1", "PriorityClass", "{{ .Release.Name }}", "value: 1")}
	away := files{"templates/b.yaml": object("v1", "ConfigMap", "{{ .Release.Namespace }}-{{ .Release.Name }}", "  namespace: other")}
	some := files{"values.yaml": "enabled: false\n", "values.schema.json": "{}", "templates/b.yaml": "{{ if .Values.enabled }}\n" + cluster["templates/b.yaml"] + "{{ end }}"}
	looks := files{"templates/b.yaml": `{{ $a := lookup "v1" "Secret" .Release.Namespace "x" }}`}
	looksAway := files{"templates/b.yaml": `{{ $a := lookup "v1" "Secret" "other" "x" }}`}
	const priorities = "PriorityClass.scheduling.k8s.io"
	for _, test := range []struct {
		name  string
		files files
		entry watches.Watch
		want  []string
	}{
		{"a cluster-scoped object that is not allowed", cluster, watches.Watch{}, []string{"error not-allowed templates/b.yaml:4"}},
		{"one that is", cluster, watches.Watch{Allow: watches.Allow{ClusterScoped: []string{priorities}}}, nil},
		{"one that some values bring", some, watches.Watch{}, []string{"info not-allowed templates/b.yaml:5"}},
		{"one that an override brings", some, watches.Watch{OverrideValues: map[string]string{"enabled": "true"}}, []string{"error not-allowed templates/b.yaml:5"}},
		{"an object elsewhere that is not allowed", away, watches.Watch{Allow: watches.Allow{ClusterScoped: []string{priorities}}}, []string{"error not-allowed templates/b.yaml:4"}},
		{"one that is", away, watches.Watch{Allow: watches.Allow{OtherNamespaces: true}}, nil},
		{"a name that ignores the namespace", shared, watches.Watch{Allow: watches.Allow{ClusterScoped: []string{priorities}}}, []string{"warning cluster-name-ignores-namespace templates/b.yaml:4"}},
		{"one of a kind that has none", shared, watches.Watch{Scope: watches.ScopeCluster, Allow: watches.Allow{ClusterScoped: []string{priorities}}}, nil},
		{"a lookup", looks, watches.Watch{}, []string{"info lookup templates/b.yaml:1"}},
		{"a lookup where none is allowed", looks, watches.Watch{Allow: watches.Allow{Lookup: watches.LookupNone}}, []string{"error lookup-elsewhere templates/b.yaml:1"}},
		{"a lookup elsewhere", looksAway, watches.Watch{}, []string{"info lookup templates/b.yaml:1", "error lookup-elsewhere templates/b.yaml:1"}},
		{"a lookup elsewhere that is allowed", looksAway, watches.Watch{Allow: watches.Allow{Lookup: watches.LookupAll}}, []string{"info lookup templates/b.yaml:1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			target := lint.Alone("box", load(t, test.files))
			target.Alone = false
			target.Kind.Scope, target.Kind.Allow = test.entry.Scope, test.entry.Allow
			if len(test.entry.OverrideValues) > 0 {
				target.Kind.Overrides = map[string]any{"enabled": true}
			}
			got := slices.DeleteFunc(run(t, target), func(f string) bool {
				// A namespace for releases is no matter here.
				return strings.Contains(f, "rights-unresolved")
			})
			if diff := cmp.Diff(slices.Sorted(slices.Values(test.want)), slices.Sorted(slices.Values(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnusableSchema is one of which no CRD can be made.
func TestUnusableSchema(t *testing.T) {
	target := lint.Alone("box", load(t, nil))
	target.Kind.Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.none", StatusReplicasPath: ".status.replicas"}
	if diff := cmp.Diff([]string{"error schema-unusable values.schema.json"}, run(t, target)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestText: places first, as compilers write them, and each rule once.
func TestText(t *testing.T) {
	findings, err := lint.Run(lint.Alone("charts/box", load(t, files{"templates/b.yaml": "# {{ now }}\n# {{ now }}\n", "values.schema.json": ""})))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := lint.Text(&text, findings); err != nil {
		t.Fatal(err)
	}
	want := `charts/box/Chart.yaml: warning: there is no values.schema.json [schema-missing]
charts/box/templates/b.yaml:1: warning: now gives another time in each revision [time-dependent]
charts/box/templates/b.yaml:2: warning: now gives another time in each revision [time-dependent]

schema-missing
  why: nothing checks`
	if !strings.HasPrefix(text.String(), want) || strings.Count(text.String(), "\n\ntime-dependent\n  why: ") != 1 {
		t.Errorf("got\n%s\nwant\n%s…", text.String(), want)
	}
	if lint.Count(findings, lint.Warning) != 3 || lint.Count(findings, lint.Error) != 0 {
		t.Errorf("counts of %v", findings)
	}
}
