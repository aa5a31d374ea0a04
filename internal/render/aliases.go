package render

import (
	"strings"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// mostAliased is where it no longer matters how many there are.
const mostAliased = 1 << 30

// aliased is how many values of a YAML text stand in it by aliases alone. What
// is no YAML has none.
func aliased(text string) int {
	if !strings.Contains(text, "*") || !strings.Contains(text, "&") {
		return 0
	}
	documents, total := goyaml.NewDecoder(strings.NewReader(text)), 0
	for {
		var document goyaml.Node
		if err := documents.Decode(&document); err != nil {
			return total
		}
		counted := map[*goyaml.Node]int{}
		total = min(total+expanded(&document, counted)-len(counted), mostAliased)
	}
}

// expanded is how many values there are below a node, with those that aliases
// stand for.
func expanded(node *goyaml.Node, counted map[*goyaml.Node]int) int {
	if values, ok := counted[node]; ok {
		return values
	}
	// What contains itself is refused when it is read.
	counted[node] = 0
	values := 1
	if node.Alias != nil {
		values = expanded(node.Alias, counted)
	}
	for _, below := range node.Content {
		values = min(values+expanded(below, counted), mostAliased)
	}
	counted[node] = values
	return values
}
