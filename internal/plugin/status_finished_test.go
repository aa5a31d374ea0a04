package plugin

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/inventory"
)

// TestStatus_FinishedJobThatIsGone: a Job that its TTL has deleted is reported as
// it finished, and any other object that is gone as gone.
func TestStatus_FinishedJobThatIsGone(t *testing.T) {
	gone := objectOutput{Kind: "Job", Name: "migrate", Ready: metav1.ConditionFalse, Reason: "Gone", Message: "it is not there"}
	for _, test := range []struct {
		name, outcome string
		object        objectOutput
		ready         metav1.ConditionStatus
		reason        string
	}{
		{"complete", inventory.Complete, gone, metav1.ConditionTrue, ""},
		{"failed", inventory.Failed, gone, metav1.ConditionFalse, "JobFailed"},
		{"not finished", "", gone, metav1.ConditionFalse, "Gone"},
		{"finished and still there", inventory.Complete, objectOutput{Ready: metav1.ConditionTrue}, metav1.ConditionTrue, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := found{objectOutput: test.object}
			f.finish(test.outcome)
			if f.Ready != test.ready || f.Reason != test.reason {
				t.Errorf("%+v, want %s and %q", f.objectOutput, test.ready, test.reason)
			}
		})
	}
}
