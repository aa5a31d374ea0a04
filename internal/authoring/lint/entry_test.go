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

func TestLint_AppliesEntryOfWatchesFile(t *testing.T) {
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
		{"a cluster-scoped object that is allowed", cluster, watches.Watch{Allow: watches.Allow{ClusterScoped: []string{priorities}}}, nil},
		{"a cluster-scoped object that some values enable", some, watches.Watch{}, []string{"info not-allowed templates/b.yaml:5"}},
		{"a cluster-scoped object that an override enables", some, watches.Watch{OverrideValues: map[string]string{"enabled": "true"}}, []string{"error not-allowed templates/b.yaml:5"}},
		{"an object in another namespace that is not allowed", away, watches.Watch{Allow: watches.Allow{ClusterScoped: []string{priorities}}}, []string{"error not-allowed templates/b.yaml:4"}},
		{"an object in another namespace that is allowed", away, watches.Watch{Allow: watches.Allow{OtherNamespaces: true}}, nil},
		{"a name that ignores the namespace", shared, watches.Watch{Allow: watches.Allow{ClusterScoped: []string{priorities}}}, []string{"warning cluster-name-ignores-namespace templates/b.yaml:4"}},
		{"a name that ignores the namespace, of a cluster-scoped kind", shared, watches.Watch{Scope: watches.ScopeCluster, Allow: watches.Allow{ClusterScoped: []string{priorities}}}, nil},
		{"a lookup", looks, watches.Watch{}, []string{"info lookup templates/b.yaml:1"}},
		{"a lookup, forbidden", looks, watches.Watch{Allow: watches.Allow{Lookup: watches.LookupNone}}, []string{"error lookup-elsewhere templates/b.yaml:1"}},
		{"a lookup in another namespace", looksAway, watches.Watch{}, []string{"info lookup templates/b.yaml:1", "error lookup-elsewhere templates/b.yaml:1"}},
		{"a lookup in another namespace that is allowed", looksAway, watches.Watch{Allow: watches.Allow{Lookup: watches.LookupAll}}, []string{"info lookup templates/b.yaml:1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			target := lint.Standalone("box", load(t, test.files))
			target.Standalone = false
			target.Kind.Scope, target.Kind.Allow = test.entry.Scope, test.entry.Allow
			if len(test.entry.OverrideValues) > 0 {
				target.Kind.Overrides = map[string]any{"enabled": true}
			}
			got := slices.DeleteFunc(run(t, target), func(f string) bool {
				// Not relevant here: the namespace of releases is missing.
				return strings.Contains(f, "permissions-unresolved")
			})
			if diff := cmp.Diff(slices.Sorted(slices.Values(test.want)), slices.Sorted(slices.Values(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLint_ReportsUnusableSchema uses a scale path that is not in the schema.
func TestLint_ReportsUnusableSchema(t *testing.T) {
	target := lint.Standalone("box", load(t, nil))
	target.Kind.Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.none", StatusReplicasPath: ".status.replicas"}
	if diff := cmp.Diff([]string{"error schema-unusable values.schema.json"}, run(t, target)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestText_WritesLocationsAndEachRuleOnce(t *testing.T) {
	findings, err := lint.Run(lint.Standalone("charts/box", load(t, files{"templates/b.yaml": "# {{ now }}\n# {{ now }}\n", "values.schema.json": ""})), nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := lint.Text(&text, findings); err != nil {
		t.Fatal(err)
	}
	want := `charts/box/Chart.yaml: warning: the chart has no values.schema.json [schema-missing]
charts/box/templates/b.yaml:1: warning: now returns another time in each revision [time-dependent]
charts/box/templates/b.yaml:2: warning: now returns another time in each revision [time-dependent]

schema-missing
  why: the API server cannot validate`
	if !strings.HasPrefix(text.String(), want) || strings.Count(text.String(), "\n\ntime-dependent\n  why: ") != 1 {
		t.Errorf("got\n%s\nwant\n%s…", text.String(), want)
	}
	if lint.Count(findings, lint.Warning) != 3 || lint.Count(findings, lint.Error) != 0 {
		t.Errorf("wrong counts for %v", findings)
	}
}
