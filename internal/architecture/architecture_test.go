package architecture

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
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

// may holds, for each room, the rooms of ours that it may import. A room that
// stands lower never knows one that stands higher.
var may = map[string][]string{
	"internal/api":              {},
	"internal/version":          {},
	"internal/architecture":     {},
	"internal/testserver":       {},
	"internal/testpage":         {},
	"internal/boundedyaml":      {},
	"internal/values":           {},
	"internal/signing":          {},
	"internal/watches":          {"internal/api"},
	"internal/annotations":      {"internal/api"},
	"internal/customresource":   {"internal/annotations", "internal/api", "internal/boundedyaml", "internal/values"},
	"internal/records":          {"internal/api"},
	"internal/decide":           {"internal/api"},
	"internal/apply":            {"internal/api"},
	"internal/rollout":          {},
	"internal/metrics":          {"internal/rollout", "internal/version"},
	"internal/inventory":        {"internal/api", "internal/apply", "internal/inventory/health"},
	"internal/expression":       {},
	"internal/kindstatus":       {"internal/expression"},
	"internal/inventory/health": {"internal/expression"},
	"internal/usage":            {},
	"internal/observed":         {"internal/usage"},
	"internal/diagnose":         {"internal/api", "internal/apply"},
	"internal/templates":        {},
	"internal/render":           {"internal/boundedyaml", "internal/templates"},
	"internal/compat":           {},
	"internal/helm":             {"internal/api", "internal/apply", "internal/boundedyaml", "internal/compat", "internal/records", "internal/render", "internal/signing", "internal/templates", "internal/values", "internal/watches"},
	"internal/catalog":          {"internal/helm", "internal/inventory/health", "internal/kindstatus", "internal/observed", "internal/sources", "internal/values", "internal/watches"},
	"internal/sources":          {"internal/api", "internal/boundedyaml", "internal/helm", "internal/usage", "internal/values", "internal/watches"},
	"internal/crd":              {"internal/api", "internal/catalog", "internal/compat", "internal/helm", "internal/kindstatus", "internal/watches"},
	"internal/rbac":             {"internal/api", "internal/catalog", "internal/crd", "internal/helm", "internal/templates", "internal/values", "internal/watches"},
	"internal/lint":             {"internal/api", "internal/apply", "internal/catalog", "internal/crd", "internal/helm", "internal/rbac", "internal/templates", "internal/values", "internal/watches"},
	"internal/preview":          {"internal/api", "internal/catalog", "internal/crd", "internal/helm", "internal/sources", "internal/values", "internal/watches"},
	"internal/bundle":           {"internal/catalog", "internal/helm", "internal/preview"},
	"internal/scaffold":         {"internal/api", "internal/bundle", "internal/catalog", "internal/crd", "internal/helm", "internal/lint", "internal/rbac", "internal/values", "internal/watches"},
	"internal/migrate":          {"internal/api", "internal/apply", "internal/catalog", "internal/compat", "internal/crd", "internal/helm", "internal/lint", "internal/preview", "internal/rbac", "internal/records", "internal/scaffold", "internal/values", "internal/watches"},
	"internal/plugin":           {"internal/annotations", "internal/api", "internal/apply", "internal/catalog", "internal/diagnose", "internal/helm", "internal/inventory", "internal/records", "internal/sources", "internal/values"},
	"internal/reconcile":        {"internal/annotations", "internal/api", "internal/apply", "internal/catalog", "internal/customresource", "internal/decide", "internal/helm", "internal/inventory", "internal/kindstatus", "internal/metrics", "internal/records", "internal/rollout", "internal/sources", "internal/values", "internal/watches"},
	"internal/operator":         {"internal/annotations", "internal/api", "internal/apply", "internal/catalog", "internal/compat", "internal/crd", "internal/customresource", "internal/diagnose", "internal/helm", "internal/inventory", "internal/inventory/health", "internal/metrics", "internal/observed", "internal/rbac", "internal/reconcile", "internal/records", "internal/signing", "internal/sources", "internal/watches"},
}

func TestArrowsPointOneWay(t *testing.T) {
	for _, p := range list(t) {
		name := room(p.ImportPath)
		if !strings.HasPrefix(name, "internal/") {
			continue
		}
		allowed, known := may[name]
		if !known {
			t.Errorf("%s is new: say in this test which rooms it may import", name)
			continue
		}
		for _, imported := range p.Imports {
			if other := room(imported); other != "" && !slices.Contains(allowed, other) {
				t.Errorf("%s must not import %s", name, other)
			}
		}
	}
}

// TestTheHouseIsInItsDocs: docs/design.md has every room, and its arrows as they
// are here; CONTRIBUTING.md has every room.
func TestTheHouseIsInItsDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(internal/[a-z/]+)` \\| .+ \\| (.+) \\|$").FindAllStringSubmatch(string(text), -1) {
		told[row[1]] = row[2]
	}
	want := map[string]string{}
	for name, others := range may {
		want[name] = cmp.Or(strings.ReplaceAll(strings.Join(others, ", "), "internal/", ""), "nothing of ours")
	}
	if diff := gocmp.Diff(want, told); diff != "" {
		t.Errorf("the table in docs/design.md (-want +got):\n%s", diff)
	}
	text, err = os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range may {
		if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`"+path.Base(name)+"`") {
			t.Errorf("CONTRIBUTING.md does not name %s", name)
		}
	}
}

// TestHelmStaysInItsRoom: a move to another version of Helm is one package's
// work.
func TestHelmStaysInItsRoom(t *testing.T) {
	for _, p := range list(t) {
		if within(room(p.ImportPath), "internal/helm") {
			continue
		}
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if within(imported, "helm.sh/helm") {
				t.Errorf("%s imports %s", room(p.ImportPath), imported)
			}
		}
	}
}

// TestDecideIsPure: plain data in, plain data out.
func TestDecideIsPure(t *testing.T) {
	for _, p := range list(t) {
		switch room(p.ImportPath) {
		case "internal/decide":
			for _, imported := range p.Imports {
				first, _, _ := strings.Cut(imported, "/")
				if strings.Contains(first, ".") && room(imported) != "internal/api" {
					t.Errorf("decide imports %s", imported)
				}
			}
			for _, dep := range p.Deps {
				if within(dep, "k8s.io/client-go") {
					t.Errorf("decide needs %s, a client", dep)
				}
			}
		case "internal/apply":
			for _, dep := range p.Deps {
				if within(dep, "helm.sh/helm") {
					t.Errorf("apply needs %s", dep)
				}
			}
		}
	}
}

// TestNothingImportsTests: what is for tests never gets into the binary.
func TestNothingImportsTests(t *testing.T) {
	for _, p := range list(t) {
		if within(room(p.ImportPath), "test") {
			continue
		}
		for _, imported := range p.Imports {
			if within(room(imported), "test") {
				t.Errorf("%s imports %s", room(p.ImportPath), room(imported))
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
