package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// shop writes a watches file with a chart whose values choose a kind.
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
	var out, said strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), said.String(), err
}

func TestRBAC_ReportsUnresolvedLines(t *testing.T) {
	const place = "Warning: Shop: chart shop: templates/extra.yaml:3: the output of {{ toYaml . }} depends on the values"
	open, settled := shop(t, ""), shop(t, ", rbac: [{template: templates/extra.yaml, apiGroups: [batch], resources: [jobs]}]")
	for _, test := range []struct {
		name, watches string
		args          []string
		fails, warns  bool
	}{
		{"by itself", open, nil, false, true},
		{"strictly", open, []string{"--strict"}, true, true},
		{"declared", settled, []string{"--strict"}, false, false},
	} {
		out, said, err := runRBAC(t, append([]string{"--watches-file", test.watches}, test.args...)...)
		if (err != nil) != test.fails || strings.HasPrefix(said, place) != test.warns || !test.warns && said != "" {
			t.Errorf("%s: %v, stderr %q", test.name, err, said)
		}
		// The role is printed all the same.
		if !strings.Contains(out, "kind: ClusterRole") || strings.Contains(out, "[jobs]") != (test.watches == settled) {
			t.Errorf("%s: printed\n%s", test.name, out)
		}
	}
}

func TestRBACWritesAndChecks(t *testing.T) {
	watches := shop(t, ", rbac: [{template: templates/extra.yaml}]")
	file := filepath.Join(t.TempDir(), "role.yaml")
	args := []string{"--watches-file", watches, "--output-file", file}
	check := func() error { _, _, err := runRBAC(t, append(args, "--check")...); return err }
	if err := check(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file that is missing: %v", err)
	}
	if out, _, err := runRBAC(t, args...); err != nil || out != "" {
		t.Fatalf("%v, printed %q", err, out)
	}
	if err := check(); err != nil {
		t.Errorf("what was just written: %v", err)
	}
	if err := os.WriteFile(file, []byte("rules: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := check(); err == nil {
		t.Error("a file that is not up to date passes")
	}
	if _, _, err := runRBAC(t, "--check"); err == nil || !strings.Contains(err.Error(), "--output-file") {
		t.Errorf("a check of no file: %v", err)
	}
}

func TestRBACAsJSON(t *testing.T) {
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
		t.Errorf("the last rule is %+v", last)
	}
	if len(report.Unresolved) != 1 || report.Unresolved[0].Where != "chart shop: templates/extra.yaml:3" {
		t.Errorf("not resolved: %+v", report.Unresolved)
	}
	if _, _, err := runRBAC(t, "--output", "toml"); err == nil || !strings.Contains(err.Error(), "expected yaml or json") {
		t.Errorf("another format: %v", err)
	}
}
