package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

)

const module = "github.com/chartwright/chartwright"

// pkg is what go list tells of a package.
type pkg struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	Imports      []string
	Deps         []string
	TestImports  []string
	XTestImports []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps,TestImports,XTestImports", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var packages []pkg
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// room returns the name of a package of ours, "" for any other.
func room(importPath string) string {
	name, ours := strings.CutPrefix(importPath, module+"/")
	if !ours {
		return ""
	}
	return name
}

// within tells whether a package is another, or below it.
func within(importPath, of string) bool {
	return importPath == of || strings.HasPrefix(importPath, of+"/")
}

// TestPlan_NeedsNoClient checks what depguard cannot see: packages that plan
// and apply import through others.
func TestPlan_NeedsNoClient(t *testing.T) {
	refused := map[string]string{"internal/plan": "k8s.io/client-go", "internal/apply": "helm.sh/helm"}
	for _, p := range list(t) {
		for _, dep := range p.Deps {
			if banned, ok := refused[room(p.ImportPath)]; ok && within(dep, banned) {
				t.Errorf("%s depends on %s", p.ImportPath, dep)
			}
		}
	}
}

func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	for _, p := range list(t) {
		name := path.Base(p.ImportPath)
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "types"}, name) {
			t.Errorf("%s: a name that says nothing", p.ImportPath)
		}
		if len(p.GoFiles) == 0 || !within(room(p.ImportPath), "internal") {
			continue
		}
		if !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s has no doc.go", room(p.ImportPath))
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, "doc.go"), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Error(err)
			continue
		}
		if want := "Package " + name + " "; !strings.HasPrefix(file.Doc.Text(), want) {
			t.Errorf("%s/doc.go has no comment that begins with %q", room(p.ImportPath), want)
		}
	}
}
