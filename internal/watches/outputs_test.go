package watches_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/watches"
)

func TestOutputs_Rejected(t *testing.T) {
	many := make([]string, watches.MaxOutputs+1)
	for i := range many {
		many[i] = fmt.Sprintf("{name: o%d, value: '1'}", i)
	}
	for _, test := range []refusal{
		{"a map", []string{"outputs: {host: release.name}"}, []string{"watches.yaml:4: outputs: expected a list, found a map"}},
		{"no name", []string{"outputs:", "- {value: release.name}"}, []string{"watches.yaml:5: outputs[0] has no name: add one, for example name: host"}},
		{"an invalid name", []string{"outputs: [{name: a.b, value: release.name}]"}, []string{`watches.yaml:4: outputs[0].name: "a.b": expected letters, digits, - and _`}},
		{"the same name twice", []string{"outputs:", "- {name: a, value: '1'}", "- {name: a, value: '2'}"}, []string{"watches.yaml:6: outputs[1].name: a is already the name of outputs[0]"}},
		{"no value", []string{"outputs: [{name: a}]"}, []string{"watches.yaml:4: outputs[0].value is empty: expected an expression in CEL"}},
		{"too many", []string{"outputs: [" + strings.Join(many, ", ") + "]"}, []string{"watches.yaml:4: outputs has 33 items: expected at most 32"}},
		{"a status field of this name", []string{"status: {outputs: release.name}"}, []string{"watches.yaml:4: status.outputs: the name is reserved"}},
	} {
		test.run(t)
	}
}
