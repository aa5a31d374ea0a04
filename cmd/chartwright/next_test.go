package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNext_ListsStepsAfterChanges(t *testing.T) {
	t.Chdir(t.TempDir())
	const verify = "make verify  Check the charts, that generated files are up to date, and that config/ builds.\n"
	for _, test := range []struct {
		args string
		// next are lines, none if the command prints no steps.
		next []string
	}{
		{"init shop --dry-run", nil},
		{"init shop --domain example.com", []string{"cd shop ", "chartwright add CHART "}},
		{"add --new web --watches-file shop/watches.yaml --config-dir shop/config", []string{"make -C shop verify ", "make -C shop test ", "make -C shop kind ", "make -C shop run "}},
		{"init mart --domain example.com --chart shop/charts/web", []string{"cd mart ", "make verify ", "make test ", "make kind "}},
		{"cd shop", nil},
		{"add charts/web", nil},
		{"add charts/web --short-name w --dry-run", nil},
		{"add charts/web --short-name w -o json", nil},
		{"add charts/web --short-name wb", []string{verify, "make test ", "make kind ", "make run "}},
		{"generate", nil},
		{"generate --check", nil},
		{"remove Web", []string{verify}},
	} {
		if folder, found := strings.CutPrefix(test.args, "cd "); found {
			t.Chdir(folder)
			continue
		}
		stdout, stderr, err := execute(t, strings.Fields(test.args)...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", test.args, err, stderr)
		}
		_, steps, _ := strings.Cut(stderr, "\nNext:\n")
		lines := strings.SplitAfter(steps, "\n")
		if len(lines)-1 != len(test.next) || strings.Contains(stdout, "Next") {
			t.Errorf("%s: got the steps\n%s\nwant %q", test.args, steps, test.next)
			continue
		}
		for i, want := range test.next {
			if !strings.HasPrefix(lines[i], "  "+want) {
				t.Errorf("%s: got the step %q, want %q", test.args, lines[i], want)
			}
		}
	}
}

// TestNext_FollowsMakefile checks the steps in projects of earlier versions and of others.
func TestNext_FollowsMakefile(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, stderr, err := execute(t, "init", ".", "--name", "shop"); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	for name, makefile := range map[string]string{
		"  chartwright lint  Check the charts.\n": "build:\n",
		"  make verify  Check it.\n":              "verify: lint ## Check it.\n",
	} {
		if err := os.WriteFile("Makefile", []byte(makefile), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join("config", "rbac", "role.yaml")); err != nil {
			t.Fatal(err)
		}
		_, stderr, err := execute(t, "generate")
		if want := "\nNext:\n" + name; err != nil || stderr != want {
			t.Errorf("got %v, %q, want %q", err, stderr, want)
		}
	}
}

func TestInit_CurrentFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o750); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if _, stderr, err := execute(t, "init"); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if name, err := os.ReadFile("config/default/kustomization.yaml"); err != nil || !strings.Contains(string(name), "namePrefix: shop-\n") {
		t.Errorf("the name is not that of the folder: %v\n%s", err, name)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("notes.txt", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := execute(t, "init"); err == nil || !strings.Contains(err.Error(), "the current folder is not empty: to create the project here, run 'chartwright init .'") {
		t.Errorf("in a folder with files: got %v", err)
	}
	if _, stderr, err := execute(t, "init", ".", "--name", "shop"); err != nil {
		t.Fatalf("init .: %v\n%s", err, stderr)
	}
}
