package chart

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// operands are the operands in generated templates.
var operands = []string{
	".Values.map", ".Values.list", ".Values.number", ".Values.float", ".Values.yes", ".Values.text", ".Values.none", ".Values.none.more",
	".Values.map.a", ".Values", "$", ".", "$x", "$.Values.list", "1", "-2", "1.5", `"text"`, `"a: [b"`, "true", "nil", `(toDate "2006" "2020")`, ".Values.number.more",
	".Chart.Name", ".Release", ".Capabilities.KubeVersion", ".Files", `(.Files.Get "a")`, ".Values.AsMap", ".Values.YAML", "$.Values.AsMap.list", `(.Values.Table "map")`,
	`(semver "1.2.3")`, `(semver "1.2.3").String`, "(list 1 2)", `(dict "k" "v")`, `(dict 1 nil).YAML`, "(.Values.map) 1", "(until 3)", ".Template.Name",
}

// calls are calls of functions, some with too many operands. No call creates a recursive
// value, because Helm would print it until the process crashes.
var calls = []string{
	"eq %s %s", "ne %s %s", "lt %s %s", "ge %s %s", "le %s %s", "gt %s %s", "eq %s %s %s", "eq %s", "int %s", "add %s %s", "toDecimal %s", "dict %s %s", "list %s %s", "toYaml %s", "toJson %s",
	"toToml %s", "toPrettyJson %s", "quote %s %s", "print %s %s", `printf "%%5v|%%q" %s %s`, "default %s %s", "first %s", "len %s", "index %s %s", "slice %s %s",
	"upper %s", "trimAll %s %s", "nindent 2 %s", "tpl %s $", "include %s $", `include "named" %s`, "required %s %s", "fromYaml %s", "join %s %s", "and %s %s", "or %s %s", "not %s",
	"merge (dict) %s", "set %s %s 1", "get %s %s", "has %s %s", "kindOf %s", "typeOf %s", "regexMatch %s %s", "sortAlpha %s", "concat %s %s", "ternary %s %s %s", "$.Files.Get %s", "$.Files.Glob %s", "$.Values.Table %s", "call %s %s", "upper $.Values.YAML %s",
}

// blocks are actions that contain other templates.
var blocks = []string{
	"{{ if %s }}%s{{ else }}no{{ end }}", "{{ with %s }}%s{{ end }}", "{{ range %s }}%s{{ else }}none{{ end }}", "{{ range $x := %s }}%s{{ end }}",
	"{{ range $i, $x := %s }}{{ if $i }}{{ break }}{{ end }}%s{{ end }}", "{{ range $i, $x = %s }}%s{{ end }}", "{{ range %s }}{{ continue }}%s{{ end }}",
	"{{ $x = %s }}%s", "{{ $x := %s }}%s", "{{- %s -}} \n %s", "{{ template \"named\" %s }}%s", "{{ with $x }}{{ else with %s }}%s{{ end }}", "{{ block \"b\" %s }}%s{{ end }}",
}

// draw selects a shape and replaces each %s in it by a result of with.
func draw(t *rapid.T, of []string, with func() string) string {
	shape := rapid.SampledFrom(of).Draw(t, "shape")
	var all []any
	for range strings.Count(shape, "%s") {
		all = append(all, with())
	}
	return fmt.Sprintf(shape, all...)
}

func expression(t *rapid.T, depth int) string {
	of := operands
	if engine.Major == 4 {
		// All data has the chart's metadata, which is a map in Helm 4 and prints as one.
		of = slices.DeleteFunc(slices.Clone(of), func(operand string) bool { return operand == "$" || operand == "." })
	}
	operand := func() string { return rapid.SampledFrom(of).Draw(t, "operand") }
	if depth == 0 {
		return operand()
	}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return operand()
	case 1:
		return expression(t, depth-1) + " | " + draw(t, calls, operand)
	case 2:
		return expression(t, depth-1) + " | " + rapid.SampledFrom([]string{"quote", "upper", "toYaml", "eq 1", "$.Files.Get", "$.Files.Glob", "len", "default 1", "int"}).Draw(t, "filter")
	default:
		return draw(t, calls, func() string { return "(" + expression(t, depth-1) + ")" })
	}
}

func body(t *rapid.T, depth int) string {
	if depth == 0 {
		return "{{ " + expression(t, 1) + " }}"
	}
	first := true
	return draw(t, blocks, func() string {
		if first {
			first = false
			return expression(t, 2)
		}
		return body(t, depth-1)
	})
}

// Helm and package render must return the same output or the same error for random
// templates.
func TestRender_RandomTemplatesMatchHelm(t *testing.T) {
	folder := small().with("a", "of a file").with("templates/_named.tpl", `{{ define "named" }}<{{ . }}>{{ end }}`)
	renderer := render.New(patient())
	rendered, failed := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		text := "{{ $x := 1 }}" + body(r, rapid.IntRange(0, 2).Draw(r, "depth"))
		values := func() map[string]any {
			return map[string]any{
				"map": map[string]any{"a": "1", "b": []any{int64(1), nil}}, "list": []any{"b", "a", nil, int64(3)},
				"number": int64(7), "float": 1.25, "yes": true, "text": "named",
			}
		}
		c := &Chart{chart: folder.with("templates/any.yaml", text).unchecked(t)}
		want, wantErr := renderByHelm(c, values())
		got, err := renderByPackage(t, renderer, c, values())
		// A template that includes itself exceeds the limit of package render one call
		// earlier than Helm's.
		if _, limited := errors.AsType[*render.LimitError](err); limited && wantErr != nil && strings.Contains(wantErr.Error(), "nested reference name") {
			failed++
			return
		}
		// If a method returns nil, package render passes an untyped nil to a function,
		// which accepts it. Helm passes a nil of type any, which the function rejects.
		if wantErr != nil && strings.Contains(wantErr.Error(), "wrong type for value") && strings.Contains(wantErr.Error(), "got interface {}") {
			failed++
			return
		}
		// If the result of a method is passed to a function that fails, the error of
		// package render contains the name of the counting function.
		if errorText(wantErr) != errorText(err) && (wantErr == nil || err == nil || !strings.Contains(err.Error(), "chartwright_")) {
			r.Fatalf("%s\ngot error  %v\nwant Helm's %v", text, err, wantErr)
		}
		if wantErr != nil {
			failed++
			return
		}
		rendered++
		for name := range want {
			if want[name] != got[name] {
				r.Fatalf("%s\ngot         %q\nwant Helm's %q", text, got[name], want[name])
			}
		}
	})
	t.Logf("%d templates rendered, %d failed", rendered, failed)
	if !t.Failed() && (rendered == 0 || failed == 0) {
		t.Errorf("%d templates rendered and %d failed, want at least one each", rendered, failed)
	}
}
