package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// An outage says nothing about the custom resource, whatever wraps it.
func TestExplain_OutageIsTransient(t *testing.T) {
	overloaded := apierrors.NewServiceUnavailable("too busy")
	for _, wraps := range []error{
		chart.ErrRender, chart.ErrInvalidValues, helm.ErrConflict, helm.ErrRefused, helm.ErrNotAllowed, release.ErrUntrusted, helm.ErrNotAdoptable,
	} {
		r, events := concluding()
		v := viewOf([]string{dep, sup})
		r.memory.with(v.CR.GetUID(), func(*remembered) {})
		err := fmt.Errorf("%w: %w", wraps, overloaded)
		r.conclude(t.Context(), v, plan.Decision{Step: plan.StepUpgrade}, err)
		f := r.memory.of(v.CR.GetUID()).failure
		if f == nil || f.Reason != api.ReasonUpgradeFailed || f.Stalled || !f.Transient || f.Transients != 1 {
			t.Errorf("%v: the failure is %+v", err, f)
		}
		if event := <-events.Events; !strings.HasPrefix(event, "Warning UpgradeFailed "+err.Error()+". The API server") || !strings.HasSuffix(event, "check their logs") {
			t.Errorf("the event is %q", event)
		}
	}
}

// A release whose namespace is being deleted waits visibly, unless its custom resource goes too.
func TestConclude_TerminatingNamespace(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New("because it is being terminated"))
	forbidden.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, goesToo := range []bool{false, true} {
		r, _ := concluding()
		r.Actions = &recordedActions{terminating: goesToo}
		v := viewOf([]string{dep, sup})
		v.CR.SetNamespace("apps")
		r.conclude(t.Context(), v, plan.Decision{Step: plan.StepInstall}, fmt.Errorf("create: %w", forbidden))
		f := r.memory.of(v.CR.GetUID()).failure
		if goesToo != (f == nil) {
			t.Errorf("the custom resource goes, too: %v: the failure is %+v", goesToo, f)
		}
		if f != nil && (f.Reason != api.ReasonNamespaceTerminating || f.Stalled || !f.Transient) {
			t.Errorf("the failure is %+v", f)
		}
	}
}

// An action that finds another state again and again is a failure, and is retried with backoff.
func TestConclude_LastingConcurrentChange(t *testing.T) {
	for reason, cause := range map[string]error{
		api.ReasonUpgradeFailed:      fmt.Errorf("%w: record web.v1 no longer exists", release.ErrStale),
		api.ReasonDependencyNotReady: &dependencyError{"Waits for ConfigMap dep: not received"},
	} {
		t.Run(reason, func(t *testing.T) {
			r, events := concluding()
			now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
			r.Now = func() time.Time { return now }
			v := viewOf([]string{dep, sup})
			uid := v.CR.GetUID()
			r.memory.with(uid, func(*remembered) {})
			attempt := func(step plan.Step, err error) *status.Failure {
				now = now.Add(time.Second)
				r.conclude(t.Context(), v, plan.Decision{Step: step}, err)
				return r.memory.of(uid).failure
			}
			for range 3 {
				attempt(plan.StepUpgrade, cause)
			}
			if f := attempt(plan.StepTidy, nil); f != nil {
				t.Errorf("after three seconds and a success: %+v", f)
			}
			for range 3 {
				if f := attempt(plan.StepUpgrade, cause); f != nil {
					t.Errorf("at once: %+v", f)
				}
			}
			for range 9 {
				attempt(plan.StepUpgrade, cause)
			}
			f := attempt(plan.StepUpgrade, cause)
			if f == nil || f.Reason != reason || f.Message != cause.Error() || f.Stalled || f.Transients != f.Attempts || f.Attempts != 10 {
				t.Errorf("the failure is %+v", f)
			}
			if wait := f.Next().Sub(now); wait != 30*time.Second {
				t.Errorf("the next attempt is after %s", wait)
			}
			if event := <-events.Events; event != "Warning "+reason+" "+cause.Error() || len(events.Events) > 0 {
				t.Errorf("the event is %q, and %d follow", event, len(events.Events))
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
