package watches_test

import (
	"testing"

	"github.com/chartwright/chartwright/internal/watches"
)

func TestHealthRules_Rejected(t *testing.T) {
	const widget = "apiVersion: example.com/v1, kind: Widget"
	for _, test := range []refusal{
		{"no kind", []string{"health:", "- {apiVersion: v1, ready: 'true'}"}, []string{"watches.yaml:5: health[0]: expected both apiVersion and kind"}},
		{"no version", []string{"health:", "- {kind: Widget, ready: 'true'}"}, []string{"watches.yaml:5: health[0]: expected both apiVersion and kind"}},
		{"not a version", []string{"health:", "- {apiVersion: a/b/c, kind: Widget, ready: 'true'}"}, []string{"watches.yaml:5: health[0].apiVersion: unexpected GroupVersion"}},
		{"no ready", []string{"health:", "- {" + widget + ", failed: 'true'}"}, []string{"watches.yaml:5: health[0] has no ready: add an expression in CEL"}},
		{"an empty ready", []string{"health:", "- {" + widget + ", ready: ' '}"}, []string{"watches.yaml:5: health[0] has no ready"}},
		{"a kind twice", []string{"health:", "- {" + widget + ", ready: 'true'}", "- {apiVersion: example.com/v2, kind: Widget, ready: 'true'}"}, []string{"watches.yaml:6: health[1]: health[0] is already a rule for Widget.example.com"}},
		{"Secrets", []string{"health:", "- {apiVersion: v1, kind: Secret, ready: 'true'}"}, []string{"watches.yaml:5: health[0]: a rule for Secrets is not supported"}},
		{"an unknown key", []string{"health:", "- {" + widget + ", ready: 'true', current: 'true'}"}, []string{`watches.yaml:5: health: unknown field "current"`}},
		{"not a list", []string{"health: {ready: 'true'}"}, []string{"watches.yaml:4: health: expected "}},
		{"not a text", []string{"health:", "- {" + widget + ", ready: true}"}, []string{"watches.yaml:5: health.ready: expected a string, found a boolean"}},
	} {
		t.Run(test.name, test.run)
	}
}

func TestHealthRules_LinesOfTheirKeys(t *testing.T) {
	parsed, err := watches.Parse("watches.yaml", []byte(lines("- version: v1\n  kind: A\n  chart: a\n  health:\n    - apiVersion: example.com/v1\n      kind: Widget\n      ready: 'true'\n      failed: 'false'")))
	if err != nil {
		t.Fatal(err)
	}
	rule := parsed[0].Health[0]
	if rule.GroupKind().String() != "Widget.example.com" || rule.Ready != "true" || rule.Failed != "false" {
		t.Errorf("the rule is %+v", rule)
	}
	if got := parsed[0].ErrorAt("health[0].failed", "health[0].failed: %s", "is wrong").Error(); got != "watches.yaml:8: health[0].failed: is wrong" {
		t.Errorf("got %s", got)
	}
}
