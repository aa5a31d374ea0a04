package plan

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
)

// world is as much of a cluster as decisions depend on: a custom resource, its
// release, the marks on it and what people do.
type world struct {
	Observation
	gone bool
	// asked counts the requests that people have made, and answers how often
	// each was answered, by its token.
	asked   int
	answers map[string]int
	// verify and test are the requests of those kinds that wait for an answer.
	verify, test string
	// forged: the newest record is not what the operator has written. An action that
	// reads it finds out.
	forged bool
	// lost is the digest on a record that has lost its annotations.
	lost string
}

func newWorld(t *rapid.T) *world {
	w := &world{Observation: observation(t), answers: map[string]int{}}
	w.Conflict, w.Invalid, w.Running = false, nil, nil
	w.Paused, w.PausedDeletion = false, false
	w.Abort, w.AbortUninstall = 0, false
	w.Request, w.VerifyRequested, w.TestRequested = nil, false, false
	if w.Newest != nil {
		w.Newest.Owned = true
	}
	if w.Newest != nil && w.Adoptable {
		byOthers(&w.Observation)
	}
	if w.Newest == nil {
		w.Held, w.Inconsistent = nil, false // They stand on the records.
	}
	return w
}

func (w *world) token() string {
	w.asked++
	return "request " + strconv.Itoa(w.asked)
}

// answer fails where a request is answered once more.
func (w *world) answer(t *rapid.T, token string) {
	if token == "" {
		return
	}
	w.answers[token]++
	if w.answers[token] > 1 {
		t.Fatalf("%s is answered %d times", token, w.answers[token])
	}
}

func (w *world) verified(t *rapid.T) {
	w.answer(t, w.verify)
	w.verify, w.VerifyRequested = "", false
}

// somebody does something.
func (w *world) somebody(t *rapid.T) {
	switch rapid.IntRange(0, 12).Draw(t, "somebody") {
	case 0: // edits the spec
		w.Desired += "'"
		if w.Held != nil {
			w.Held.Expired = true
		}
		if w.Request != nil && w.Failure != nil && w.Failure.Target == Target(w.Observation) {
			w.Request.Expired = true
		}
	case 1: // changes what values come from
		w.Desired += `"`
	case 2: // deletes it
		w.Deleting = true
	case 3:
		w.Request = &Request{Token: w.token(), Revision: rapid.IntRange(0, 3).Draw(t, "asked for")}
	case 4:
		w.Request = &Request{Token: w.token(), Resume: true}
	case 5:
		w.verify = w.token()
		w.VerifyRequested, w.RetryToken = true, w.verify
	case 6:
		w.test, w.TestRequested = w.token(), true
	case 7: // damages an object
		w.Drifted = true
	case 8: // upgrades it by the helm CLI
		if w.Newest != nil && !api.Uninstalled(w.Newest.Status) {
			w.Newest = &Revision{Number: w.Newest.Number + 1, Status: api.StatusDeployed, Owned: true, Began: w.Now, Timeout: time.Minute}
		}
	case 9: // uninstalls it by the helm CLI
		if w.Newest != nil {
			w.Newest = nil
			w.Held, w.Inconsistent = nil, false
		}
	case 10: // runs the chart's tests by the helm CLI
		w.strip()
	case 11: // forges the newest record, which is found when it is read
		if w.stored() {
			w.forged = true
		}
	case 12: // replaces the signing key
		w.Unsigned = w.stored()
	}
}

// strip takes the annotations from the newest record.
func (w *world) strip() {
	if w.stored() && w.Newest.WrittenByUs {
		w.lost = w.Newest.Digest
		w.Newest.WrittenByUs, w.Newest.Stripped, w.Newest.Digest = false, true, ""
	}
}

// store makes a new revision, which is ours. A retry takes the place of what
// failed.
func (w *world) store(status, digest string) {
	number := 1
	if n := w.Newest; n != nil {
		number = n.Number
		if n.Status != api.StatusFailed || n.Digest != digest {
			number++
		}
	}
	w.Newest = &Revision{Number: number, Status: status, Digest: digest, Owned: true, WrittenByUs: true, Began: w.Now, Timeout: time.Minute}
	w.Adoptable, w.Overdue, w.NeedsDiagnosis = false, false, false
	w.forged, w.Unsigned = false, false
}

// mark does to the marks what a rollback, a resumption or a refusal does.
func (w *world) mark(t *rapid.T, d Decision) {
	token := ""
	if w.Held != nil {
		token = w.Held.Token
	}
	if d.State == StateRollbackRequested {
		token = w.Request.Token
		w.answer(t, token)
		w.Request = nil
	}
	switch d.Step {
	case StepResume:
		w.Held = nil
	case StepRollback:
		byFailure := d.State == StateFailed || d.State == StateHeld && w.Held.ByFailure
		w.Held = &Held{Revision: d.Revision, Token: token, ByFailure: byFailure}
	}
}

// fail does what an action that fails may leave.
func (w *world) fail(t *rapid.T, d Decision) {
	if d.Step == StepDiagnose {
		// That nothing is found is an answer, too.
		w.NeedsDiagnosis = false
		return
	}
	target := TargetOf(d.Step, w.Observation)
	failure := &w.Failure
	if Repairs(d.Step) {
		failure = &w.RepairFailure
	}
	if *failure == nil || (*failure).Target != target {
		*failure = &Failure{Target: target}
	}
	(*failure).Attempts++
	(*failure).At = w.Now
	switch d.Step {
	case StepUninstall:
		if w.Newest != nil {
			w.Newest.Status = rapid.SampledFrom([]string{w.Newest.Status, api.StatusUninstalling}).Draw(t, "left by the uninstall")
		}
	case StepInstall, StepUpgrade:
		// What is deployed all the same is where the answer to a write was lost,
		// of the last one or of that which supersedes the revision before.
		if left := rapid.SampledFrom([]string{"", api.StatusFailed, api.StatusPendingUpgrade, api.StatusDeployed}).Draw(t, "left by the failure"); left != "" {
			two := left == api.StatusDeployed && w.Newest != nil && w.Newest.Status == api.StatusDeployed
			w.Inconsistent = two && rapid.Bool().Draw(t, "left untidy")
			w.store(left, w.Desired)
			w.Held = nil
			w.verified(t)
		}
	case StepRollback:
		if left := rapid.SampledFrom([]string{"", api.StatusFailed, api.StatusPendingRollback}).Draw(t, "left by the rollback"); left != "" {
			w.store(left, "of the target")
			w.mark(t, d)
		}
	}
}

// succeed does what an action does.
func (w *world) succeed(t *rapid.T, d Decision) {
	if w.forged && is(d.Step, StepRepair, StepVerify, StepTest, StepSign, StepRestore) {
		w.Newest.Untrusted, w.Newest.Stripped = true, false
		return
	}
	if Changes(d.Step) {
		w.Failure = nil
	}
	switch d.Step {
	case StepAddFinalizer:
		w.Finalizer, w.Former = true, false
	case StepRemoveFinalizer, StepOrphan:
		w.Finalizer, w.Former, w.gone = false, false, true
	case StepInstall, StepUpgrade:
		w.store(api.StatusDeployed, w.Desired)
		w.Applied, w.Held = w.Now, nil
		w.Drifted, w.Unverified, w.Orphans = false, false, true
		w.verified(t)
	case StepRollback:
		w.store(api.StatusDeployed, "of the target")
		w.Applied, w.Drifted, w.Unverified = w.Now, false, false
		w.mark(t, d)
	case StepResume, StepRefuse:
		w.mark(t, d)
	case StepUninstall:
		w.Newest, w.Held, w.Orphans, w.Inconsistent = nil, nil, false, false
		w.Adoptable, w.Inherited = false, false
	case StepRestore:
		// What is found to be altered is somebody else's.
		w.Newest.Stripped = false
		if w.Newest.WrittenByUs = rapid.Bool().Draw(t, "unaltered"); w.Newest.WrittenByUs {
			w.Newest.Digest = w.lost
		}
	case StepTidy:
		w.Inconsistent = false
	case StepUnlock:
		w.Newest.Status = api.StatusFailed
	case StepAdopt:
		w.Newest.Owned, w.Newest.WrittenByUs, w.Newest.Digest = true, true, "another"
		w.Adoptable, w.Inherited = false, false
	case StepRepair:
		w.RepairFailure, w.Drifted = nil, false
	case StepVerify:
		w.RepairFailure, w.Applied, w.Drifted, w.Unverified = nil, w.Now, false, false
		w.verified(t)
	case StepDiagnose:
		w.NeedsDiagnosis = false
	case StepRecord:
		w.Unrecorded = false
	case StepSign:
		w.Unsigned = false
	case StepTest:
		w.answer(t, w.test)
		w.test, w.TestRequested = "", false
	}
}

// look forgets what was brought about all the same.
func (w *world) look() {
	if w.Failure != nil && w.Failure.Target == Target(w.Observation) && Reached(w.Observation) {
		w.Failure = nil
	}
}

// atRest tells a hold from what is waited for to bring it back, or to end it.
func (w *world) atRest() bool {
	return !w.Held.Expired && w.Newest.WrittenByUs && w.Newest.Status == api.StatusDeployed
}

// ended tells whether nothing is left to do, and fails where that is not true.
func (w *world) ended(t *rapid.T, d Decision) bool {
	switch {
	case w.gone, d.State == StateDeleted && d.Step == StepWait:
		return true
	case d.State != StateInSync && d.State != StatePostponed && (d.State != StateHeld || !w.atRest()):
		return false
	case w.Deleting:
		t.Fatalf("%s while it goes", d.State)
	case w.Request != nil || (w.VerifyRequested || w.TestRequested) && !w.untrusted():
		t.Fatalf("%s while a request waits for an answer", d.State)
	case w.Inconsistent && w.Newest != nil:
		t.Fatalf("%s while two revisions are deployed", d.State)
	case d.State == StateInSync && w.Newest.Digest != w.Desired:
		t.Fatal("in sync with something else")
	}
	return true
}

// TestEveryPathEnds: from wherever it starts, whatever people do and however
// often actions fail, once they succeed the release is in sync, held or gone
// within a few steps, and every request was answered once.
func TestEveryPathEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		trouble := rapid.IntRange(0, 8).Draw(t, "trouble")
		var taken []Decision
		var failed *Decision
		for steps := 0; steps < 16; {
			w.look()
			d := Next(w.Observation)
			taken = append(taken, d)
			if failed != nil && isAction(d.Step) && d.Step == failed.Step && d.Revision == failed.Revision {
				t.Fatalf("%s failed and was taken again without a pause: %v", d.Step, taken)
			}
			failed = nil
			if trouble == 0 && w.ended(t, d) {
				return
			}
			if d.Step == StepWait {
				if d.After > 0 {
					w.Now = w.Now.Add(d.After)
				} else if trouble == 0 {
					t.Fatalf("waits for nothing: %v", taken)
				}
			}
			switch {
			case w.gone || trouble > 0 && d.State == StateDeleted && d.Step == StepWait:
				return
			case trouble > 0 && (d.Step == StepWait || rapid.Bool().Draw(t, "trouble is made")):
				trouble--
				if isAction(d.Step) && rapid.Bool().Draw(t, "by a failure") {
					w.fail(t, d)
					failed = &d
				} else {
					w.somebody(t)
				}
			case d.Step != StepWait:
				w.succeed(t, d)
				if trouble == 0 {
					steps++
				}
			}
		}
		t.Fatalf("no end: %v", taken)
	})
}

// TestPausesHoldEverythingUp: whatever a paused release needs waits until the
// pause is over, and then is done.
func TestPausesHoldEverythingUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := observation(t)
		o.Paused, o.PausedDeletion = false, false
		// A pause tells what waits for its end, and not for a moment.
		o.Earliest = time.Time{}
		free := Next(o)
		o.Paused = true
		paused := Next(o)
		switch {
		case o.Deleting || o.Running != nil:
			if paused != free {
				t.Errorf("the pause makes %+v of %+v", paused, free)
			}
		case paused.State != StatePaused || paused.Pending != (Pending{free.State, free.Step}):
			t.Errorf("paused it is %+v, otherwise %+v", paused, free)
		}
	})
}
