package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestDocsNameEveryEvent by the word that kubectl describe shows.
func TestDocsNameEveryEvent(t *testing.T) {
	text, err := os.ReadFile("../../docs/observing.md")
	if err != nil {
		t.Fatal(err)
	}
	values, events := constants(t)
	for name, value := range values {
		// One that is another's word has no value of its own.
		for strings.HasPrefix(value, "=") {
			value = values[value[1:]]
		}
		if events[name] && !strings.Contains(string(text), "`"+value+"`") {
			t.Errorf("docs/observing.md does not name the event %s", value)
		}
	}
	if len(events) < 20 {
		t.Errorf("only %d events were found", len(events))
	}
}

// constants returns those of the package by their name, "=" and a name for one
// that is equal to another, and which of them are events.
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
