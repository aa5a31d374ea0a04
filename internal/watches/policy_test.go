package watches_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/watches"
)

// refusal is an entry with something wrong in it.
type refusal struct {
	name string
	// text begins on line 4 of the file.
	text []string
	// want holds the beginnings of the problems, in order.
	want []string
}

func (test refusal) run(t *testing.T) {
	file := append([]string{"version: v1", "kind: A", "chart: a"}, test.text...)
	_, err := watches.Parse("watches.yaml", []byte("- "+strings.Join(file, "\n  ")+"\n"))
	expectProblems(t, err, test.want)
}

func TestPolicies_RejectedValues(t *testing.T) {
	const drift, ignore = "drift:", "drift: {ignore: "
	for _, test := range []refusal{
		{"a drift mode", []string{drift, "  mode: Fix"}, []string{`watches.yaml:4: drift.mode is "Fix": expected one of [Repair Warn Disabled]`}},
		{"a drift mode in other case", []string{"drift: {mode: repair}"}, []string{`watches.yaml:4: drift.mode is "repair": expected one of`}},
		{"an unknown key of drift", []string{drift, "  modus: Warn"}, []string{`watches.yaml:5: drift: unknown field "modus"`}},
		{"a lookup scope", []string{"maxHistory: 3", "allow: {lookup: some}"}, []string{`watches.yaml:5: allow.lookup is "some": expected one of [none own all]`}},
		{"system namespaces that are no names", []string{"allow: {systemNamespaces: [kube-system, kube-*]}"}, []string{`watches.yaml:4: allow.systemNamespaces: "kube-*" is not the name of a namespace`}},
		{"a wrong type in allow", []string{"allow: {clusterScoped: ClusterRole}"}, []string{"watches.yaml:4: allow.clusterScoped: expected a list, found a string"}},
		{"what becomes of objects of hooks", []string{"uninstall: {hookObjects: Leave, hookSecrets: delete}"}, []string{
			`watches.yaml:4: uninstall.hookObjects is "Leave": expected one of [Delete Keep]`,
			`watches.yaml:4: uninstall.hookSecrets is "delete": expected one of [Delete Keep]`,
		}},
		{"Secrets of hooks deleted where nothing is", []string{"uninstall: {hookObjects: Keep, hookSecrets: Delete}"}, []string{
			"watches.yaml:4: uninstall.hookSecrets is Delete and uninstall.hookObjects is Keep",
		}},
		{"a guard", []string{"guard: {mode: On, kinds: [Secret, example.com/, a/b/c]}", "approval: Sometimes"}, []string{
			`watches.yaml:4: guard.mode is "On": expected one of [Enforce Warn Off]`,
			`watches.yaml:4: guard.kinds[1] is "example.com/": expected <apiGroup>/<kind>`,
			`watches.yaml:4: guard.kinds[2] is "a/b/c": expected <apiGroup>/<kind>`,
			`watches.yaml:5: approval is "Sometimes": expected one of [Never Data Always]`,
		}},
		{"a crds policy", []string{"crds: Update"}, []string{`watches.yaml:4: crds is "Update": expected one of [Create Replace Skip]`}},
		{"a scope", []string{"scope: Global"}, []string{`watches.yaml:4: scope is "Global": expected one of [Namespaced Cluster]`}},
		{"a cluster scope without a namespace", []string{"maxHistory: 3", "scope: Cluster"}, []string{"watches.yaml:5: scope is Cluster, which requires releaseNamespace: add it"}},
		{"an ignored apiVersion", []string{ignore + "[{apiVersion: a/b/c, paths: [/spec]}]}"}, []string{"watches.yaml:4: drift.ignore[0].apiVersion: unexpected GroupVersion string: a/b/c"}},
		{"no paths", []string{ignore + "[{kind: Deployment, paths: [/spec]}, {kind: Service}]}"}, []string{"watches.yaml:4: drift.ignore[1] has no paths: add JSON pointers"}},
		{"invalid paths", []string{ignore + `[{paths: [spec.replicas, "", /, /spec]}]}`}, []string{
			`watches.yaml:4: drift.ignore[0].paths: "spec.replicas" is not a JSON pointer`,
			`watches.yaml:4: drift.ignore[0].paths: "" is not a JSON pointer`,
			`watches.yaml:4: drift.ignore[0].paths: "/" is not a JSON pointer`,
		}},
		{"paths into lists", []string{ignore + "[{paths: [/spec/ports/0/port, /spec//a, /spec/]}]}"}, []string{
			`watches.yaml:4: drift.ignore[0].paths: "/spec//a" is not a JSON pointer`,
			`watches.yaml:4: drift.ignore[0].paths: "/spec/" is not a JSON pointer`,
		}},
		{"a namespace to make that is there", []string{"createNamespace: true"}, []string{"watches.yaml:4: createNamespace requires releaseNamespace"}},
		{"a list for a boolean", []string{"releaseNamespace: a", "createNamespace: [1]"}, []string{"watches.yaml:5: createNamespace: expected true, false or a template, found [1]"}},
		{"all at once", []string{"scope: a", "crds: b", "allow: {lookup: c}", "drift: {mode: d}"}, []string{
			"watches.yaml:4: scope is", "watches.yaml:5: crds is", "watches.yaml:6: allow.lookup is", "watches.yaml:7: drift.mode is",
		}},
	} {
		t.Run(test.name, test.run)
	}
}

func TestPolicies_AcceptedValues(t *testing.T) {
	got, err := watches.Parse("watches.yaml", []byte(lines(
		"- version: v1",
		"  kind: A",
		"  chart: a",
		"  scope: Cluster",
		"  releaseNamespace: '{{ .spec.targetNamespace }}'",
		"  createNamespace: true",
		"  serviceAccountName: deployer",
		"  crds: Skip",
		"  allow: {otherNamespaces: true, clusterScoped: [ClusterRole.rbac.authorization.k8s.io], lookup: all}",
		"  drift:",
		"    mode: Warn",
		"    ignore:",
		"    - {apiVersion: apps/v1, kind: Deployment, name: web, paths: [/spec/replicas, /metadata/annotations/example.com~1a]}",
		"    - {paths: [/spec/v1]}",
	)))
	if err != nil {
		t.Fatal(err)
	}
	want := watches.Watch{
		Version: "v1", Kind: "A", Chart: "a",
		Scope: watches.ScopeCluster, ReleaseNamespace: "{{ .spec.targetNamespace }}", CreateNamespace: "true", ServiceAccountName: "deployer", CRDs: watches.CRDsSkip,
		Allow: watches.Allow{OtherNamespaces: true, ClusterScoped: []string{"ClusterRole.rbac.authorization.k8s.io"}, Lookup: watches.LookupAll},
		Drift: watches.Drift{Mode: watches.DriftWarn, Ignore: []watches.DriftIgnore{
			{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Paths: []string{"/spec/replicas", "/metadata/annotations/example.com~1a"}},
			{Paths: []string{"/spec/v1"}},
		}},
		File: "watches.yaml", Line: 1, Lines: got[0].Lines,
	}
	if diff := cmp.Diff([]watches.Watch{want}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDriftMode(t *testing.T) {
	for _, test := range []struct {
		watch *bool
		mode  watches.DriftMode
		want  watches.DriftMode
	}{
		{nil, "", watches.DriftRepair},
		{nil, watches.DriftRepair, watches.DriftRepair},
		{nil, watches.DriftWarn, watches.DriftWarn},
		{nil, watches.DriftDisabled, watches.DriftDisabled},
		{new(true), "", watches.DriftRepair},
		{new(true), watches.DriftWarn, watches.DriftWarn},
		{new(true), watches.DriftDisabled, watches.DriftDisabled},
		{new(false), "", watches.DriftDisabled},
		{new(false), watches.DriftRepair, watches.DriftDisabled},
	} {
		w := watches.Watch{WatchDependentResources: test.watch, Drift: watches.Drift{Mode: test.mode}}
		if got := w.DriftMode(); got != test.want {
			t.Errorf("%v, %q: %q, want %q", test.watch, test.mode, got, test.want)
		}
	}
}
