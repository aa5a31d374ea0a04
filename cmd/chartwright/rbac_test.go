package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// shop writes a watches file with a chart that renders a kind from the values.
func shop(t *testing.T, entry string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"watches.yaml":               "- {group: shop.test, version: v1, kind: Shop, chart: shop" + entry + "}\n",
		"shop/Chart.yaml":            "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
		"shop/templates/extra.yaml":  "{{ range .Values.extra }}\n---\n{{ toYaml . }}\n{{ end }}",
		"shop/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "watches.yaml")
}

func runRBAC(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := newRBAC()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out, errs strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestRBAC_WarnsAboutUnresolvedLines(t *testing.T) {
	const warning = "Warning: Shop: chart shop: templates/extra.yaml:3: the output of {{ toYaml . }} depends on the values"
	open, settled := shop(t, ""), shop(t, ", rbac: [{template: templates/extra.yaml, apiGroups: [batch], resources: [jobs]}]")
	for _, test := range []struct {
		name, watches string
		args          []string
		fails, warns  bool
	}{
		{"default", open, nil, false, true},
		{"strict", open, []string{"--strict"}, true, true},
		{"declared in the entry", settled, []string{"--strict"}, false, false},
	} {
		out, stderr, err := runRBAC(t, append([]string{"--watches-file", test.watches}, test.args...)...)
		if (err != nil) != test.fails || strings.HasPrefix(stderr, warning) != test.warns || !test.warns && stderr != "" {
			t.Errorf("%s: %v, stderr %q", test.name, err, stderr)
		}
		// The role is printed in any case.
		if !strings.Contains(out, "kind: ClusterRole") || strings.Contains(out, "[jobs]") != (test.watches == settled) {
			t.Errorf("%s: stdout is\n%s", test.name, out)
		}
	}
}

func TestRBAC_WritesAndChecksFile(t *testing.T) {
	watches := shop(t, ", rbac: [{template: templates/extra.yaml}]")
	file := filepath.Join(t.TempDir(), "role.yaml")
	args := []string{"--watches-file", watches, "--output-file", file}
	check := func() error { _, _, err := runRBAC(t, append(args, "--check")...); return err }
	if err := check(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("missing file: %v", err)
	}
	if out, _, err := runRBAC(t, args...); err != nil || out != "" {
		t.Fatalf("%v, printed %q", err, out)
	}
	if err := check(); err != nil {
		t.Errorf("current file: %v", err)
	}
	if err := os.WriteFile(file, []byte("rules: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := check(); err == nil {
		t.Error("no error for an outdated file")
	}
	if _, _, err := runRBAC(t, "--check"); err == nil || !strings.Contains(err.Error(), "--output-file") {
		t.Errorf("--check without a file: %v", err)
	}
}

func TestRBAC_JSON(t *testing.T) {
	out, _, err := runRBAC(t, "--watches-file", shop(t, ""), "--output", "json")
	if err != nil {
		t.Fatal(err)
	}
	var report permissions.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	last := report.Rules[len(report.Rules)-1]
	if last.Why != "chart shop: templates/config.yaml" || last.Resources[0] != "configmaps" || len(last.Verbs) != 6 {
		t.Errorf("last rule is %+v", last)
	}
	if len(report.Unresolved) != 1 || report.Unresolved[0].Where != "chart shop: templates/extra.yaml:3" {
		t.Errorf("unresolved: %+v", report.Unresolved)
	}
	if _, _, err := runRBAC(t, "--output", "toml"); err == nil || !strings.Contains(err.Error(), "expected yaml or json") {
		t.Errorf("other format: %v", err)
	}
}
