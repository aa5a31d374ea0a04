package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/record"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

// concluding returns a Reconciler and the recorder of its events.
func concluding() (*Reconciler, *record.FakeRecorder) {
	events := record.NewFakeRecorder(9)
	return &Reconciler{Shared: Shared{Recorder: events, Index: release.NewIndex(func(release.Record) {}), Now: time.Now}}, events
}

// TestConclude_SuccessForgetsFailure: a successful step forgets only failures of its
// own type. Steps that only mark or read a record forget none.
func TestConclude_SuccessForgetsFailure(t *testing.T) {
	for _, test := range []struct {
		step            plan.Step
		failure, repair bool
	}{
		{plan.StepUninstall, true, false},
		{plan.StepOrphan, true, false},
		{plan.StepAdopt, true, false},
		{plan.StepUnlock, true, false},
		{plan.StepRepair, false, true},
		{plan.StepVerify, false, true},
		{plan.StepTidy, false, false},
		{plan.StepResume, false, false},
		{plan.StepRefuse, false, false},
		{plan.StepTest, false, false},
		{plan.StepDiagnose, false, false},
	} {
		t.Run(string(test.step), func(t *testing.T) {
			if _, ok := actions[test.step]; !ok {
				t.Fatal("the step is not an action")
			}
			r, _ := concluding()
			r.memory.put("", false, failedWith(wanted, "R", "m"))
			r.memory.put("", true, failedWith("repaired", "R", "m"))
			r.conclude(t.Context(), viewOf([]string{dep, sup}), plan.Decision{Step: test.step}, nil)
			if forgotten := r.memory.of("").failure == nil; forgotten != test.failure {
				t.Errorf("failure of the upgrade forgotten: %v, want %v", forgotten, test.failure)
			}
			if forgotten := r.memory.of("").repairFailure == nil; forgotten != test.repair {
				t.Errorf("failure of the repair forgotten: %v, want %v", forgotten, test.repair)
			}
		})
	}
}

// TestConclude_EmitsEventForNews: a step without news emits no event.
func TestConclude_EmitsEventForNews(t *testing.T) {
	held := marked(release.Marks{Held: &release.Held{Revision: 1}})
	for _, test := range []struct {
		name string
		step plan.Step
		v    *snapshot
		want string
	}{
		{"a hold ends", plan.StepResume, viewOf([]string{dep, sup}, held), "Normal Resumed Release web follows the spec again"},
		{"a resume without a hold", plan.StepResume, viewOf([]string{dep, sup}), ""},
		{"a request is refused", plan.StepRefuse, viewOf([]string{dep, sup}), ""},
		{"inconsistent records are tidied", plan.StepTidy, viewOf([]string{dep, sup}), ""},
		{"a verification", plan.StepVerify, viewOf([]string{dep, sup}), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, events := concluding()
			r.conclude(t.Context(), test.v, plan.Decision{Step: test.step}, nil)
			close(events.Events)
			if got := <-events.Events; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if more, ok := <-events.Events; ok {
				t.Errorf("unexpected second event %q", more)
			}
		})
	}
}

func TestExplain_ReasonOfError(t *testing.T) {
	for _, test := range []struct {
		err     error
		reason  string
		stalled bool
	}{
		{errors.New("no connection"), api.ReasonUpgradeFailed, false},
		{chart.ErrInvalidValues, api.ReasonInvalidValues, true},
		{chart.ErrRender, api.ReasonRenderFailed, true},
		{helm.ErrConflict, api.ReasonObjectConflict, true},
		{release.ErrTooLarge, api.ReasonTooLarge, true},
		{helm.ErrNotAllowed, api.ReasonNotAllowed, true},
		{helm.ErrRefused, api.ReasonRefused, true},
		{helm.ErrApprovalRequired, api.ReasonApprovalRequired, true},
		{helm.ErrProtected, api.ReasonObjectProtected, true},
		{helm.ErrWaiting, api.ReasonWaitingForObjects, false},
	} {
		err := fmt.Errorf("upgrade: %w", test.err)
		got := explain(actions[plan.StepUpgrade], err)
		want := status.Failure{Reason: test.reason, Message: err.Error(), Stalled: test.stalled}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.err, diff)
		}
	}
}
