package reconcile

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/go-logr/logr"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// stateCase is a world in one state of plan's chain.
type stateCase struct {
	state   plan.State
	name    string
	arrange func(*world)
	// decided lists the states that the reconciliation passes through; nil means the
	// one state.
	decided []plan.State
	// ready is the condition Ready that is written. If an action waits for a slot, it
	// is written when the action has waited for long.
	ready string
	// after is RequeueAfter. While an action waits, it is slowQueue instead.
	after time.Duration
	// unguarded reports that the finalizer is removed.
	unguarded bool

	// action is the action that runs in a slot of the pool; empty if the reconciliation does
	// everything itself. The test lets the action fail: failed is the event, and
	// failedReady the condition Ready that the next reconciliation writes. The next
	// reconciliation finds the same state and waits for the backoff of a second, unless
	// next and again are set.
	action, failed, failedReady string
	next                        plan.State
	again                       time.Duration
}

// storeInSync stores a deployed revision whose object is intact.
func storeInSync(w *world) {
	w.stored(1, api.StatusDeployed)
	w.applied()
}

// storeHold stores a hold on revision 1.
func storeHold(w *world) {
	marks := release.Marks{Held: &release.Held{Revision: 1, From: 2, Spec: w.spec}}
	w.stored(1, api.StatusSuperseded)
	w.stored(2, api.StatusSuperseded)
	var labels []string
	for key, value := range marks.Labels() {
		labels = append(labels, key, value)
	}
	w.stored(3, api.StatusDeployed, label(labels...))
	w.applied()
}

var stateCases = []stateCase{
	{state: plan.StateBusy, arrange: func(w *world) { storeInSync(w); w.running(webKey, ownUID); w.after(slow) }, ready: "Unknown Upgrading"},
	{state: plan.StateDeleted, arrange: func(w *world) { w.deleted(); w.memory.with(ownUID, func(m *remembered) { m.uninstalled = true }) }, unguarded: true},
	{state: plan.StateInUse, arrange: storeInUse, ready: "False InUse"},
	{state: plan.StateDeleting, arrange: func(w *world) { storeInSync(w); w.deleted() }, action: "Uninstall", ready: "False Uninstalling", failed: "Warning UninstallFailed", failedReady: "False UninstallFailed"},
	{state: plan.StatePaused, arrange: func(w *world) { storeInSync(w); w.annotate(api.AnnotationPause, "true") }, ready: "True Deployed"},
	{state: plan.StateConflict, arrange: func(w *world) {
		for _, name := range catalog.ReleaseNames("web", "Web") {
			w.stored(1, api.StatusDeployed, named(name), label(api.LabelOwnerUID, "another"), annotation(api.AnnotationOwner, "Web.example.com/apps/another"))
		}
	}, ready: "False ReleaseNameConflict", after: 5 * time.Minute},
	{state: plan.StateUnguarded, arrange: func(w *world) { w.apiServer.cr.SetFinalizers(nil) },
		decided: []plan.State{plan.StateUnguarded, plan.StateAbsent}, action: "Install", ready: "Unknown Installing", failed: "Warning InstallFailed", failedReady: "False InstallFailed"},
	{state: plan.StateStripped, arrange: func(w *world) { w.stored(1, api.StatusDeployed, annotation(api.AnnotationOwner, "")) }, action: "Restore", ready: "True Deployed", failed: "Warning RepairFailed", failedReady: "True Deployed"},
	{state: plan.StateLocked, arrange: func(w *world) { w.stored(1, api.StatusPendingUpgrade) }, action: "MarkFailed", ready: "Unknown Interrupted", failed: "Warning Interrupted", failedReady: "False Interrupted"},
	{state: plan.StateUntidy, arrange: func(w *world) { w.stored(1, api.StatusDeployed); w.stored(2, api.StatusDeployed) }, action: "Tidy", ready: "True Deployed", failed: "Warning UpgradeFailed", failedReady: "False UpgradeFailed"},
	{state: plan.StateUninstalling, arrange: func(w *world) { w.stored(1, api.StatusUninstalling) }, action: "Uninstall", ready: "False Uninstalling", failed: "Warning UninstallFailed", failedReady: "False Uninstalling"},
	{state: plan.StateRollbackRequested, arrange: func(w *world) {
		w.stored(1, api.StatusSuperseded)
		w.stored(2, api.StatusDeployed)
		w.applied()
		w.annotate(api.AnnotationRollbackTo, "1")
	}, action: "Rollback", ready: "Unknown RollingBack", failed: "Warning RollbackFailed", failedReady: "False RollbackFailed"},
	{state: plan.StateRollbackRequested, name: "impossible", arrange: func(w *world) {
		storeInSync(w)
		w.annotate(api.AnnotationRollbackTo, "7")
	}, action: "Mark", ready: "True Deployed", failed: "Warning RollbackFailed", failedReady: "False RollbackFailed"},
	{state: plan.StateAborted, arrange: func(w *world) {
		w.stored(1, api.StatusFailed)
		w.annotate(api.AnnotationAbort, "1")
	}, ready: "False Aborted"},
	{state: plan.StateDrifted, arrange: func(w *world) {
		w.stored(1, api.StatusDeployed)
		changed := w.applied()
		changed.Fingerprint, changed.ResourceVersion = 2, "6"
		w.Inventory.Put(changed)
	}, action: "Repair", ready: "True Deployed", failed: "Warning RepairFailed", failedReady: "True Deployed"},
	{state: plan.StateWaiting, arrange: func(w *world) { dependent(w) }, ready: "False DependencyNotReady"},
	{state: plan.StateUnverified, arrange: func(w *world) {
		w.stored(1, api.StatusDeployed)
		w.Namespaces = []string{"another value"}
	}, action: "Verify", ready: "True Deployed", failed: "Warning RepairFailed", failedReady: "False InvalidValues", next: plan.StateInvalid},
	{state: plan.StateInvalid, arrange: func(w *world) { w.Namespaces = []string{"another value"} }, ready: "False InvalidValues"},
	{state: plan.StateMoving, arrange: func(w *world) { storeInSync(w); w.movesTo("other") }, action: "Uninstall", ready: "False Uninstalling", failed: "Warning UninstallFailed", failedReady: "False UninstallFailed"},
	{state: plan.StateAbsent, arrange: func(*world) {}, action: "Install", ready: "Unknown Installing", failed: "Warning InstallFailed", failedReady: "False InstallFailed"},
	{state: plan.StateUnmanaged, arrange: func(w *world) {
		w.stored(1, api.StatusDeployed, label(api.LabelOwnerUID, "", api.LabelOperator, "", api.LabelRevision, ""))
	}, action: "Adopt", ready: "Unknown Adopting", failed: "Warning AdoptionFailed", failedReady: "False AdoptionFailed"},
	{state: plan.StateFailed, arrange: func(w *world) { w.stored(1, api.StatusSuperseded); w.stored(2, api.StatusFailed) }, action: "Upgrade", ready: "Unknown Upgrading", failed: "Warning UpgradeFailed", failedReady: "False UpgradeFailed"},
	{state: plan.StateOutOfSync, arrange: func(w *world) {
		w.stored(1, api.StatusDeployed, label(api.LabelInputDigest, "older", api.LabelValuesDigest, "older"))
		w.applied()
	}, action: "Upgrade", ready: "Unknown Upgrading", failed: "Warning UpgradeFailed", failedReady: "False UpgradeFailed", next: plan.StateFailed, again: time.Second},
	{state: plan.StateDue, arrange: func(w *world) { storeInSync(w); w.annotate(api.AnnotationReconcile, "now") }, action: "Verify", ready: "True Deployed", failed: "Warning RepairFailed", failedReady: "True Deployed"},
	{state: plan.StateUnrecorded, arrange: func(w *world) {
		w.stored(1, api.StatusDeployed, annotation(release.AnnotationInventory, `{"finished":{"apps/job":"Complete"}}`))
		w.applied()
	}, action: "Record", ready: "True Deployed", failed: "Warning RepairFailed", failedReady: "True Deployed"},
	{state: plan.StateUnsigned, arrange: func(w *world) { storeInSync(w); w.actions.signed = false }, action: "Sign", ready: "True Deployed", failed: "Warning RepairFailed", failedReady: "True Deployed"},
	{state: plan.StateUntested, arrange: func(w *world) { storeInSync(w); w.annotate(api.AnnotationTest, "now") }, action: "Test", ready: "True Deployed", failed: "Warning TestsFailed", failedReady: "True Deployed"},
	{state: plan.StateUnready, arrange: func(w *world) {
		w.stored(1, api.StatusDeployed)
		w.Inventory.Remove(w.applied())
		w.Kind.Drift.Mode = watches.DriftWarn
		_, _ = w.Reconcile(context.Background(), ctrl.Request{NamespacedName: webKey})
		w.after(firstDiagnosis)
	}, action: "Why", ready: "False Progressing", failed: "Warning DriftDetected", failedReady: "False Progressing", after: 10*time.Minute - 25*time.Second, next: plan.StateInSync, again: firstDiagnosis},
	{state: plan.StateHeld, arrange: storeHold, ready: "True Deployed"},
	{state: plan.StatePostponed, arrange: func(w *world) {
		w.Kind.Rollout.Paused = true
		w.stored(1, api.StatusDeployed, label(api.LabelInputDigest, "older", api.LabelChartDigest, "older"))
		w.applied()
	}, ready: "True Deployed"},
	{state: plan.StateInSync, arrange: storeInSync, ready: "True Deployed"},
}

// TestReconcile_EveryState drives Reconcile through every state of plan's chain. An
// action waits for the only slot of the pool until the test ends the action that
// has it.
func TestReconcile_EveryState(t *testing.T) {
	for _, state := range allStates(t) {
		if !slices.ContainsFunc(stateCases, func(c stateCase) bool { return c.state == state }) {
			t.Errorf("no case for state %s", state)
		}
	}
	for _, test := range stateCases {
		t.Run(strings.TrimSpace(string(test.state)+" "+test.name), func(t *testing.T) {
			w := newWorld(t)
			test.arrange(w)
			decided := test.decided
			if decided == nil {
				decided = []plan.State{test.state}
			}
			var finalizers []string
			if !test.unguarded {
				finalizers = []string{api.Finalizer}
			}
			if test.action == "" {
				w.expect(decided, test.ready, finalizers, test.after)
				if called := w.actions.called(); called != "" {
					t.Errorf("called %s, want no action", called)
				}
				return
			}

			free := w.running(types.NamespacedName{Namespace: "other", Name: "other"}, "other")
			w.expect(decided, w.ready(), finalizers, slowQueue)
			w.after(slowQueue)
			w.expect([]plan.State{plan.StateBusy}, test.ready, finalizers, test.after)
			w.actions.err = errRecorded
			free()
			w.settled()
			if called := w.actions.called(); called != test.action {
				t.Errorf("called %q, want %s", called, test.action)
			}
			if got := strings.Join(w.events(), ", "); got != test.failed {
				t.Errorf("events %q, want %q", got, test.failed)
			}
			next, again := test.next, test.again
			if next == "" {
				next, again = decided[len(decided)-1], time.Second
			}
			w.expect([]plan.State{next}, test.failedReady, finalizers, again)
		})
	}
}

// decisions is a log sink that keeps the states of the message "decided". The message of
// an action that starts waits for the end of the reconciliation.
type decisions struct {
	states *[]plan.State
	ended  <-chan struct{}
}

func (decisions) Init(logr.RuntimeInfo)            {}
func (decisions) Enabled(int) bool                 { return true }
func (decisions) Error(error, string, ...any)      {}
func (d decisions) WithValues(...any) logr.LogSink { return d }
func (d decisions) WithName(string) logr.LogSink   { return d }
func (d decisions) Info(_ int, msg string, kv ...any) {
	if msg == "action started" {
		<-d.ended
	}
	for i := 0; msg == "decided" && i+1 < len(kv); i += 2 {
		if state, is := kv[i+1].(plan.State); is {
			*d.states = append(*d.states, state)
		}
	}
}

// allStates returns the constants of type State in package plan.
func allStates(t *testing.T) (states []plan.State) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../plan/decision.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, is := node.(*ast.ValueSpec)
		if !is {
			return true
		}
		if name, is := spec.Type.(*ast.Ident); is && name.Name == "State" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			states = append(states, plan.State(value))
		}
		return true
	})
	return states
}
