package plugin

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
)

// TestCorrect_TakesTheOperatorsReportOfRules: the plugin does not know the health
// rules of the operator, and shows what follows from them.
func TestCorrect_TakesTheOperatorsReportOfRules(t *testing.T) {
	for reason, want := range map[string]metav1.ConditionStatus{
		"RuleNotReady": metav1.ConditionFalse, "RuleFailed": metav1.ConditionFalse, "RuleNotEvaluated": metav1.ConditionFalse,
		"NotReported": metav1.ConditionFalse,
		// The object was read after the report.
		"LessReady": metav1.ConditionTrue,
	} {
		x := &objectSearch{status: api.Status{Resources: &api.ResourcesStatus{
			Total: 1, NotReady: []api.ObjectStatus{{Kind: "Widget", Name: "a", Reason: reason, Message: "it serves 1 of 3"}},
		}}}
		f := found{objectOutput: objectOutput{Kind: "Widget", Name: "a", Ready: metav1.ConditionTrue}}
		x.correct(&f)
		if f.Ready != want || (f.Message == "") != (want == metav1.ConditionTrue) {
			t.Errorf("%s: %+v", reason, f.objectOutput)
		}
	}
}
