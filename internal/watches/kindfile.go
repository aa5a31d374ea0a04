package watches

import (
	"slices"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ParseKind reads a kind.yaml: one entry as a watches file has it, without the
// list around it and without a chart, which is the one beside the file. The
// name is used in messages alone.
//
// The error, if any, is of type LineErrors and holds every problem of the file.
func ParseKind(name string, data []byte) (Watch, error) {
	p := &parser{file: name, seen: map[schema.GroupKind]int{}, beside: true}
	const expected = "one entry with group, version and kind"
	var w Watch
	switch node := p.document(data, expected, "each kind has a folder of its own"); {
	case node == nil:
	case node.Kind != yaml.MappingNode:
		p.problemf(node.Line, "expected %s, found %s", expected, describe(node))
	default:
		w = p.entry(node)
	}
	slices.SortStableFunc(p.problems, func(a, b LineError) int { return a.Line - b.Line })
	return w, p.problems.Err()
}
