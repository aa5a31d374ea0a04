package analysis_test

import (
	"slices"
	"strings"
	"testing"
	"text/template/parse"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

func TestWalk_VisitsEveryBranch(t *testing.T) {
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
			t.Errorf("%s: got line %d, want %d", name, lines[name], line)
		}
	}
}

func TestWalk_SkipsNodesBelowRejectedNode(t *testing.T) {
	file, err := analysis.Parse("a", `{{ if a }}{{ b }}{{ end }}{{ c }}`)
	if err != nil {
		t.Fatal(err)
	}
	var visited []string
	file.Walk(func(node parse.Node) bool {
		if n, ok := node.(*parse.IdentifierNode); ok {
			visited = append(visited, n.Ident)
		}
		return node.Type() != parse.NodeIf
	})
	if !slices.Equal(visited, []string{"c"}) {
		t.Errorf("visited %v, want only c", visited)
	}
}

func TestParse_ErrorHasFileAndLine(t *testing.T) {
	_, err := analysis.Parse("templates/a.yaml", "a\n{{ if }}")
	if err == nil || !strings.Contains(err.Error(), "templates/a.yaml:2") {
		t.Errorf("got error %v, want one at templates/a.yaml:2", err)
	}
}
