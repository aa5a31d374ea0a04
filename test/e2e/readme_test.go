package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestReadme runs the first five minutes of README.md as a new user does, and
// compares the output.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(harness.Root("README.md"))
	if err != nil {
		t.Fatal(err)
	}
	recipes := readRecipes(string(text))
	at := slices.IndexFunc(recipes, func(r recipe) bool { return r.title == "The first five minutes" })
	if len(recipes) != 1 || at < 0 || len(recipes[at].calls) < 15 {
		t.Fatalf("the commands of the first five minutes are not found in %d sections", len(recipes))
	}
	env := harness.New(t)
	env.NewOperator(harness.Options{}).Start()
	newcomer := onCall{
		author: &author{env: env, home: t.TempDir(), kubeconfig: env.AdminKubeconfig()},
		t:      t,
		// The page has no such kind, and API groups are not replaced.
		shop: env.NewKind("Shop"),
	}
	newcomer.path = newcomer.programs(t)
	if err := os.Symlink(harness.Programs()["chartwright"], filepath.Join(newcomer.path, "kubectl-chartwright")); err != nil {
		t.Fatal(err)
	}
	for _, c := range recipes[at].calls {
		newcomer.call(c)
	}
}
