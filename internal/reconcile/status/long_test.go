package status

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/plan"
)

// TestCompute_CutsLongErrors: the API server must accept a status with a long error of a
// chart in several conditions.
func TestCompute_CutsLongErrors(t *testing.T) {
	long := "execution error: " + strings.Repeat("ä", 40000)
	definitions, err := crd.ReadFiles("../../../config/crd/bases")
	if err != nil {
		t.Fatal(err)
	}
	schema := definitions[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	limit := int(*schema.Properties["conditions"].Items.Schema.Properties["message"].MaxLength)
	v := viewOf([]string{dep}, withFailure(ofSpec, api.ReasonRenderFailed, true))
	v.Failure.Message = long
	repairFailure := Failure{Failure: plan.Failure{Target: plan.TargetOf(plan.StepRepair, v.Observation)}, Reason: api.EventRepairFailed, Message: long}
	v.RepairFailure, v.Observation.Unverified = &repairFailure, true
	s := Compute(v, plan.Decision{State: plan.StateFailed, Step: plan.StepWait}, []metav1.Condition{{Type: api.ConditionInitialized, Status: metav1.ConditionTrue}})
	found := 0
	for _, c := range s.Conditions {
		if len(c.Message) > limit/5 || !utf8.ValidString(c.Message) {
			t.Errorf("%s has %d bytes, limit %d", c.Type, len(c.Message), limit)
		}
		if strings.HasPrefix(c.Message, "execution error: ää") && strings.HasSuffix(c.Message, "ä…") {
			found++
		}
	}
	if found != 4 {
		t.Errorf("%d conditions have the message, want Ready, Stalled, Drifted and that of the operator-sdk: %v", found, conditions(s))
	}
}
