package permissions_test

import (
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/chart/permissions"
)

func TestDerive_Unresolved(t *testing.T) {
	role := object("rbac.authorization.k8s.io/v1", "ClusterRole")
	binding := object("rbac.authorization.k8s.io/v1", "RoleBinding") + "subjects: []\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "
	for _, test := range []struct {
		name  string
		chart files
		entry []string
		o     permissions.Options
		// where and what are the only Unresolved; what is a prefix.
		where, what string
	}{
		{
			name:  "objects in values",
			chart: files{"values.yaml": "extra: []\n", "templates/a.yaml": "{{- range .Values.extra }}\n---\n{{ toYaml . }}\n{{- end }}"},
			where: "chart shop: templates/a.yaml:3", what: "the output of {{ toYaml . }} depends on the values: declare its objects by the key rbac of the watches entry, with template: templates/a.yaml",
		},
		{
			name:  "objects in values, with an example",
			chart: files{"templates/a.yaml": "{{ tpl (.Values.extra | default \"\") . }}", "ci/a-values.yaml": "extra: \"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\"\n"},
			where: "chart shop: templates/a.yaml:1", what: "the output of {{ tpl",
		},
		{
			name:  "an object in a file",
			chart: files{"files/a.yaml": "kind: ConfigMap\n", "templates/a.yaml": "a: b\n---\n\n{{ .Files.Get \"files/a.yaml\" }}"},
			where: "chart shop: templates/a.yaml:4", what: "the output of {{ .Files.Get",
		},
		{
			name:  "a kind from values",
			chart: files{"values.yaml": "kind: ConfigMap\n", "templates/a.yaml": object("v1", "{{ .Values.kind }}")},
			where: "chart shop: templates/a.yaml:2", what: `the kind of the object is "{{…}}"`,
		},
		{
			name:  "a group from values",
			chart: files{"templates/a.yaml": "{{ with .Values.api }}\n" + object("{{ . }}", "Widget") + "{{ end }}"},
			where: "chart shop: templates/a.yaml:3", what: "the group of Widget depends on the values",
		},
		{
			name:  "a kind from an argument of a helper",
			chart: files{"templates/_a.tpl": "{{ define \"a\" }}\n" + object("v1", "{{ .kind }}") + "{{ end }}", "templates/a.yaml": `{{ include "a" (dict "kind" .Values.kind) }}`},
			where: "chart shop: templates/_a.tpl:3", what: "the kind of the object is",
		},
		{
			name:  "a helper from values",
			chart: files{"templates/a.yaml": `{{ with .Values.helper }}{{ include . $ }}{{ end }}`},
			where: "chart shop: templates/a.yaml:1", what: "the output of {{ with .Values.helper }}{{ include . $ }}{{ end }} depends on the values",
		},
		{
			name:  "a lookup of a kind from values",
			chart: files{"templates/a.yaml": "\n{{ with .Values.kind }}{{ $a := lookup \"v1\" . \"a\" \"b\" }}{{ end }}"},
			where: "chart shop: templates/a.yaml:2", what: "the resource of the lookup depends on the values: declare it by the key rbac of the watches entry, with template: templates/a.yaml and verbs: [get, list]",
		},
		{
			name:  "a role that no values render",
			chart: files{"templates/a.yaml": "{{ if and .Values.never .Values.nowhere }}\n" + role + "{{ end }}"},
			where: "chart shop: templates/a.yaml:3", what: "none of the tested values render this ClusterRole, so its rules are unknown: add a file ci/*-values.yaml",
		},
		{
			name:  "a role with a wildcard",
			chart: files{"templates/a.yaml": role + "rules: [{apiGroups: [shop.test], resources: ['*'], verbs: [get]}]\n"},
			where: "chart shop: templates/a.yaml", what: "ClusterRole <release> grants a wildcard, for which the operator needs the same rule: declare the rule",
		},
		{
			name:  "an aggregated role",
			chart: files{"templates/a.yaml": role + "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\nrules: []\n"},
			where: "chart shop: templates/a.yaml", what: "to create an aggregated ClusterRole, the operator needs all permissions or the verb escalate on clusterroles: declare this",
		},
		{
			name:  "a binding to a role from values",
			chart: files{"values.yaml": "role: view\n", "templates/a.yaml": binding + "{{ .Values.role }}}\n"},
			where: "chart shop: templates/a.yaml", what: "it binds ClusterRole view, which the chart does not render and which values may select: declare the verb bind on it",
		},
		{
			name:  "a cluster-scoped object for a Role",
			chart: files{"templates/a.yaml": object("v1", "Namespace")}, o: permissions.Options{Namespaced: true},
			where: "chart shop: templates/a.yaml", what: "Namespace is cluster-scoped, which no Role can allow: disable it in the chart's values",
		},
		{
			name:  "crds/ for a Role",
			chart: files{"crds/a.yaml": crd("Widget", "widgets", "Namespaced")}, o: permissions.Options{Namespaced: true},
			where: "chart shop: crds/a.yaml", what: "CRDs are cluster-scoped, which no Role can allow: install them manually, and set crds: Skip",
		},
		{
			name:  "objects of a cluster-scoped kind of the chart for a Role",
			chart: files{"crds/a.yaml": crd("Widget", "widgets", "Cluster"), "templates/a.yaml": object("shop.test/v1", "Widget")}, o: permissions.Options{Namespaced: true}, entry: []string{"crds: Skip"},
			where: "chart shop: templates/a.yaml", what: "Widget is cluster-scoped",
		},
		{
			name:  "a lookup of a cluster-scoped kind for a Role",
			chart: files{"templates/a.yaml": `{{ $a := lookup "v1" "Node" "" "" }}`}, o: permissions.Options{Namespaced: true}, entry: []string{"allow: {lookup: all}"},
			where: "chart shop: templates/a.yaml:1", what: "Node is cluster-scoped",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			kind := kindOf(t, test.chart, test.entry...)
			found := derive(t, test.o, kind).Unresolved
			if len(found) != 1 {
				t.Fatalf("%d unresolved lines, want 1: %v", len(found), found)
			}
			if u := found[0]; u.Kind != "Shop" || u.Where != test.where || !strings.HasPrefix(u.What, test.what) {
				t.Errorf("%+v\nwant %s: %s", u, test.where, test.what)
			}
			// The key rbac resolves the line.
			template, _, _ := strings.Cut(strings.TrimPrefix(test.where, "chart shop: "), ":")
			if template == "templates/_a.tpl" {
				template = "templates/a.yaml"
			}
			settled := kindOf(t, test.chart, append(test.entry, "rbac: [{template: "+template+"}]")...)
			if left := derive(t, test.o, settled).Unresolved; len(left) > 0 {
				t.Errorf("unresolved despite the key rbac: %v", left)
			}
			other := kindOf(t, test.chart, append(test.entry, "rbac: [{template: templates/other.yaml}]")...)
			if left := derive(t, test.o, other).Unresolved; len(left) != 1 {
				t.Errorf("resolved by a rule for another template: %v", left)
			}
		})
	}
}

// TestDerive_DependsOn expects the entry in the reason of each rule.
func TestDerive_DependsOn(t *testing.T) {
	kind := kindOf(t, nil, "dependsOn: [{apiVersion: shop.example.com/v1, kind: Shop, name: a}, {apiVersion: a.test/v1, kind: Database, name: b}, {apiVersion: v1, kind: Node, name: c}]")
	whys := map[string]string{}
	report := derive(t, permissions.Options{Namespaced: true}, kind)
	for _, rule := range report.Rules {
		for _, resource := range rule.Resources {
			whys[resource] = rule.Why
		}
	}
	want := map[string]string{
		"shops":     "served kinds; patch sets the finalizer; dependsOn of Shop",
		"databases": "dependsOn of Shop (Database is not a kind of Kubernetes: its resource is assumed to be databases)",
		"nodes":     "",
	}
	for resource, why := range want {
		if whys[resource] != why {
			t.Errorf("%s: the reason is %q, want %q", resource, whys[resource], why)
		}
	}
	if found := report.Unresolved; len(found) != 1 || !strings.HasPrefix(found[0].What, "dependsOn: Node is cluster-scoped, which no Role can allow") || found[0].Where != "watches.yaml:1" {
		t.Errorf("unresolved: %v", found)
	}
}

func TestDerive_ClusterScopedKindWithRole(t *testing.T) {
	kind := kindOf(t, nil, "scope: Cluster", "releaseNamespace: shop")
	report := derive(t, permissions.Options{Namespaced: true}, kind)
	if len(report.Unresolved) != 1 || report.Unresolved[0].Where != "watches.yaml:1" || !strings.HasPrefix(report.Unresolved[0].What, "the kind is cluster-scoped") {
		t.Errorf("%v", report.Unresolved)
	}
	for _, rule := range report.Rules {
		if rule.APIGroups[0] == "shop.example.com" {
			t.Errorf("a Role allows %v", rule)
		}
	}
}
