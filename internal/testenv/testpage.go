package testenv

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what follows from the code: parts of docs/, and testdata")

// Update reports whether files are to be written instead of compared.
func Update() bool { return *update }

// Whole expects that a page of docs/ is the text.
func Whole(t testing.TB, page, text string) {
	t.Helper()
	hold(t, page, read(t, page), text)
}

// Part expects the text in the part of a page that stands between two comments
// with its name:
//
//	<!-- NAME: written by make generate -->
//	<!-- end of NAME -->
func Part(t testing.TB, page, name, text string) {
	t.Helper()
	begin, end := "<!-- "+name+": written by make generate -->\n", "<!-- end of "+name+" -->\n"
	is := read(t, page)
	before, rest, begun := strings.Cut(is, begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatalf("docs/%s has no place for the %s: expected the lines\n%s%s", page, name, begin, end)
	}
	hold(t, page, is, before+begin+text+end+after)
}

func hold(t testing.TB, page, is, wanted string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file(t, page), []byte(wanted), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(wanted, is); diff != "" {
		t.Errorf("docs/%s is not up to date, run 'make generate' (-want +got):\n%s", page, diff)
	}
}

func read(t testing.TB, page string) string {
	t.Helper()
	data, err := os.ReadFile(file(t, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// file returns the path of a page.
func file(t testing.TB, page string) string {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "docs", page)
}
