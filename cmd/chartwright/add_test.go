package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeChart writes a chart with a ConfigMap and further templates.
func writeChart(t *testing.T, dir string, templates map[string]string) string {
	t.Helper()
	files := map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: " + filepath.Base(dir) + "\nversion: 1.0.0\n",
		"values.yaml":         "size: 1\n",
		"templates/data.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}\"}\n",
	}
	for name, text := range templates {
		files["templates/"+name] = text
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestAdd_RefusesUnsafeChanges checks the output of add for changes that require a flag:
// the error, the dry run, and the result with the flag.
func TestAdd_RefusesUnsafeChanges(t *testing.T) {
	charts := t.TempDir()
	box := writeChart(t, filepath.Join(charts, "box"), nil)
	crate := writeChart(t, filepath.Join(charts, "crate"), nil)
	role := writeChart(t, filepath.Join(charts, "role"), map[string]string{
		"role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"{{ .Release.Name }}\"}\n",
	})
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"init", ".", "--name", "shop", "--domain", "example.com"}, {"add", box, "--group", "shop", "--version", "v1"}} {
		if _, stderr, err := execute(t, args...); err != nil || withoutNext(stderr) != "" {
			t.Fatalf("%v: %v, %s", args, err, stderr)
		}
	}
	if err := os.WriteFile("charts/box/values.yaml", []byte("size: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		args []string
		flag string
		// err is the error, and stdout the output in addition to it.
		err, stdout string
		// confirmed is part of the output with the flag.
		confirmed string
	}{
		{
			"an edited file", []string{"add", box}, "--force",
			"charts/box contains changes that 'chartwright add' did not write, and would overwrite: values.yaml\n" +
				"To discard these changes, set --force. To use the folder as it is, run 'chartwright add charts/box'",
			"--- charts/box/values.yaml\n+++ charts/box/values.yaml\n@@ -1 +1 @@\n-size: 2\n+size: 1\n",
			"updated   charts/box/values.yaml\n",
		},
		{
			"permissions outside the namespace", []string{"add", role, "--group", "shop", "--version", "v1"}, "--allow",
			"the chart of Role needs permissions outside the namespace of its releases:\n" +
				"  clusterScoped: [ClusterRole.rbac.authorization.k8s.io]\n    for ClusterRole release (templates/role.yaml)\n" +
				"To allow them in the entry, set --allow. To add the kind without them, set --allow=false",
			"",
			"Note: the entry of Role allows objects outside the namespace of its releases:\n  clusterScoped: [ClusterRole.rbac.authorization.k8s.io]\n",
		},
		{
			"another chart", []string{"add", crate, "--kind", "Box"}, "--replace-chart",
			"the kind Box already has the chart charts/box: with charts/crate, all its releases would be upgraded to the other chart\n" +
				"To replace the chart, set --replace-chart. To add another kind, set --kind",
			"",
			"Note: the chart of Box changes from charts/box to charts/crate",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			stdout, stderr, err := execute(t, test.args...)
			if err == nil || err.Error() != test.err || stdout != test.stdout || stderr != "" {
				t.Errorf("got error\n%v\nwant\n%s\nstdout\n%s\nwant\n%s\nstderr %q", err, test.err, stdout, test.stdout, stderr)
			}
			dry := slices.Concat(test.args, []string{"--dry-run"})
			stdout, stderr, err = execute(t, dry...)
			if err != nil || stderr != "Refused: "+test.err+"\n" || !strings.Contains(stdout, test.stdout) || !strings.Contains(stdout, "\nwatches.yaml:\n") {
				t.Errorf("--dry-run: %v\n%s\n%s", err, stderr, stdout)
			}
			var plan planOutput
			stdout, _, err = execute(t, append(dry, "-o", "json")...)
			if err != nil || json.Unmarshal([]byte(stdout), &plan) != nil || len(plan.Refusals) != 1 || plan.Refusals[0].Diff != test.stdout {
				t.Errorf("--dry-run -o json: %v\n%s", err, stdout)
			}
			stdout, stderr, err = execute(t, append(test.args, test.flag)...)
			if err != nil || !strings.Contains(stderr+stdout, test.confirmed) || !strings.Contains(stdout, "\nresource: ") {
				t.Errorf("%s: %v\n%s\n%s\nwant %q", test.flag, err, stderr, stdout, test.confirmed)
			}
		})
	}
}
