package watches

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// HealthRule tells when objects of a kind are ready, in place of what the
// operator knows of the kind. Its fields are expressions in CEL over self, the
// object.
type HealthRule struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Ready is true of an object that is ready. Required.
	Ready string `json:"ready"`
	// Failed is true of an object that does not become ready by itself.
	Failed string `json:"failed,omitempty"`
	// Message says what an object waits for that is not ready.
	Message string `json:"message,omitempty"`
}

// GroupKind returns the kind of the objects. The rule holds in every version of
// it.
func (h HealthRule) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(h.APIVersion, h.Kind).GroupKind()
}

// HealthError reports something wrong with one field of a health rule.
func (w Watch) HealthError(rule int, field, message string) LineError {
	line := w.Line
	if rule < len(w.HealthLines) {
		line = w.HealthLines[rule][field]
	}
	return LineError{File: w.File, Line: line, Message: fmt.Sprintf("health[%d].%s: %s", rule, field, message)}
}

// checkHealth reports rules that select nothing, or select what others do.
// Expressions are compiled by the catalog.
func (p *parser) checkHealth(w *Watch, lines map[string]int) {
	seen := map[schema.GroupKind]int{}
	for i, rule := range w.Health {
		at := fmt.Sprintf("health[%d]", i)
		line := lines[at]
		gv, err := schema.ParseGroupVersion(rule.APIVersion)
		switch {
		case rule.APIVersion == "" || rule.Kind == "":
			p.problemf(line, "%s: expected both apiVersion and kind, for example apiVersion: example.com/v1, kind: Widget", at)
			continue
		case err != nil:
			p.problemf(line, "%s.apiVersion: %v", at, err)
			continue
		case gv.Group == "" && rule.Kind == "Secret":
			p.problemf(line, "%s: a rule for Secrets is not supported, because its message could reveal what they hold", at)
		}
		if first, twice := seen[rule.GroupKind()]; twice {
			p.problemf(line, "%s: health[%d] is a rule for %s, too: write one rule per kind, for all of its versions", at, first, rule.GroupKind())
		}
		seen[rule.GroupKind()] = i
		if strings.TrimSpace(rule.Ready) == "" {
			p.problemf(line, "%s has no ready: add an expression in CEL, for example ready: self.status.phase == 'Running'", at)
		}
	}
}

// itemKeyLines returns, for each item of a list, the lines of its keys.
func itemKeyLines(node *yaml.Node) []map[string]int {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.SequenceNode {
		return nil
	}
	lines := make([]map[string]int, len(node.Content))
	for i, item := range node.Content {
		lines[i] = keyLines(item)
	}
	return lines
}
