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

func TestLint_PrintsAllowBlockForEntryOfOperatorSDK(t *testing.T) {
	role := object("rbac.authorization.k8s.io/v1", "ClusterRole", "{{ .Release.Namespace }}-{{ .Release.Name }}")
	away := object("v1", "ConfigMap", "{{ .Release.Namespace }}-{{ .Release.Name }}", "  namespace: other")
	for _, test := range []struct {
		name  string
		files files
		want  string
	}{
		{"nothing needed", nil, "the chart needs allow: {}"},
		{"all settings", files{
			"templates/b.yaml": role + "\n---\n" + away,
			"templates/c.yaml": `{{ $a := lookup "v1" "Secret" "kube-system" "x" }}`,
		}, "the chart needs allow: {otherNamespaces: true, clusterScoped: [ClusterRole.rbac.authorization.k8s.io], lookup: all}"},
		{"an example", files{
			"values.yaml": "enabled: false\n", "ci/a-values.yaml": "enabled: true\n", "values.schema.json": "{}",
			"templates/b.yaml": "{{ if .Values.enabled }}\n" + role + "{{ end }}",
		}, "the chart needs allow: {clusterScoped: [ClusterRole.rbac.authorization.k8s.io]}"},
		{"a value that no example sets", files{
			"values.yaml": "enabled: false\n", "values.schema.json": "{}",
			"templates/b.yaml": "{{ if .Values.enabled }}\n" + role + "{{ end }}",
		}, "the chart needs allow: {}"},
		{"no example", files{
			"values.schema.json": `{"type": "object", "required": ["size", "name"]}`, "values.yaml": "size: 1\n",
		}, "the block cannot be derived"},
	} {
		t.Run(test.name, func(t *testing.T) {
			target := lint.Standalone("box", load(t, test.files))
			target.Standalone, target.Kind.Allow.Everything = false, true
			found, err := lint.Run(target, nil)
			if err != nil {
				t.Fatal(err)
			}
			found = slices.DeleteFunc(found, func(f lint.Finding) bool { return f.Rule != "allow-missing" })
			if len(found) != 1 || found[0].Severity != lint.Warning || found[0].File != "box/Chart.yaml" || !strings.Contains(found[0].Message, test.want) {
				t.Errorf("got findings %+v, want one with %q", found, test.want)
			}
		})
	}
	target := lint.Standalone("box", load(t, files{"templates/b.yaml": `{{ $c := lookup "v1" "Secret" .Values.name "x" }}`}))
	target.Standalone, target.Kind.Allow.Everything = false, true
	if got := run(t, target); !slices.Contains(got, "warning lookup-elsewhere templates/b.yaml:1") {
		t.Errorf("a lookup in a computed namespace gives %v", got)
	}
}

// memory is a store of findings.
type memory map[string][]byte

func (m memory) Get(key string) ([]byte, bool) { data, found := m[key]; return data, found }
func (m memory) Put(key string, data []byte)   { m[key] = data }

// TestLint_StoreSeparatesEntriesWithoutAllow uses two entries with the same JSON: one with
// an empty allow block, and one without.
func TestLint_StoreSeparatesEntriesWithoutAllow(t *testing.T) {
	store := memory{}
	target := lint.Standalone("box", load(t, nil))
	target.Standalone = false
	for _, everything := range []bool{true, false, true} {
		target.Kind.Allow.Everything = everything
		found, err := lint.Run(target, store)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(found, func(f lint.Finding) bool { return f.Rule == "allow-missing" }); got != everything {
			t.Errorf("everything allowed is %t: got findings %v", everything, found)
		}
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
