package lint

import (
	"fmt"
	"io"
	"strings"
)

// Text writes findings for people, one a line as compilers do, and below what
// their rules are about, once each.
func Text(to io.Writer, findings []Finding) error {
	var out strings.Builder
	seen := map[string]bool{}
	for _, f := range findings {
		at := f.File
		if f.Line > 0 {
			at = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		fmt.Fprintf(&out, "%s: %s: %s [%s]\n", at, f.Severity, f.Message, f.Rule)
		seen[f.Rule] = true
	}
	for _, rule := range rules {
		if !seen[rule.Name] {
			continue
		}
		fmt.Fprintf(&out, "\n%s\n  why: %s\n  fix: %s\n", rule.Name, rule.Why, rule.Fix)
	}
	_, err := io.WriteString(to, out.String())
	return err
}

// Count returns how many findings have a severity.
func Count(findings []Finding, severity Severity) int {
	n := 0
	for _, f := range findings {
		if f.Severity == severity {
			n++
		}
	}
	return n
}
