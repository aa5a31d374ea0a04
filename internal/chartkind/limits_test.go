package chartkind

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// entryWith parses an entry with more keys.
func entryWith(t *testing.T, keys string) watches.Watch {
	t.Helper()
	entry, err := EntryOf("a", []byte("group: shop.example.com\nversion: v1\nkind: Web\n"+keys))
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

func TestCheckGroup(t *testing.T) {
	for group, wantsError := range map[string]bool{
		"shop.example.com": false, "example.k8s.io.com": false, "notk8s.io": false, "gateway.networking.x-k8s.io": false,
		"k8s.io": true, "networking.k8s.io": true, "a.b.k8s.io": true, "kubernetes.io": true, "snapshot.storage.kubernetes.io": true,
		"chartwright.dev": true, "x.chartwright.dev": true, "apps": true, "": true,
	} {
		if err := CheckGroup(group); (err != nil) != wantsError {
			t.Errorf("%q: %v, want an error: %v", group, err, wantsError)
		} else if err != nil && !strings.HasPrefix(err.Error(), "spec.names.group: ") {
			t.Errorf("%q: %v does not name the field", group, err)
		}
	}
}

func TestParseAllow(t *testing.T) {
	got, err := ParseAllow("{otherNamespaces: true, clusterScoped: [A.b.c], lookup: all}")
	want := watches.Allow{OtherNamespaces: true, ClusterScoped: []string{"A.b.c"}, Lookup: watches.LookupAll}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err = ParseAllow("otherNamespaces: true\nlookup: none"); err != nil || !got.OtherNamespaces || got.Lookup != watches.LookupNone {
		t.Errorf("several lines: %+v, %v", got, err)
	}
	if got, err = ParseAllow(" "); err != nil || !cmp.Equal(got, watches.Allow{}) {
		t.Errorf("an empty text: %+v, %v", got, err)
	}
	for _, wrong := range []string{"everything", "{lookup: some}", "{other: true}", "{", "[]", "a: b\ntimeout: 1s"} {
		if _, err := ParseAllow(wrong); err == nil || !strings.HasPrefix(err.Error(), "--chart-kinds-allow ") {
			t.Errorf("%q: %v, want an error about the flag", wrong, err)
		}
	}
}

func TestCheckAllowed(t *testing.T) {
	for _, test := range []struct{ name, limit, entry, want string }{
		{"nothing beyond the namespace", "", "", ""},
		{"the own namespace", "", "allow: {lookup: own, takeOwnership: never}", ""},
		{"other namespaces", "", "allow: {otherNamespaces: true}", "spec.allow.otherNamespaces: resources in other namespaces are not allowed: the flag --chart-kinds-allow of the operator lacks otherNamespaces: true"},
		{"other namespaces as the flag has them", "otherNamespaces: true", "allow: {otherNamespaces: true}", ""},
		{"a cluster-scoped kind", "clusterScoped: [A.b.c]", "allow: {clusterScoped: [A.b.c, D.e.f]}", "spec.allow.clusterScoped: D.e.f is not allowed: the flag --chart-kinds-allow of the operator lacks clusterScoped: [D.e.f]"},
		{"a wider lookup", "", "allow: {lookup: all}", "spec.allow.lookup: all is not allowed: the flag --chart-kinds-allow of the operator lacks lookup: all"},
		{"a narrower lookup", "lookup: all", "allow: {lookup: none}", ""},
		{"the default lookup above the flag", "lookup: none", "", "spec.allow.lookup: own is not allowed: the flag --chart-kinds-allow of the operator lacks lookup: own"},
		{"lookup in values", "", "allow: {lookupInValues: true}", "spec.allow.lookupInValues: lookup in values is not allowed: the flag --chart-kinds-allow of the operator lacks lookupInValues: true"},
		{"taking over", "", "allow: {takeOwnership: onRequest}", "spec.allow.takeOwnership: taking over resources is not allowed: the flag --chart-kinds-allow of the operator lacks takeOwnership: onRequest"},
		{"a system namespace", "{otherNamespaces: true}", "allow: {systemNamespaces: [kube-system]}", "spec.allow.systemNamespaces: releases in the namespace kube-system are not allowed: the flag --chart-kinds-allow of the operator lacks systemNamespaces: [kube-system]"},
		{"a namespace of the release", "", "releaseNamespace: shop", "spec.releaseNamespace: releases in other namespaces are not allowed: the flag --chart-kinds-allow of the operator lacks otherNamespaces: true"},
		{"a cluster-scoped kind of its own", "", "scope: Cluster\nreleaseNamespace: '{{ .spec.a }}'", "spec.releaseNamespace: releases in other namespaces are not allowed: the flag --chart-kinds-allow of the operator lacks otherNamespaces: true"},
		{"dependencies in other namespaces", "{otherNamespaces: true}", "allow: {dependsOn: {otherNamespaces: true}}",
			"spec.allow.dependsOn.otherNamespaces: dependencies in other namespaces are not allowed: the flag --chart-kinds-allow of the operator lacks dependsOn: {otherNamespaces: true}"},
		{"dependencies in other namespaces as the flag has them", "{dependsOn: {otherNamespaces: true}}", "allow: {dependsOn: {otherNamespaces: true}}", ""},
		{"dependencies in the own namespace", "", "allow: {dependsOn: {annotation: [{apiVersion: a.b/v1, kind: A}]}}\ndependsOn: [{apiVersion: a.b/v1, kind: A, name: a}]", ""},
		{"the environment in the name of a dependency", "", "dependsOn: [{apiVersion: a.b/v1, kind: A, name: '{{ env \"TOKEN\" }}'}]",
			"spec.dependsOn[0].name: a template of a ChartKind may not read the environment or the network of the operator: remove env, expandenv and getHostByName"},
		{"the environment in the selector of a dependency", "", "dependsOn: [{apiVersion: a.b/v1, kind: A, selector: {matchLabels: {b: '{{ env \"TOKEN\" }}'}}}]",
			"spec.dependsOn[0].selector.matchLabels[b]: a template of a ChartKind may not read the environment or the network of the operator: remove env, expandenv and getHostByName"},
		{"the environment", "", "serviceAccountName: '{{ env \"TOKEN\" }}'", "spec.serviceAccountName: a template of a ChartKind may not read the environment or the network of the operator: remove env, expandenv and getHostByName"},
		{"the environment by a pipe", "", "valuesFrom: [{kind: Secret, name: '{{ \"TOKEN\" | env }}'}]", "spec.valuesFrom[0].name: a template of a ChartKind may not read the environment or the network of the operator: remove env, expandenv and getHostByName"},
		{"the environment after a brace", "", "serviceAccountName: '{{ \"}\" }}{{env \"TOKEN\" }}'", "spec.serviceAccountName: a template of a ChartKind may not read the environment or the network of the operator: remove env, expandenv and getHostByName"},
		{"a field named env", "", "serviceAccountName: '{{ .metadata.labels.env }}'", ""},
		{"several", "", "allow: {otherNamespaces: true, lookup: all}", "spec.allow.lookup: all is not allowed: the flag --chart-kinds-allow of the operator lacks lookup: all; " +
			"spec.allow.otherNamespaces: resources in other namespaces are not allowed: the flag --chart-kinds-allow of the operator lacks otherNamespaces: true"},
	} {
		t.Run(test.name, func(t *testing.T) {
			limit, err := ParseAllow(test.limit)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := CheckAllowed(limit, entryWith(t, test.entry)); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// archive packs the files of a chart.
func archive(t *testing.T, files map[string]string) *chart.Chart {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	out := tar.NewWriter(compressed)
	for name, content := range files {
		if err := out.WriteHeader(&tar.Header{Name: "web/" + name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	loaded, err := chart.LoadArchive(&packed)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

const chartFile = "apiVersion: v2\nname: web\nversion: 1.2.3\n"

// TestCheckChart: the CRDs of a chart are for the whole cluster.
func TestCheckChart(t *testing.T) {
	plain := archive(t, map[string]string{"Chart.yaml": chartFile})
	withCRD := archive(t, map[string]string{"Chart.yaml": chartFile, "crds/a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.b.c}\n"})
	allowed := watches.Allow{ClusterScoped: []string{"CustomResourceDefinition.apiextensions.k8s.io"}}
	for _, test := range []struct {
		name        string
		limit       watches.Allow
		entry       string
		chart       *chart.Chart
		wantRefusal bool
	}{
		{"a chart without CRDs", watches.Allow{}, "", plain, false},
		{"a chart with CRDs", watches.Allow{}, "", withCRD, true},
		{"CRDs that are replaced", watches.Allow{}, "crds: Replace", withCRD, true},
		{"CRDs that are skipped", watches.Allow{}, "crds: Skip", withCRD, false},
		{"CRDs that the flag allows", allowed, "", withCRD, false},
	} {
		if err := CheckChart(test.limit, entryWith(t, test.entry), test.chart); (err != nil) != test.wantRefusal {
			t.Errorf("%s: %v, want a refusal: %v", test.name, err, test.wantRefusal)
		} else if err != nil && !strings.Contains(err.Error(), "such as as.b.c") {
			t.Errorf("%s: %v does not name the CRD", test.name, err)
		}
	}
}
