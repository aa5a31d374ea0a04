package architecture

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// transforms are the transforms of the informers of the program, each with the test that
// passes it an oversized object and measures what it keeps. An informer without one has a
// reason instead.
var transforms = map[string]string{
	"internal/inventory/watch.go: options.DefaultTransform = w.index.HealthConfig.transform": "internal/inventory: TestTransform_KeepsLittleOfOversizedObjects",
	"internal/operator/chartkinds/counter.go: one.informer.SetTransform(onlyIdentity)":       "internal/operator/chartkinds: TestOnlyIdentity_KeepsLittleOfOversizedCustomResources",
	"internal/operator/crdwatch/watcher.go: informer.SetTransform(compact)":                  "internal/operator/crdwatch: TestCompact_KeepsLittleOfOversizedCRDs",
	// The other feeds are those of valuesfrom, as below, and observed, with a test of the same name.
	"internal/operator/sharedwatches.go: options.DefaultTransform = w.feed.Transform": "internal/inputs/dependencies: TestTransform_KeepsLittleOfOversizedObjects",
	"internal/operator/sources.go: options.DefaultTransform = valuesfrom.Compact":     "internal/inputs/valuesfrom: TestCompact_KeepsLittleOfOversizedObjects",
	"internal/operator/watch.go: options.DefaultTransform = release.Compact":          "internal/release: TestCompact_KeepsLittleOfOversizedSecrets",

	"internal/operator/chartkinds/controller.go: NewSharedIndexInformer": "only administrators write ChartKinds",
	"internal/operator/chartkinds/counter.go: NewSharedIndexInformer":    "SetTransform",
	"internal/operator/crdwatch/watcher.go: NewSharedIndexInformer":      "SetTransform",
	"internal/operator/kind.go: NewSharedIndexInformer":                  "internal/customresource: TestDecode_KeepsLittleOfOversizedCustomResources",
	"internal/operator/signingkey/signingkey.go: NewSharedIndexInformer": "one Secret in the namespace of the operator",
}

// TestTransforms_AreMeasured: tenants can write most fields of the objects that informers
// keep, without a limit. Every transform must therefore have a test in the table.
func TestTransforms_AreMeasured(t *testing.T) {
	found := map[string]bool{}
	for _, p := range list(t) {
		in := folder(p.ImportPath)
		if !strings.HasPrefix(in, "internal/") && !strings.HasPrefix(in, "cmd/") {
			continue
		}
		for _, name := range p.GoFiles {
			for _, use := range transformsIn(t, filepath.Join(p.Dir, name)) {
				found[in+"/"+name+": "+use] = true
			}
		}
	}
	for _, use := range slices.Sorted(maps.Keys(found)) {
		if transforms[use] == "" {
			t.Errorf("%s: the table has no test that measures what the informer keeps", use)
		}
	}
	for use, test := range transforms {
		if !found[use] {
			t.Errorf("%s is in the table and not in the program", use)
		}
		if in, name, is := strings.Cut(test, ": "); is && !hasTest(t, in, name) {
			t.Errorf("%s: there is no test %s in %s", use, name, in)
		}
	}
}

// transformsIn returns the uses of transforms, and the new informers, in a file.
func transformsIn(t *testing.T, file string) (uses []string) {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	text := func(node ast.Node) string {
		var out bytes.Buffer
		if err := format.Node(&out, files, node); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	selected := func(e ast.Expr) string {
		if s, is := e.(*ast.SelectorExpr); is {
			return s.Sel.Name
		}
		return ""
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			if slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return strings.HasSuffix(selected(e), "Transform") }) {
				uses = append(uses, text(n))
			}
		case *ast.KeyValueExpr:
			if key, is := n.Key.(*ast.Ident); is && strings.HasSuffix(key.Name, "Transform") {
				uses = append(uses, text(n))
			}
		case *ast.CallExpr:
			switch name := selected(n.Fun); name {
			case "SetTransform":
				uses = append(uses, text(n))
			case "NewSharedIndexInformer", "NewSharedInformer", "NewInformerWithOptions", "NewReflector":
				uses = append(uses, name)
			}
		}
		return true
	})
	return uses
}

func hasTest(t *testing.T, in, name string) bool {
	t.Helper()
	tests, err := filepath.Glob(filepath.Join("..", "..", in, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(tests, func(file string) bool {
		data, err := os.ReadFile(file)
		return err == nil && bytes.Contains(data, []byte("\nfunc "+name+"(t *testing.T) {"))
	})
}
