package architecture

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/chartwright/chartwright"

// pkg is a package as go list describes it.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

// list returns the packages of the main module and of the module of the tests.
func list(t *testing.T) (packages []pkg) {
	t.Helper()
	for _, dir := range []string{"../..", ".."} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps", "./...")
		cmd.Dir = dir
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v\n%s", dir, err, &stderr)
		}
		decoder := json.NewDecoder(bytes.NewReader(out))
		for decoder.More() {
			var p pkg
			if err := decoder.Decode(&p); err != nil {
				t.Fatal(err)
			}
			packages = append(packages, p)
		}
	}
	return packages
}

// folder returns the folder of a package in this repository, and "" for any other package.
func folder(importPath string) string {
	name, own := strings.CutPrefix(importPath, module+"/")
	if !own {
		return ""
	}
	return name
}

// within reports whether a package is the given one or below it.
func within(importPath, of string) bool {
	return importPath == of || strings.HasPrefix(importPath, of+"/")
}

// TestPlan_NeedsNoClient checks transitive imports of packages that plan and
// apply, which depguard does not check.
func TestPlan_NeedsNoClient(t *testing.T) {
	refused := map[string]string{"internal/plan": "k8s.io/client-go", "internal/apply": "helm.sh/helm"}
	for _, p := range list(t) {
		for _, dep := range p.Deps {
			if banned, ok := refused[folder(p.ImportPath)]; ok && within(dep, banned) {
				t.Errorf("%s depends on %s", p.ImportPath, dep)
			}
		}
	}
}

// TestRun_NeedsNoAuthoring checks that the start of the operator analyzes no charts for its
// authors. Probes fail during an analysis, which takes seconds per chart.
func TestRun_NeedsNoAuthoring(t *testing.T) {
	for _, p := range list(t) {
		if folder(p.ImportPath) != "internal/operator" {
			continue
		}
		for _, dep := range p.Deps {
			if within(folder(dep), "internal/authoring") {
				t.Errorf("internal/operator depends on %s", dep)
			}
		}
	}
	for _, name := range []string{"kinds.go", "limits.go", "logging.go", "operatorsdk.go", "run.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "cmd", "chartwright", name), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range file.Imports {
			if within(folder(strings.Trim(imported.Path.Value, `"`)), "internal/authoring") {
				t.Errorf("cmd/chartwright/%s imports %s", name, imported.Path.Value)
			}
		}
	}
}

// TestPackages_ImportOnlyPackagesAbove checks that docs/dev/architecture.md lists every
// package, and that a package imports only packages above it in this list.
func TestPackages_ImportOnlyPackagesAbove(t *testing.T) {
	page, err := os.ReadFile("../../docs/dev/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	position := map[string]int{}
	for i, row := range regexp.MustCompile("(?m)^\\| \\[`((?:internal|cmd)/[^`]+)`\\]").FindAllSubmatch(page, -1) {
		position[string(row[1])] = i
	}
	for _, p := range list(t) {
		name := folder(p.ImportPath)
		if !within(name, "internal") && !within(name, "cmd") {
			continue
		}
		own, listed := position[name]
		if !listed {
			t.Errorf("docs/dev/architecture.md does not list %s", name)
			continue
		}
		for _, imported := range p.Imports {
			above, isPackage := position[folder(imported)]
			if isPackage && above >= own {
				t.Errorf("%s imports %s, which docs/dev/architecture.md lists below it", name, folder(imported))
			}
		}
	}
}

// TestRace_LeavesOutNoSharedMemory checks that the packages that the Makefile tests without
// the race detector start no goroutine and use no lock.
func TestRace_LeavesOutNoSharedMemory(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	leftOut := regexp.MustCompile(`(?m)^NO_RACE := (.*?)\$+$`).FindSubmatch(makefile)
	if leftOut == nil {
		t.Fatal("the Makefile has no NO_RACE")
	}
	packages, found := regexp.MustCompile(string(leftOut[1])+"$"), 0
	for _, p := range list(t) {
		if !packages.MatchString(p.ImportPath) {
			continue
		}
		found++
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, imported := range file.Imports {
				if strings.HasPrefix(imported.Path.Value, `"sync`) || strings.HasSuffix(imported.Path.Value, `/errgroup"`) {
					t.Errorf("%s/%s imports %s", folder(p.ImportPath), name, imported.Path.Value)
				}
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if _, starts := node.(*ast.GoStmt); starts {
					t.Errorf("%s/%s starts a goroutine", folder(p.ImportPath), name)
				}
				return true
			})
		}
	}
	if found == 0 {
		t.Error("NO_RACE matches no package")
	}
}

// TestMakefile_NamesTests checks that the tests exist that "make check-long" runs by name:
// "go test" passes without them.
func TestMakefile_NamesTests(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("../e2e/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests []byte
	for _, name := range sources {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, source...)
	}
	for variable, prefix := range map[string]string{"PREVIOUS_TESTS": "TestPreviousVersion_", "LONG_TESTS": ""} {
		names := regexp.MustCompile(`(?m)^` + variable + ` +:= (.*)$`).FindSubmatch(makefile)
		if names == nil {
			t.Fatalf("the Makefile has no %s", variable)
		}
		for name := range strings.SplitSeq(string(names[1]), "|") {
			if !bytes.Contains(tests, []byte("\nfunc "+prefix+name+"(")) {
				t.Errorf("%s names %s%s, which is no test of test/e2e", variable, prefix, name)
			}
		}
	}
}

func TestPackages_HaveNameAndComment(t *testing.T) {
	for _, p := range list(t) {
		name := path.Base(p.ImportPath)
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "types"}, name) {
			t.Errorf("%s: the name of a package states its concern", p.ImportPath)
		}
		if len(p.GoFiles) == 0 || !within(folder(p.ImportPath), "internal") {
			continue
		}
		if !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s has no doc.go", folder(p.ImportPath))
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, "doc.go"), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Error(err)
			continue
		}
		if want := "Package " + name + " "; !strings.HasPrefix(file.Doc.Text(), want) {
			t.Errorf("%s/doc.go has no comment that begins with %q", folder(p.ImportPath), want)
		}
	}
}

// TestPath_NamesExistingFiles checks the path of one custom resource in
// docs/dev/architecture.md: its files exist, and a new developer has to open
// few of them.
func TestPath_NamesExistingFiles(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "dev", "architecture.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, walk, found := strings.Cut(string(text), "\n## The path of one custom resource\n")
	walk, _, ended := strings.Cut(walk, "\n## ")
	if !found || !ended {
		t.Fatalf("%s has no section about the path of one custom resource", page)
	}
	files := map[string]bool{}
	for _, step := range regexp.MustCompile(`(?m)^\d+\. \[[a-z]+\.go\]\(([^)]+)\)`).FindAllStringSubmatch(walk, -1) {
		files[step[1]] = true
		if _, err := os.Stat(filepath.Join(filepath.Dir(page), step[1])); err != nil {
			t.Error(err)
		}
	}
	if len(files) < 15 || len(files) > 22 {
		t.Errorf("the path names %d files, want 15 to 22", len(files))
	}
}
