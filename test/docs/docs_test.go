package docs

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// repository is the root of this repository.
var repository = os.DirFS("../..")

// files returns the repository's files whose names match, except build output,
// hidden files and vendored modules.
func files(t *testing.T, fits func(name string) bool) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "bin" || name != "." && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".github"):
			return fs.SkipDir
		case entry.IsDir() || !fits(name):
			return nil
		}
		text, err := fs.ReadFile(repository, name)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func isPage(name string) bool { return path.Ext(name) == ".md" }

// TestLinks_PointToExistingTargets checks files and headings.
func TestLinks_PointToExistingTargets(t *testing.T) {
	pages := map[string]Page{}
	for name, text := range files(t, isPage) {
		pages[name] = Read(text)
	}
	links := 0
	for name, page := range pages {
		for _, link := range page.Links {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(link, "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := fs.Stat(repository, to); err != nil {
				t.Errorf("%s links to %s: no file %s", name, link, to)
				continue
			}
			if anchor != "" && !slices.Contains(pages[to].Anchors, anchor) {
				t.Errorf("%s links to %s: no such heading in %s", name, link, to)
			}
		}
	}
	if links < 100 {
		t.Errorf("found only %d links", links)
	}
}

// TestContents: the table of contents links to every page.
func TestContents(t *testing.T) {
	pages := files(t, isPage)
	contents := Read(pages["docs/README.md"])
	for name := range pages {
		if dir := path.Dir(name); !strings.HasPrefix(dir, "docs") || name == "docs/README.md" {
			continue
		}
		if !slices.Contains(contents.Links, strings.TrimPrefix(name, "docs/")) {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}

// named matches the name of a page in another file.
var named = regexp.MustCompile(`\b(?:docs/(?:[a-z-]+/)*[a-z-]+|blob/main/charts/[a-z-]+/README)\.md(?:#[a-z0-9-]+)?`)

// TestNames: pages that messages, comments and manifests mention exist.
func TestNames(t *testing.T) {
	pages := files(t, isPage)
	others := files(t, func(name string) bool {
		return slices.Contains([]string{".go", ".yaml", ".json"}, path.Ext(name)) || path.Base(name) == "Makefile"
	})
	count := 0
	for name, text := range others {
		for _, mention := range named.FindAllString(text, -1) {
			count++
			file, anchor, _ := strings.Cut(strings.TrimPrefix(mention, "blob/main/"), "#")
			if text, ok := pages[file]; !ok || anchor != "" && !slices.Contains(Anchors(text), anchor) {
				t.Errorf("%s mentions %s, which does not exist", name, mention)
			}
		}
	}
	if count < 10 {
		t.Errorf("found only %d", count)
	}
}

func TestRead(t *testing.T) {
	got := Read("# The `first` one: what's in it?\n\n[a](b.md#c) ![d](e.png) `[no](no.md)`\n\n| [t](u.md) |\n|---|\n\n## Again\n\n```\n## No\n[no](no.md)\n```\n\n## Again\n\n[r]\n\n[r]: s.md\n")
	want := Page{Anchors: []string{"the-first-one-whats-in-it", "again", "again-1"}, Links: []string{"b.md#c", "e.png", "u.md", "s.md"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
