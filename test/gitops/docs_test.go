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

var update = flag.Bool("update", false, "write the files of docs/gitops into docs/gitops.md")

// shown matches a file in the page, after a comment with its name.
var shown = regexp.MustCompile("(?s)<!-- docs/gitops/([a-z.-]+) -->\n```([a-z]+)\n(.*?)```\n")

// docs/gitops.md must show all files unchanged.
func TestPageShowsFiles(t *testing.T) {
	page := filepath.Join(root, "docs", "gitops.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(root, "docs", "gitops"))
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
		return "<!-- docs/gitops/" + match[1] + " -->\n```" + match[2] + "\n" + file + "```\n"
	})
	if len(left) > 0 {
		t.Errorf("the page does not show %v", left)
	}
	switch {
	case wanted == string(text):
	case *update:
		if err := os.WriteFile(page, []byte(wanted), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/gitops.md is not up to date: cd test; go test ./gitops -update")
	}
}

// The manifests must be valid YAML without duplicate keys, and name the kinds of this project.
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
			t.Errorf("%s does not name a kind of this project", name)
		}
	}
}
