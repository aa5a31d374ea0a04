package plugin

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
)

func waitingFor(digest string) *unstructured.Unstructured {
	status := map[string]any{}
	if digest != "" {
		status["plan"] = map[string]any{"digest": digest, "summary": "upgrade that would delete a claim"}
	}
	return &unstructured.Unstructured{Object: map[string]any{"status": status}}
}

func TestApproval_ApprovesOnlyThePlanThatWaits(t *testing.T) {
	for _, test := range []struct{ name, waits, plan, value, err string }{
		{"the plan that waits", "a", "", "a", ""},
		{"the named plan", "a", "a", "a", ""},
		{"another plan", "b", "a", "", "the plan that waits is b"},
		{"no plan", "", "", "", "no plan waits"},
		{"no plan, named", "", "a", "", "no plan waits"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := approval(target{name: "web"}, waitingFor(test.waits), test.plan)
			if r.value != test.value || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q, %v; want %q, %q", r.value, err, test.value, test.err)
			}
			if err == nil && r.annotation != api.AnnotationApprove {
				t.Errorf("the annotation is %s", r.annotation)
			}
		})
	}
}

func TestJudgeApprove_WaitsForTheAction(t *testing.T) {
	condition := func(state metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: api.ConditionReady, Status: state, Reason: reason}}
	}
	for _, test := range []struct {
		name   string
		status api.Status
		want   outcome
	}{
		{"waits", api.Status{Plan: &api.PlanStatus{Digest: "a"}, Conditions: condition(metav1.ConditionFalse, api.ReasonApprovalRequired)}, outcomeOpen},
		{"runs", api.Status{Conditions: condition(metav1.ConditionUnknown, api.ReasonUpgrading)}, outcomeOpen},
		{"done", api.Status{Conditions: condition(metav1.ConditionTrue, api.ReasonDeployed)}, outcomeDone},
		{"failed", api.Status{Conditions: condition(metav1.ConditionFalse, api.ReasonUpgradeFailed)}, outcomeFailed},
		{"another plan", api.Status{Plan: &api.PlanStatus{Digest: "b"}, Conditions: condition(metav1.ConditionFalse, api.ReasonApprovalRequired)}, outcomeFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := judgeApprove("a", &unstructured.Unstructured{}, test.status); got.outcome != test.want {
				t.Errorf("got %q (%s), want %q", got.outcome, got.message, test.want)
			}
		})
	}
}
