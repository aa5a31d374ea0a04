package gitops_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/test/gitops"
)

var update = flag.Bool("update", false, "write the files of docs/guides/gitops into docs/guides/gitops.md")

// shown matches a file on the page, after a comment with its name.
var shown = regexp.MustCompile("(?s)<!-- docs/guides/gitops/([a-z.-]+) -->\n```([a-z]+)\n(.*?)```\n")

// TestPage_ShowsOrLinksAllFiles compares the page with the files.
func TestPage_ShowsOrLinksAllFiles(t *testing.T) {
	page := filepath.Join(root, "docs", "guides", "gitops.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(root, "docs", "guides", "gitops"))
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, entry := range entries {
		left[entry.Name()] = true
	}
	wanted := shown.ReplaceAllStringFunc(string(text), func(part string) string {
		match := shown.FindStringSubmatch(part)
		file, err := gitops.Read(root, match[1])
		if err != nil {
			t.Fatal(err)
		}
		delete(left, match[1])
		return "<!-- docs/guides/gitops/" + match[1] + " -->\n```" + match[2] + "\n" + file + "```\n"
	})
	for name := range left {
		if !strings.Contains(string(text), "](gitops/"+name+")") {
			t.Errorf("the page neither shows nor links %s", name)
		}
	}
	switch {
	case wanted == string(text):
	case *update:
		if err := os.WriteFile(page, []byte(wanted), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/guides/gitops.md differs from the files: run cd test; go test ./gitops -update")
	}
}

// TestManifests: the manifests are valid YAML without duplicate keys, and use
// the same group.
func TestManifests(t *testing.T) {
	for _, name := range []string{gitops.Application, gitops.Kustomization} {
		text, err := gitops.Read(root, name)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(text), &object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(text, "app.example.com") {
			t.Errorf("no kind of Chartwright in %s", name)
		}
	}
}
