package operatorchart

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated templates of deploy/chart")

// folder is the folder of the chart.
var folder = filepath.Join(root, "deploy", "chart")

// byHand are the templates that are not generated.
var byHand = map[string]bool{"templates/_helpers.tpl": true, "templates/NOTES.txt": true}

// TestTemplates_UpToDate compares the templates with config/; -update writes them.
func TestTemplates_UpToDate(t *testing.T) {
	generated, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	current := map[string]string{}
	if err := filepath.WalkDir(filepath.Join(folder, "templates"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if name := filepath.ToSlash(strings.TrimPrefix(path, folder+string(filepath.Separator))); !byHand[name] {
			current[name] = string(data)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if !*update {
		if diff := cmp.Diff(generated, current); diff != "" {
			t.Errorf("deploy/chart does not match config/: run `make generate` (-generated +deploy/chart):\n%s", diff)
		}
		return
	}
	for name := range current {
		if _, exists := generated[name]; !exists {
			if err := os.Remove(filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range generated {
		if text == current[name] {
			continue
		}
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // like other folders of the repository
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // like other files of the repository
			t.Fatal(err)
		}
	}
}
