package analysis_test

import (
	"slices"
	"strings"
	"testing"
	"text/template/parse"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

func TestWalkSeesEveryBranch(t *testing.T) {
	file, err := analysis.Parse("templates/a.yaml", `{{ if a }}{{ b | c (d "x") }}{{ else if e }}{{ f }}{{ else }}{{ g }}{{ end }}
{{ range $i := h }}{{ i }}{{ end }}{{ with (j).k }}{{ template "x" l }}{{ template "y" }}{{ end }}
{{ define "m" }}{{ n }}{{ end }}{{ $o := p }}`)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	file.Walk(func(node parse.Node) bool {
		if n, ok := node.(*parse.IdentifierNode); ok {
			lines[n.Ident] = file.Line(n.Position())
		}
		return true
	})
	for name, line := range map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 2, "i": 2, "j": 2, "l": 2, "n": 3, "p": 3} {
		if lines[name] != line {
			t.Errorf("%s is seen on line %d, want %d", name, lines[name], line)
		}
	}
}

func TestWalkStopsWhereItIsTold(t *testing.T) {
	file, err := analysis.Parse("a", `{{ if a }}{{ b }}{{ end }}{{ c }}`)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	file.Walk(func(node parse.Node) bool {
		if n, ok := node.(*parse.IdentifierNode); ok {
			seen = append(seen, n.Ident)
		}
		return node.Type() != parse.NodeIf
	})
	if !slices.Equal(seen, []string{"c"}) {
		t.Errorf("saw %v", seen)
	}
}

func TestParseTellsWhere(t *testing.T) {
	_, err := analysis.Parse("templates/a.yaml", "a\n{{ if }}")
	if err == nil || !strings.Contains(err.Error(), "templates/a.yaml:2") {
		t.Errorf("error %v", err)
	}
}
