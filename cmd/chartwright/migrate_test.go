package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/authoring/migrate"
)

// migrateCommand runs "chartwright migrate" and returns its output.
func migrateCommand(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"migrate"}, args...))
	err = root.Execute()
	return out.String(), err
}

// contents returns the files of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		files[file] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// sdkProject copies a project of the operator-sdk.
func sdkProject(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "internal", "authoring", "migrate", "testdata", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMigrate_ChangesNoFiles(t *testing.T) {
	for name, wantErr := range map[string]string{"nginx": "", "hazards": "migrate: 8 breaking findings"} {
		// migrate sets the variables of the manager's container in this process.
		t.Setenv("RELATED_IMAGE_STORE", "store:v4")
		dir := sdkProject(t, name)
		before := contents(t, dir)
		stdout, err := migrateCommand(t, dir)
		if err == nil && wantErr != "" || err != nil && err.Error() != wantErr {
			t.Errorf("%s: %v, want %q", name, err, wantErr)
		}
		if !strings.Contains(stdout, "TO DO (") || strings.Contains(stdout, "WOULD BREAK") != (wantErr != "") {
			t.Errorf("%s:\n%s", name, stdout)
		}
		if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
			t.Errorf("%s: files changed:\n%s", name, diff)
		}
	}
}

func TestMigrate_ReportsUnknownFlags(t *testing.T) {
	dir := sdkProject(t, "nginx")
	file := filepath.Join(dir, "config", "manager", "manager.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "--leader-elect\n", "--leader-elect\n        - --operator-name=x\n        - --unknown-flag=1\n        - --zap-devel\n", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, err := migrateCommand(t, dir, "--output", "json")
	if err != nil {
		t.Fatal(err)
	}
	var findings []migrate.Finding
	if err := json.Unmarshal([]byte(stdout), &findings); err != nil {
		t.Fatal(err)
	}
	var unknown, known string
	for _, f := range findings {
		switch {
		case strings.HasPrefix(f.What, "unknown flag --unknown-flag"):
			unknown = f.What
		case strings.HasPrefix(f.What, "these flags work unchanged: "):
			known = f.What
		}
	}
	if unknown == "" || !strings.Contains(known, "--operator-name") || !strings.Contains(known, "--zap-devel") {
		t.Errorf("unknown %q, known %q", unknown, known)
	}
}

func TestMigrate_RefusesInvalidArguments(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"other format":      {[]string{".", "-o", "xml"}, `expected json or yaml`},
		"-n without --live": {[]string{".", "-n", "a"}, "--namespace requires --live"},
		"other folder":      {[]string{t.TempDir()}, "not a project of the operator-sdk's Helm operator"},
		"no folder":         {nil, "accepts 1 arg(s), received 0"},
	} {
		if _, err := migrateCommand(t, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	if _, err := migrateCommand(t, sdkProject(t, "nginx"), "--live"); err == nil || !strings.Contains(err.Error(), "connect by $KUBECONFIG") {
		t.Errorf("without a cluster: %v", err)
	}
}

// After all other steps, only the switch to the new operator is left.
func TestMigrate_ReportsOnlySwitchInTheEnd(t *testing.T) {
	dir := sdkProject(t, "nginx")
	in := func(path ...string) string { return filepath.Join(append([]string{dir}, path...)...) }
	watches := in("watches.yaml")
	if _, _, err := crdCommand(t, "--watches-file", watches, "--output-dir", in("config", "crd", "bases")); err != nil {
		t.Fatal(err)
	}
	root := newRoot()
	root.SetArgs([]string{"rbac", "--watches-file", watches, "--output-file", in("config", "rbac", "role.yaml")})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	for file, change := range map[string][]string{
		in("Dockerfile"): {"FROM quay.io/operator-framework/helm-operator:v1.42.0", "ARG CHARTWRIGHT=ghcr.io/chartwright/chartwright:latest\nFROM ${CHARTWRIGHT}"},
		in("Makefile"):   {"\t$(HELM_OPERATOR) run\n", "\tchartwright run\n"},
		in("config", "manager", "manager.yaml"): {
			"      - args:\n", "      - args:\n        - run\n",
			"terminationGracePeriodSeconds: 10", "terminationGracePeriodSeconds: 30",
		},
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.NewReplacer(change...).Replace(string(data))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stdout, err := migrateCommand(t, dir)
	if err != nil || !strings.Contains(stdout, "TO DO (1)") || !strings.Contains(stdout, "stop the old operator") {
		t.Errorf("%v\n%s", err, stdout)
	}
	if strings.Contains(stdout, "WOULD BREAK") || !strings.Contains(stdout, "demo.example.com_nginxes.yaml: the CRD is identical to the derived one") {
		t.Errorf("%s", stdout)
	}
}
