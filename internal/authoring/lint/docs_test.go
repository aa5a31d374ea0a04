package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/testenv"
)

// TestDocs compares docs/reference/lint.md with the rules.
func TestDocs(t *testing.T) {
	var want strings.Builder
	want.WriteString("| rule | severity | finds | why it matters |\n|---|---|---|---|\n")
	for _, rule := range lint.Rules() {
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", rule.Name, rule.Severity, rule.Finds, rule.Why)
	}
	testenv.Part(t, "reference/lint.md", "rules", want.String())
}

func TestRules_AreCompleteAndUnique(t *testing.T) {
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
