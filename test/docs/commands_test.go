package docs

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// commandsPage lists the pages whose commands a test runs, and all other commands.
const commandsPage = "docs/dev/commands.md"

// TestCommands: a test runs each command of each page, on this or another page, or
// commandsPage names the reason why not.
func TestCommands(t *testing.T) {
	pages := files(t, func(name string) bool {
		return isPage(name) && (strings.HasPrefix(name, "docs/") || path.Dir(name) == ".") && name != "CHANGELOG.md" && name != commandsPage
	})
	listed, err := fs.ReadFile(repository, commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	tests := declaredTests(t)
	pagesRun := map[string]bool{}
	for _, row := range Rows(string(listed), "page", "tests") {
		page := strings.Trim(row[0], "`")
		if len(Read(pages[page]).Commands) == 0 {
			t.Errorf("%s: %s has no commands", commandsPage, page)
		}
		pagesRun[page] = true
		checkTests(t, tests, page, row[1])
	}
	excepted := map[[2]string]bool{}
	for _, row := range Rows(string(listed), "page", "command", "test or reason") {
		page, command := strings.Trim(row[0], "`"), strings.Trim(row[1], "`")
		excepted[[2]string{page, command}] = true
		if !slices.ContainsFunc(Read(pages[page]).Commands, func(c string) bool { return firstLine(c) == command }) {
			t.Errorf("%s: %s does not have the command %q", commandsPage, page, command)
		}
		if strings.HasPrefix(row[2], "`Test") {
			checkTests(t, tests, page, row[2])
		} else if len(strings.Fields(row[2])) < 3 {
			t.Errorf("%s: %s: %q has no reason", commandsPage, page, command)
		}
	}
	ran := map[string]bool{}
	for page := range pagesRun {
		for _, command := range Read(pages[page]).Commands {
			ran[command] = ran[command] || !excepted[[2]string{page, firstLine(command)}]
		}
	}
	count := 0
	for page, text := range pages {
		for _, command := range Read(text).Commands {
			count++
			if !ran[command] && !excepted[[2]string{page, firstLine(command)}] {
				t.Errorf("%s names no test and no reason for a command of %s:\n%s", commandsPage, page, command)
			}
		}
	}
	if count < 100 {
		t.Errorf("found only %d commands", count)
	}
}

// firstLine returns the first line of a command, without a trailing backslash.
func firstLine(command string) string {
	first, _, _ := strings.Cut(command, "\n")
	return strings.TrimSuffix(first, " \\")
}

func checkTests(t *testing.T, tests map[string]bool, page, cell string) {
	t.Helper()
	names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(cell, -1)
	if len(names) == 0 {
		t.Errorf("%s: %s has no test", commandsPage, page)
	}
	for _, name := range names {
		if !tests[name[1]] {
			t.Errorf("%s: %s: no test %s", commandsPage, page, name[1])
		}
	}
}

// declaredTests returns the names of all tests.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	names := map[string]bool{}
	for _, text := range files(t, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
		for _, found := range declared.FindAllStringSubmatch(text, -1) {
			names[found[1]] = true
		}
	}
	return names
}

func TestRead_Commands(t *testing.T) {
	const page = "```console\n$ a\noutput\n$ b <<EOF\n> text\n> EOF\n```\n\n* list\n\n  ```sh refused\n  # comment\n  c \\\n    d\n  e <<'END'\n\n  # text\n  END\n  f\n  ```\n\n```text\n$ g\n```\n"
	want := []string{"a", "b <<EOF\ntext\nEOF", "c \\\n  d", "e <<'END'\n\n# text\nEND", "f"}
	if diff := cmp.Diff(want, Read(page).Commands); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
