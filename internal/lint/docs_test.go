package lint_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/lint"
)

var update = flag.Bool("update", false, "write the rules into docs/lint.md")

// TestDocs: docs/lint.md has the rules as they are.
func TestDocs(t *testing.T) {
	const begin, end = "-update' -->\n", "<!-- end of rules -->"
	name := filepath.Join("..", "..", "docs", "lint.md")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(data), begin)
	got, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no place for the rules", name)
	}
	var want strings.Builder
	want.WriteString("| rule | severity | finds | why it matters | what to do |\n|---|---|---|---|---|\n")
	for _, rule := range lint.Rules() {
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s | %s |\n", rule.Name, rule.Severity, rule.Finds, rule.Why, rule.Fix)
	}
	if *update {
		if err := os.WriteFile(name, []byte(before+begin+want.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), got); diff != "" {
		t.Errorf("%s is not up to date, run this test with -update (-want +got):\n%s", name, diff)
	}
}

// TestRulesAreWhole: each can be read, and is there once.
func TestRulesAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range lint.Rules() {
		if seen[rule.Name] || strings.Trim(rule.Name, "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("the name %q", rule.Name)
		}
		seen[rule.Name] = true
		for _, text := range []string{rule.Finds, rule.Why, rule.Fix} {
			if text == "" || strings.HasSuffix(text, ".") || strings.Contains(text, "|") {
				t.Errorf("%s: %q", rule.Name, text)
			}
		}
	}
}
