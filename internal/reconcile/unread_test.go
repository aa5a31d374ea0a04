package reconcile

import (
	"errors"
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/watches"
)

// withSource gives the kind a Secret as a source of values. The release is stored with it.
func withSource(w *world) *fakeSources {
	w.t.Helper()
	r, sources, _ := sourced(w.t, "{kind: Secret, name: values}")
	w.Kind.Sources, w.Sources = r.Kind.Sources, sources
	v := &snapshot{key: webKey}
	v.CR, v.Release = w.apiServer.cr, webKey
	if err := w.observeInputs(w.t.Context(), v); err != nil {
		w.t.Fatal(err)
	}
	w.digests = v.digests
	w.memory.forget(ownUID)
	return sources
}

// fails reconciles, and expects an error and no other condition Ready.
func (w *world) fails(ready string) {
	w.t.Helper()
	if _, err := w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: webKey}); err == nil {
		w.t.Error("no error causes another attempt soon")
	}
	if w.ready() != ready {
		w.t.Errorf("condition Ready is %q, want %q", w.ready(), ready)
	}
}

// TestUnread_StatusFollowsObjects: while a source of values cannot be read, the status reports
// that, and the health of the running release. Nothing is upgraded.
func TestUnread_StatusFollowsObjects(t *testing.T) {
	w := newWorld(t)
	sources := withSource(w)
	storeInSync(w)
	object := w.applied()
	finalizers := []string{api.Finalizer}
	w.expect([]plan.State{plan.StateInSync}, "True Deployed", finalizers, 0)

	sources.fails = errors.New("the Secret canary is away")
	w.fails("True Deployed")
	w.after(time.Second)
	w.fails("True Deployed")
	sources.fails = nil
	w.expect([]plan.State{plan.StateInSync}, "True Deployed", finalizers, 0)
	sources.fails = errors.New("the Secret canary is away")
	w.after(3 * time.Second)
	w.fails("True Deployed")

	w.after(4 * time.Second)
	w.expect([]plan.State{plan.StateInvalid}, "Unknown "+api.ReasonInputsUnread, finalizers, 30*time.Second)
	if message := w.message(); !strings.Contains(message, "is away") || !strings.Contains(message, "again every 30s") || strings.Contains(message, "canary") {
		t.Errorf("the message is %q", message)
	}
	if events := w.events(); len(events) != 1 || events[0] != "Warning "+api.ReasonInputsUnread {
		t.Errorf("events %v", events)
	}
	version := w.apiServer.version
	w.expect([]plan.State{plan.StateInvalid}, "Unknown "+api.ReasonInputsUnread, finalizers, 30*time.Second)
	if w.apiServer.version != version {
		t.Error("an equal status is written again")
	}

	w.Kind.Drift.Mode = watches.DriftWarn
	w.Inventory.Remove(object)
	w.expect([]plan.State{plan.StateInvalid}, "False "+api.ReasonProgressing, finalizers, 5*time.Second)
	w.Kind.Drift.Mode = watches.DriftRepair
	w.reconcile()
	w.settled()
	if called := w.actions.called(); called != "Repair" {
		t.Errorf("called %q", called)
	}
	w.Inventory.Put(object)
	sources.fails = nil
	w.expect([]plan.State{plan.StateInSync}, "True Deployed", finalizers, 0)
}

// TestUnread_InstallWaitsVisibly: without a release, nothing is installed.
func TestUnread_InstallWaitsVisibly(t *testing.T) {
	w := newWorld(t)
	withSource(w).fails = errors.New("away")
	w.fails("")
	w.after(4 * time.Second)
	w.expect([]plan.State{plan.StateInvalid}, "Unknown "+api.ReasonInputsUnread, []string{api.Finalizer}, 30*time.Second)
	if called := w.actions.called(); called != "" {
		t.Errorf("called %q", called)
	}
}
