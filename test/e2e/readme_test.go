package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestReadme runs the demo of README.md and the tour as a new user does, and compares
// the output.
func TestReadme(t *testing.T) {
	t.Parallel()
	for _, page := range []struct {
		path, title string
		least       int
	}{
		{"README.md", "Demo", 6},
		{"docs/get-started/tour.md", "The first five minutes", 15},
	} {
		t.Run(page.title, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(harness.Root(page.path))
			if err != nil {
				t.Fatal(err)
			}
			recipes := readRecipes(string(text))
			if len(recipes) != 1 || recipes[0].title != page.title || len(recipes[0].calls) < page.least {
				t.Fatalf("%s has %d sections with commands, want only %q with at least %d commands", page.path, len(recipes), page.title, page.least)
			}
			runAsNewcomer(t, recipes[0].calls)
		})
	}
}

// runAsNewcomer runs the commands of a page with an operator that serves the embedded kinds.
func runAsNewcomer(t *testing.T, calls []call) {
	t.Helper()
	env := harness.NewInstalled(t)
	newcomer := onCall{
		author: &author{env: env, home: t.TempDir(), kubeconfig: env.AdminKubeconfig()},
		t:      t,
	}
	newcomer.path = newcomer.programs(t)
	if err := os.Symlink(harness.Programs()["chartwright"], filepath.Join(newcomer.path, "kubectl-chartwright")); err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		newcomer.call(c)
	}
}
