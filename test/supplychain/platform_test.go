package supplychain

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"
)

// importer returns the package that an import means.
type importer func(name string) (*types.Package, error)

// Import implements types.Importer.
func (i importer) Import(name string) (*types.Package, error) { return i(name) }

// TestProgram_TypesAreRightOnEachPlatform checks the types of the program on the systems
// that no other test compiles it for. This takes seconds, and "make release-snapshot",
// which compiles the program, takes minutes.
func TestProgram_TypesAreRightOnEachPlatform(t *testing.T) {
	for _, system := range systems[1:] {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			checkTypes(t, run(t.Context(), t, "env", "GOOS="+system, "CGO_ENABLED=0", "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap", "./cmd/chartwright"))
		})
	}
}

// checkTypes checks the packages in the output of go list, which lists imports first.
func checkTypes(t *testing.T, list string) {
	checked, own := map[string]*types.Package{"unsafe": types.Unsafe}, 0
	for packages := json.NewDecoder(strings.NewReader(list)); packages.More(); {
		var listed struct {
			ImportPath, Dir string
			GoFiles         []string
			ImportMap       map[string]string
		}
		if err := packages.Decode(&listed); err != nil {
			t.Fatal(err)
		}
		if listed.ImportPath == "unsafe" {
			continue
		}
		isOwn := strings.HasPrefix(listed.ImportPath, "github.com/chartwright/chartwright/")
		if isOwn {
			own++
		}
		config := types.Config{
			// Only the declarations of other modules are needed.
			IgnoreFuncBodies: !isOwn,
			Importer: importer(func(name string) (*types.Package, error) {
				if mapped, ok := listed.ImportMap[name]; ok {
					name = mapped
				}
				if found := checked[name]; found != nil {
					return found, nil
				}
				return nil, fmt.Errorf("package %s is not listed", name)
			}),
			Error: func(err error) {
				if isOwn {
					t.Error(err)
				}
			},
		}
		files, parsed := token.NewFileSet(), []*ast.File{}
		for _, name := range listed.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(listed.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		// Error reports the errors of the program, and its packages are checked despite errors
		// in other modules.
		checked[listed.ImportPath], _ = config.Check(listed.ImportPath, files, parsed, nil)
	}
	if own < 20 {
		t.Errorf("checked only %d packages of the program", own)
	}
}
