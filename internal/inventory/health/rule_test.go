package health

import (
	"strings"
	"testing"
)

func compiled(t *testing.T, ready, failed, message string) *Rule {
	t.Helper()
	rule, mistakes := Compile(ready, failed, message)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	return rule
}

func TestRule_Evaluate(t *testing.T) {
	const (
		isReady     = "self.status.stage == 'up'"
		isFailed    = "self.status.stage == 'broken'"
		explanation = "'stage ' + self.status.stage"
	)
	for _, test := range []struct {
		name                       string
		ready, failed, explanation string
		status                     string
		want, reason, message      string
	}{
		{"ready", isReady, isFailed, explanation, "{stage: up}", "ready", "", ""},
		{"not ready", isReady, isFailed, explanation, "{stage: warming}", "progressing", "RuleNotReady", "stage warming"},
		{"failed", isReady, isFailed, explanation, "{stage: broken}", "failed", "RuleFailed", "stage broken"},
		{"missing field is no failure", isReady, isFailed, explanation, "{}", "waiting", "RuleNotEvaluated", "no such key: stage"},
		{"missing status is no failure", isReady, isFailed, explanation, "", "waiting", "RuleNotEvaluated", "no such key: status"},
		{"failed cannot be evaluated", isReady, "self.status.fault != ''", explanation, "{stage: up}", "ready", "", ""},
		{"message cannot be evaluated", isReady, "", "self.status.text", "{stage: warming}", "progressing", "RuleNotReady", "ready is false"},
		{"no message", isReady, "", "", "{stage: warming}", "progressing", "RuleNotReady", "ready is false"},
		{"not a boolean", "self.status.stage", "", "", "{stage: up}", "waiting", "RuleNotEvaluated", "got a value of type string, want bool"},
		{"status for an older spec", isReady, isFailed, explanation, "{stage: up, observedGeneration: 1}", "progressing", "LatestGenerationNotObserved", "generation 1, want 2"},
		{"rule that reads observedGeneration", isReady + " && self.status.observedGeneration > 0", "", "", "{stage: up, observedGeneration: 1}", "ready", "", ""},
		{"too expensive", "range.all(a, range.all(b, range.all(c, a + b + c >= 0)))", "", "", "{}", "waiting", "RuleNotEvaluated", "exceeds the limit"},
		{"metadata", "self.metadata.name == 'a' && self.kind == 'Widget'", "", "", "", "ready", "", ""},
		{"optional fields", "self.?status.?stage.orValue('up') == 'up'", "", "", "", "ready", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			ready := strings.ReplaceAll(test.ready, "range", "lists.range(1000)")
			text := widget
			if test.status != "" {
				text += "status: " + test.status
			}
			got := Evaluate(parse(t, text), Kind{Rule: compiled(t, ready, test.failed, test.explanation)})
			if named(got) != test.want || got.Reason != test.reason || !strings.Contains(got.Message, test.message) {
				t.Errorf("got %s: %+v", named(got), got)
			}
		})
	}
}

func TestRule_OverridesTable(t *testing.T) {
	rollout := parse(t, `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: a, generation: 1}, status: {phase: Degraded}}`)
	if got := Evaluate(rollout, Kind{Rule: compiled(t, "true", "", "")}); !got.Ready {
		t.Errorf("got %+v", got)
	}
	configMap := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {done: "no"}}`)
	if got := Evaluate(configMap, Kind{Rule: compiled(t, "self.data.done == 'yes'", "", "")}); got.Ready {
		t.Errorf("got %+v", got)
	}
}

func TestCompile_RejectsInvalidExpressions(t *testing.T) {
	for _, test := range []struct{ ready, failed, message, want string }{
		{"self.status.", "", "", "ready: column 13: Syntax error"},
		{"object.status.ok", "", "", "ready: column 1: undeclared reference to 'object'"},
		{"'yes'", "", "", "ready: got an expression of type string, want bool"},
		{"true", "1 + 1", "", "failed: got an expression of type int, want bool"},
		{"true", "", "self.status.ready && true", "message: got an expression of type bool, want string"},
		{"now() > 1", "", "", "ready: column 4: undeclared reference to 'now'"},
	} {
		_, mistakes := Compile(test.ready, test.failed, test.message)
		if len(mistakes) != 1 || !strings.HasPrefix(mistakes[0].Error(), test.want) {
			t.Errorf("%+v: got %v", test, mistakes)
		}
	}
	if _, mistakes := Compile("a", "b", "c"); len(mistakes) != 3 {
		t.Errorf("got errors %v, want three", mistakes)
	}
}
