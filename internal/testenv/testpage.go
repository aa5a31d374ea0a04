package testenv

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write files that are generated from code: parts of docs/, and testdata")

// Update reports whether tests write generated files instead of comparing them.
func Update() bool { return *update }

// Whole checks that a page of docs/ equals a text.
func Whole(t testing.TB, page, text string) {
	t.Helper()
	compare(t, page, read(t, page), text)
}

// Part checks that the part of a page between two comments equals a text:
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
		t.Fatalf("docs/%s has no part %s: want the lines\n%s%s", page, name, begin, end)
	}
	compare(t, page, is, before+begin+text+end+after)
}

func compare(t testing.TB, page, got, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file(t, page), []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
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

// file returns the path of a page of docs/.
func file(t testing.TB, page string) string {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "docs", page)
}
