package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/authoring/lint"
)

func TestLint_ChartsAndEntries(t *testing.T) {
	dir := writeProject(t, map[string]string{
		"clean/Chart.yaml":            "apiVersion: v2\nname: clean\nversion: 1.0.0",
		"clean/values.schema.json":    `{"type": "object"}`,
		"clean/templates/a.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n",
		"warning/Chart.yaml":          "apiVersion: v2\nname: warning\nversion: 1.0.0",
		"warning/templates/_a.tpl":    "",
		"bad/Chart.yaml":              "apiVersion: v2\nname: bad\nversion: 1.0.0",
		"bad/values.schema.json":      `{"type": "object"}`,
		"bad/templates/a.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bad\n",
		"broken/Chart.yaml":           "apiVersion: v2\nname: broken",
		"cluster/Chart.yaml":          "apiVersion: v2\nname: cluster\nversion: 1.0.0",
		"cluster/values.schema.json":  `{"type": "object"}`,
		"cluster/templates/role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {{ .Release.Namespace }}-{{ .Release.Name }}\n",
		"forbid.yaml":                 "- {group: example.com, version: v1, kind: Box, chart: cluster}",
		"allow.yaml":                  "- {group: example.com, version: v1, kind: Box, chart: cluster, allow: {clusterScoped: [ClusterRole.rbac.authorization.k8s.io]}}",
		"sdk.yaml":                    "- {group: example.com, version: v1, kind: Box, chart: cluster}\n#+kubebuilder:scaffold:watch\n",
		"watches.yaml":                "- {group: example.com, version: v1, kind: Box, chart: clean}\n- {group: example.com, version: v1, kind: Bad, chart: bad}",
		"odd.yaml":                    "- {group: example.com, version: v1, kind: Box, chart: none}",
	})
	t.Chdir(dir)
	for _, test := range []struct {
		name   string
		args   []string
		code   int
		stdout []string
		stderr string
	}{
		{"no findings", []string{"clean", "--strict"}, 0, nil, ""},
		{"warning", []string{"warning"}, 0, []string{"warning/Chart.yaml: warning: the chart has no values.schema.json [schema-missing]"}, ""},
		{"warning, strict", []string{"warning", "--strict"}, 1, []string{"[schema-missing]"}, "Error: lint: errors: 0, warnings: 1\n"},
		{"error", []string{"clean", "bad"}, 1, []string{"bad/templates/a.yaml:4: error: ConfigMap bad has the same name in every release of a namespace [name-ignores-release]\n", "  why: ", "  fix: "}, "Error: lint: errors: 1, warnings: 0\n"},
		{"invalid chart", []string{"broken", "bad"}, 1, []string{"broken: error: validation: chart.metadata.version is required [helm]", "bad/templates/a.yaml:4"}, "Error: lint: errors: 2, warnings: 0\n"},
		{"missing chart", []string{"bad", "none"}, 1, nil, "Error: chart none: not found: want the folder or .tgz of a chart\n"},
		{"missing watches file", []string{"--watches-file", "none.yaml"}, 1, nil, "Error: read the watches file: open none.yaml: no such file or directory\n"},
		{"chart without an entry", []string{"cluster", "--strict"}, 0, []string{"info: ClusterRole <namespace>-<release> is cluster-scoped: an entry in watches.yaml needs ClusterRole.rbac.authorization.k8s.io in allow.clusterScoped"}, ""},
		{"entry without allow block", []string{"--watches-file", "forbid.yaml"}, 1, []string{"cluster/templates/role.yaml:4: error: "}, "Error: lint: errors: 1, warnings: 0\n"},
		{"entry with allow block", []string{"--watches-file", "allow.yaml", "--strict"}, 0, nil, ""},
		{"entry of the operator-sdk", []string{"--watches-file", "sdk.yaml"}, 0, []string{"cluster/Chart.yaml: warning: the entry of Box has no allow block: with its defaults and examples, the chart needs allow: {clusterScoped: [ClusterRole.rbac.authorization.k8s.io]} [allow-missing]\n"}, ""},
		{"default watches file", nil, 1, []string{"bad/templates/a.yaml:4"}, "Error: lint: errors: 1, warnings: 0\n"},
		{"invalid watches file", []string{"--watches-file", "odd.yaml"}, 1, nil, "Error: invalid watches file:\nodd.yaml:1: chart none: not found"},
		{"unknown output format", []string{"-o", "xml"}, 1, nil, `Error: invalid argument "xml" for "-o, --output" flag: expected json or yaml`},
		{"rules", []string{"--rules"}, 0, []string{"random-value (warning)\n  finds: ", "  why:   ", "  fix:   "}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := program(t, append([]string{"lint"}, test.args...)...)
			if code != test.code || !strings.HasPrefix(stderr, test.stderr) || test.stderr == "" && stderr != "" {
				t.Errorf("exit code %d, stderr %q", code, stderr)
			}
			for _, want := range test.stdout {
				if !strings.Contains(stdout, want) {
					t.Errorf("stdout does not contain %q:\n%s", want, stdout)
				}
			}
			if len(test.stdout) == 0 && stdout != "" {
				t.Errorf("stdout is %q", stdout)
			}
		})
	}
}

func TestLint_JSON(t *testing.T) {
	dir := writeProject(t, map[string]string{
		"bad/Chart.yaml":         "apiVersion: v2\nname: bad\nversion: 1.0.0",
		"bad/templates/a.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bad\n",
		"bad/values.schema.json": "{}",
	})
	bad := filepath.Join(dir, "bad")
	code, stdout, _ := program(t, "lint", bad, "-ojson")
	var findings []lint.Finding
	if err := json.Unmarshal([]byte(stdout), &findings); err != nil || code != 1 {
		t.Fatalf("exit code %d, %v:\n%s", code, err, stdout)
	}
	if len(findings) != 1 || findings[0].Rule != "name-ignores-release" || findings[0].Line != 4 ||
		findings[0].File != filepath.Join(bad, "templates", "a.yaml") || findings[0].Severity != lint.Error {
		t.Errorf("got findings %+v", findings)
	}
	if code, stdout, _ := program(t, "lint", "-o", "json", filepath.Join("..", "..", "charts", "podset")); code != 0 || stdout != "[]\n" {
		t.Errorf("no findings: exit code %d, %q", code, stdout)
	}
	code, stdout, _ = program(t, "lint", "--rules", "-o", "json")
	var rules []lint.Rule
	if err := json.Unmarshal([]byte(stdout), &rules); err != nil || code != 0 || len(rules) != len(lint.Rules()) {
		t.Errorf("rules: exit code %d, %v, %d of %d", code, err, len(rules), len(lint.Rules()))
	}
}
