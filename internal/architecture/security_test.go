package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityNamesItsTests: a test that docs/security.md names is there, and
// each row of its tables of attempts names one.
func TestSecurityNamesItsTests(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, found := range declared.FindAllStringSubmatch(string(code), -1) {
			known[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	all := named.FindAllStringSubmatch(string(text), -1)
	for _, found := range all {
		if !known[found[1]] {
			t.Errorf("docs/security.md names %s, and there is no such test", found[1])
		}
	}
	if len(all) < 40 {
		t.Errorf("docs/security.md names only %d tests", len(all))
	}
	attempts := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "| attempt"):
			attempts = true
		case !strings.HasPrefix(line, "|"):
			attempts = false
		case attempts && !strings.HasPrefix(line, "|---") && !named.MatchString(line):
			t.Errorf("docs/security.md names no test for %s", line)
		}
	}
}
