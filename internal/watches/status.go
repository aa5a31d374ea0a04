package watches

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/chartwright/chartwright/internal/api"
)

// fieldName is what a field of the status may be called.
var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// builtIn are the fields of the status that every kind has.
var builtIn = func() []string {
	fields := reflect.VisibleFields(reflect.TypeFor[api.Status]())
	names := make([]string, 0, len(fields)+1)
	for _, f := range fields {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	// What is told of the release's objects is one of them in any case.
	names = append(names, "resources")
	slices.Sort(names)
	return slices.Compact(names)
}()

// checkStatus reports fields that cannot be told. Expressions are the catalog's
// to compile.
func (p *parser) checkStatus(w *Watch) {
	for _, name := range slices.Sorted(maps.Keys(w.Status)) {
		line := w.StatusLines[name]
		switch {
		case slices.Contains(builtIn, name):
			p.problemf(line, "status.%s: every kind has a field of that name: choose another, which is none of %s", name, strings.Join(builtIn, ", "))
		case !fieldName.MatchString(name):
			p.problemf(line, "status: %q is no name of a field: expected letters, digits, - and _, and no digit first", name)
		}
		if strings.TrimSpace(w.Status[name]) == "" {
			p.problemf(line, "status.%s is empty: expected an expression in CEL, for example size(observed.pods)", name)
		}
	}
}

// keyLines returns the line of each key of a map.
func keyLines(node *yaml.Node) map[string]int {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	lines := map[string]int{}
	if node.Kind != yaml.MappingNode {
		return lines
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		lines[node.Content[i].Value] = node.Content[i].Line
	}
	return lines
}
