package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDocsEvents_AreComplete expects docs/guides/monitoring.md to name every event, and no other.
func TestDocsEvents_AreComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	values, events := constants(t)
	for name, value := range values {
		// The constant of an event can refer to another constant.
		for strings.HasPrefix(value, "=") {
			value = values[value[1:]]
		}
		if events[name] && !strings.Contains(string(text), "`"+value+"`") {
			t.Errorf("docs/guides/monitoring.md does not name the event %s", value)
		}
	}
	page, _, _ := strings.Cut(string(text), "## /readyz")
	for _, word := range firstColumns(page) {
		if !slices.Contains(slices.Collect(maps.Values(values)), word) {
			t.Errorf("docs/guides/monitoring.md names the event %s, which does not exist", word)
		}
	}
	if len(events) < 20 {
		t.Errorf("only %d events were found", len(events))
	}
}

// TestDocsAnnotations_AreComplete expects docs/reference/annotations.md to name every annotation
// that users can set, and no other.
func TestDocsAnnotations_AreComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/annotations.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for name, key := range annotationKeys(t) {
		// The operator sets the first two on objects. The others are documented in
		// rollout.md and production.md.
		if slices.Contains([]string{"AnnotationOwner", "AnnotationApplied", "AnnotationRolloutPaused", "AnnotationRotate"}, name) {
			continue
		}
		count++
		if !strings.Contains(string(text), "`"+key+"`") {
			t.Errorf("docs/reference/annotations.md does not name %s", key)
		}
	}
	known := slices.Collect(maps.Values(annotationKeys(t)))
	for _, word := range firstColumns(string(text)) {
		// The page lists annotations of other operators with their prefixes.
		if !slices.Contains(known, word) && !strings.Contains(word, "/") {
			t.Errorf("docs/reference/annotations.md names %s, which does not exist", word)
		}
	}
	if count < 15 {
		t.Errorf("only %d annotations were found", count)
	}
}

// firstColumns returns the words in backticks in the first columns of tables.
func firstColumns(page string) (words []string) {
	for line := range strings.SplitSeq(page, "\n") {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for i, part := range strings.Split(cell, "`") {
			if i%2 == 1 {
				words = append(words, part)
			}
		}
	}
	return words
}

// annotationKeys returns the annotations by the names of their constants, without their
// common prefix.
func annotationKeys(t *testing.T) map[string]string {
	t.Helper()
	keys := map[string]string{}
	file, err := parser.ParseFile(token.NewFileSet(), "annotations.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Annotation") {
			return true
		}
		value := spec.Values[0]
		if sum, ok := value.(*ast.BinaryExpr); ok {
			value = sum.Y
		}
		if text, ok := value.(*ast.BasicLit); ok {
			key, _ := strconv.Unquote(text.Value)
			keys[spec.Names[0].Name] = strings.TrimPrefix(key, "/")
		}
		return true
	})
	return keys
}

// constants returns the values of the package's constants by name, and which of the
// constants are events. The value of a constant that refers to another one is "=" and its
// name.
func constants(t *testing.T) (values map[string]string, events map[string]bool) {
	t.Helper()
	values, events = map[string]string{}, map[string]bool{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if i >= len(spec.Values) {
					continue
				}
				switch value := spec.Values[i].(type) {
				case *ast.BasicLit:
					values[name.Name], _ = strconv.Unquote(value.Value)
				case *ast.Ident:
					values[name.Name] = "=" + value.Name
				}
				events[name.Name] = strings.HasPrefix(name.Name, "Event") || events[name.Name]
			}
			return true
		})
	}
	for name, is := range events {
		if !is {
			delete(events, name)
		}
	}
	return values, events
}
