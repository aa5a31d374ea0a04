package watches

import (
	"fmt"
	"strings"
)

// MaxOutputs is the maximum number of outputs of an entry.
const MaxOutputs = 32

// Output is a result of a release that other custom resources and programs can use, such
// as an address or a password.
type Output struct {
	Name string `json:"name"`
	// Value is an expression in CEL over release, values, resources, observed and objects,
	// the objects of the release.
	Value string `json:"value"`
	// Sensitive outputs are published in a Secret only. An output that reads a Secret, or
	// values that may come from one, is always sensitive.
	Sensitive bool `json:"sensitive,omitempty"`
}

// checkOutputs reports invalid outputs. The catalog compiles the expressions.
func (p *parser) checkOutputs(w *Watch) {
	if len(w.Outputs) > MaxOutputs {
		p.problemf(w.Lines["outputs"], "outputs has %d items: expected at most %d", len(w.Outputs), MaxOutputs)
	}
	seen := map[string]int{}
	for i, output := range w.Outputs {
		at := fmt.Sprintf("outputs[%d]", i)
		line := w.Lines[at]
		first, twice := seen[output.Name]
		switch {
		case output.Name == "":
			p.problemf(line, "%s has no name: add one, for example name: host", at)
		case !fieldName.MatchString(output.Name):
			p.problemf(line, "%s.name: %q: expected letters, digits, - and _, not starting with a digit or -", at, output.Name)
		case twice:
			p.problemf(line, "%s.name: %s is already the name of outputs[%d]", at, output.Name, first)
		}
		seen[output.Name] = i
		if strings.TrimSpace(output.Value) == "" {
			p.problemf(line, "%s.value is empty: expected an expression in CEL, for example release.name + '.' + release.namespace", at)
		}
	}
}
