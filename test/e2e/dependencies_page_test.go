package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestDependenciesPage runs the commands of docs/guides/dependencies.md with the embedded
// kinds, and compares their output with the page. The YAML on the page is in watches.yaml.
func TestDependenciesPage(t *testing.T) {
	t.Parallel()
	var texts [2]string
	for i, path := range []string{"docs/guides/dependencies.md", "watches.yaml"} {
		text, err := os.ReadFile(harness.Root(path))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	page, watches := texts[0], texts[1]
	excerpts := 0
	for _, block := range fenced(page) {
		if block.kind != "yaml" {
			continue
		}
		excerpts++
		if !strings.Contains(watches, "\n"+block.text) {
			t.Errorf("line %d: watches.yaml does not contain\n%s", block.line, block.text)
		}
	}
	recipes := readRecipes(page)
	if len(recipes) != 1 || len(recipes[0].calls) < 11 || excerpts < 2 {
		t.Fatalf("the page has %d sections with commands and %d YAML blocks, want 1 section with at least 11 commands, and 2 blocks", len(recipes), excerpts)
	}
	runAsNewcomer(t, recipes[0].calls)
}
