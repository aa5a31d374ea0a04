package lint

import (
	"strings"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/chartwright/chartwright/internal/chart/crd"
)

const schemaFile = "values.schema.json"

// schema applies the rules on values.schema.json and the CRD that is made of
// it.
func (c *check) schema() error {
	data := c.Kind.Chart.Schema()
	if len(data) == 0 {
		c.findf(ruleNoSchema, location{"Chart.yaml", 0}, "there is no %s", schemaFile)
		return nil
	}
	_, warnings, err := crd.Generate(c.Kind)
	if err != nil {
		c.findf(ruleSchemaUseless, location{schemaFile, 0}, "%v", err)
		return nil
	}
	// Read as YAML it has lines. With tabs it is JSON alone, and has none.
	var root yaml.Node
	if yaml.Unmarshal(data, &root) != nil {
		root = yaml.Node{}
	}
	for _, warning := range warnings {
		severity := Warning
		if warning.Checked {
			severity = Info
		}
		keyword, _, _ := strings.Cut(warning.Lost, " ")
		c.findAsf(severity, ruleSchemaLoss, location{schemaFile, lineIn(&root, warning.Path, keyword)}, "%s", warning)
	}
	return nil
}

// lineIn returns the line of a schema that speaks of a path of the custom
// resource, of a keyword there if it stands there.
func lineIn(root *yaml.Node, path, keyword string) int {
	if len(root.Content) == 0 {
		return 1
	}
	doc := root.Content[0]
	node, line := follow(doc, doc), doc.Line
	for step := range strings.SplitSeq(path, ".") {
		name, isList := strings.CutSuffix(step, "[*]")
		keys := []string{"properties", name}
		switch name {
		case "spec":
			keys = nil
		case "*":
			keys = []string{"additionalProperties"}
		}
		if isList {
			keys = append(keys, "items")
		}
		for i, key := range keys {
			inner, at := value(node, key)
			if inner == nil {
				return line
			}
			node = follow(doc, inner)
			if i > 0 || key != "properties" {
				line = at
			}
		}
	}
	if _, at := value(node, keyword); at > 0 {
		return at
	}
	return line
}

// value returns what a map has under a key, and the line of the key.
func value(node *yaml.Node, key string) (*yaml.Node, int) {
	if field := kyaml.NewRNode(node).Field(key); field != nil {
		return field.Value.YNode(), field.Key.YNode().Line
	}
	return nil, 0
}

// follow returns what a schema refers to, in the same file, or itself.
func follow(doc, node *yaml.Node) *yaml.Node {
	for range 10 {
		ref, _ := value(node, "$ref")
		if ref == nil || !strings.HasPrefix(ref.Value, "#/") {
			return node
		}
		target := doc
		for step := range strings.SplitSeq(ref.Value[2:], "/") {
			if target, _ = value(target, step); target == nil {
				return node
			}
		}
		node = target
	}
	return node
}
