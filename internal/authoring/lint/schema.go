package lint

import (
	"strings"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/chartwright/chartwright/internal/chart/crd"
)

const schemaFile = "values.schema.json"

// schema applies the rules on values.schema.json and the CRD that is derived from
// it.
func (c *check) schema() error {
	data := c.Kind.Chart.Schema()
	for _, at := range c.Kind.Chart.Elsewhere {
		line := 0
		if before, _, found := strings.Cut(string(data), `"`+at.Ref+`"`); found && at.File == schemaFile {
			line = 1 + strings.Count(before, "\n")
		}
		c.findAsf(Warning, ruleSchemaLoss, location{at.File, line}, "$ref %s: other documents are never loaded, so this part of the schema accepts any value", at.Ref)
	}
	if len(data) == 0 {
		c.findf(ruleNoSchema, location{"Chart.yaml", 0}, "the chart has no %s", schemaFile)
		return nil
	}
	_, warnings, err := crd.Generate(c.Kind)
	if err != nil {
		c.findf(ruleSchemaUseless, location{schemaFile, 0}, "%v", err)
		return nil
	}
	// The YAML parser provides lines. It rejects JSON that is indented by tabs.
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
		if keyword == "$ref" && !warning.Checked {
			// Reported above, with the references that the CRD does not reach.
			continue
		}
		c.findAsf(severity, ruleSchemaLoss, location{schemaFile, lineIn(&root, warning.Path, keyword)}, "%s", warning)
	}
	return nil
}

// lineIn returns the line in a schema for a path in the custom resource: the line of
// the keyword if the schema of the path has it, otherwise that of the field.
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

// value returns the value of a key in a map, and the line of the key.
func value(node *yaml.Node, key string) (*yaml.Node, int) {
	if field := kyaml.NewRNode(node).Field(key); field != nil {
		return field.Value.YNode(), field.Key.YNode().Line
	}
	return nil, 0
}

// follow returns the schema that a $ref in the same file refers to, or the schema
// itself.
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
