package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/docs"
)

// TestDocsSecurity: docs/dev/security-tests.md names a test for each claim of
// docs/guides/security.md, and each of these tests exists.
func TestDocsSecurity(t *testing.T) {
	const root = "../.."
	read := func(page string) string {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	page, known := link.ReplaceAllString(read("guides/security.md"), "$1"), testNames(t, root)
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)(?:/(\\w+))?`")
	var claims []string
	for _, row := range docs.Rows(read("dev/security-tests.md"), "claim") {
		claim, tests := row[0], named.FindAllStringSubmatch(row[1], -1)
		claims = append(claims, claim)
		if !strings.Contains(page, claim) {
			t.Errorf("docs/dev/security-tests.md: %q is not in docs/guides/security.md", claim)
		}
		if len(tests) == 0 {
			t.Errorf("docs/dev/security-tests.md: %q has no test", claim)
		}
		for _, test := range tests {
			if !known[test[1]] || test[2] != "" && !known[test[2]] {
				t.Errorf("docs/dev/security-tests.md: %q: no test %s", claim, test[0])
			}
		}
	}
	attempts := docs.Rows(page, "attempt")
	if len(attempts) < 25 {
		t.Errorf("docs/guides/security.md has %d rows of attempts, want 25 or more", len(attempts))
	}
	for _, row := range attempts {
		if !slices.Contains(claims, row[0]) {
			t.Errorf("docs/dev/security-tests.md has no row for %q", row[0])
		}
	}
	if words := len(strings.Fields(read("guides/security.md"))); words > 900 {
		t.Errorf("docs/guides/security.md has %d words, want at most 900", words)
	}
}

// testNames returns the names of all tests of the repository, and every word in
// quotes in their files, which are the names of subtests among others.
func testNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(|"(\w+)"`)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, found := range declared.FindAllStringSubmatch(string(code), -1) {
			known[found[1]+found[2]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}
