package reconcile

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// concluding serves a kind of which somebody notes the events.
func concluding() (*Reconciler, *record.FakeRecorder) {
	events := record.NewFakeRecorder(9)
	return &Reconciler{Shared: Shared{Recorder: events, Index: release.NewIndex(func(release.Record) {}), Now: time.Now}}, events
}

// TestConcludeForgets: what goes well ends the failures of its own sort. What
// only marks a record, or asks, ends none.
func TestConcludeForgets(t *testing.T) {
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
				t.Fatal("it is no action")
			}
			r, _ := concluding()
			r.memory.put("", false, failedWith(wanted, "R", "m"))
			r.memory.put("", true, failedWith("repaired", "R", "m"))
			r.conclude(t.Context(), viewOf([]string{dep, sup}), plan.Decision{Step: test.step}, nil)
			if forgotten := r.memory.of("").failure == nil; forgotten != test.failure {
				t.Errorf("an upgrade's failure is forgotten: %v, want %v", forgotten, test.failure)
			}
			if forgotten := r.memory.of("").repairFailure == nil; forgotten != test.repair {
				t.Errorf("a repair's failure is forgotten: %v, want %v", forgotten, test.repair)
			}
		})
	}
}

// TestConcludeTells: what is news, and nothing else.
func TestConcludeTells(t *testing.T) {
	held := marked(release.Marks{Held: &release.Held{Revision: 1}})
	for _, test := range []struct {
		name string
		step plan.Step
		v    *snapshot
		want string
	}{
		{"a hold ends", plan.StepResume, viewOf([]string{dep, sup}, held), "Normal Resumed Release web follows the spec again"},
		{"no hold ends", plan.StepResume, viewOf([]string{dep, sup}), ""},
		{"a request is refused", plan.StepRefuse, viewOf([]string{dep, sup}), ""},
		{"a second deployed revision is superseded", plan.StepTidy, viewOf([]string{dep, sup}), ""},
		{"something is verified", plan.StepVerify, viewOf([]string{dep, sup}), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, events := concluding()
			r.conclude(t.Context(), test.v, plan.Decision{Step: test.step}, nil)
			close(events.Events)
			if got := <-events.Events; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if more, ok := <-events.Events; ok {
				t.Errorf("and then %q", more)
			}
		})
	}
}
