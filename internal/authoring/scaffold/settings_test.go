package scaffold_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

func TestInit_UsesImageOfThisBuild(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	plan, err := scaffold.Init{Dir: dir}.Plan()
	write(t, plan, err)
	files := tree(t, dir)
	// Tests are a development build.
	if want := "ARG CHARTWRIGHT=ghcr.io/chartwright/chartwright:latest\n"; !strings.Contains(files["Dockerfile"], want) {
		t.Errorf("no %q in\n%s", want, files["Dockerfile"])
	}
	if want := "\ncliVersion: latest\n"; !strings.Contains(files["PROJECT"], want) {
		t.Errorf("no %q in\n%s", want, files["PROJECT"])
	}
}

func TestAdd_RefusesGroupWithoutDomain(t *testing.T) {
	dir := newProject(t)
	settings := filepath.Join(dir, "PROJECT")
	for text, want := range map[string]string{
		"":               "--group shop: want a full domain, such as shop.example.com, or set the key domain in the file PROJECT of the project",
		"domain: [a, b]": settings + ": ",
	} {
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := project(dir).Add(scaffold.Add{New: "web", Group: "shop"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestTargets_ComeFromMakefile(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		makefile string
		want     []scaffold.Target
	}{
		"none":         {"", nil},
		"without help": {"test:\n\ttrue\nrun: a b ## Run it.\nother: ## Not asked for.\n", []scaffold.Target{{Name: "run", Help: "Run it."}}},
		"of Windows":   {"run: ## Run it.\r\ntest: ## Test it.\r\n", []scaffold.Target{{Name: "test", Help: "Test it."}, {Name: "run", Help: "Run it."}}},
	} {
		writeFiles(t, dir, map[string]string{"Makefile": test.makefile})
		targets, err := project(dir).Targets(new(scaffold.Plan), "test", "run")
		if diff := cmp.Diff(test.want, targets); err != nil || diff != "" {
			t.Errorf("%s: %v, %s", name, err, diff)
		}
	}
}
