package plan

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
)

// world simulates the state that decisions depend on: a custom resource, its release,
// its marks and the changes by users.
type world struct {
	Observation
	gone bool
	// asked counts the requests of users, and answers the answers to each token.
	asked   int
	answers map[string]int
	// verify and test are the tokens of unanswered requests.
	verify, test string
	// forged reports that the newest record is forged, which the next action that reads
	// it finds out.
	forged bool
	// lost is the digest of a stripped record.
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
		byAnotherProgram(&w.Observation)
	}
	if w.Newest == nil {
		w.Held, w.Inconsistent = nil, false // The records store both.
	}
	return w
}

func (w *world) token() string {
	w.asked++
	return "request " + strconv.Itoa(w.asked)
}

// answer fails if a request is answered twice.
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

// change makes a random change by a user or another program.
func (w *world) change(t *rapid.T) {
	switch rapid.IntRange(0, 14).Draw(t, "change") {
	case 0: // edit of the spec
		w.Desired += "'"
		if w.Held != nil {
			w.Held.Expired = true
		}
		if w.Request != nil && w.Failure != nil && w.Failure.Target == Target(w.Observation) {
			w.Request.Expired = true
		}
	case 1: // change of a values source
		w.Desired += `"`
	case 2: // deletion
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
	case 7: // drift of an object
		w.Drifted = true
	case 8: // upgrade by the helm CLI
		if w.Newest != nil && !api.Uninstalled(w.Newest.Status) {
			w.Newest = &Revision{Number: w.Newest.Number + 1, Status: api.StatusDeployed, Owned: true, Began: w.Now, Timeout: time.Minute}
		}
	case 9: // uninstall by the helm CLI
		if w.Newest != nil {
			w.Newest = nil
			w.Held, w.Inconsistent = nil, false
		}
	case 10: // tests by the helm CLI
		w.strip()
	case 11: // forged record
		if w.stored() {
			w.forged = true
		}
	case 12: // new signing key
		w.Unsigned = w.stored()
	case 13:
		waits(&w.Observation)
	case 14:
		inUse(&w.Observation)
	}
}

// strip removes the annotations of the newest record.
func (w *world) strip() {
	if w.stored() && w.Newest.WrittenByUs {
		w.lost = w.Newest.Digest
		w.Newest.WrittenByUs, w.Newest.Stripped, w.Newest.Digest = false, true, ""
	}
}

// store stores a revision that this operator wrote. A retry replaces the failed
// revision.
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

// mark updates the marks after a rollback, a resume or a refusal.
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

// fail applies a possible result of a failed action.
func (w *world) fail(t *rapid.T, d Decision) {
	if d.Step == StepDiagnose {
		// A diagnosis without a result ends the diagnosis, too.
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
		// The revision is deployed nevertheless if the response to a write was lost: to the
		// last write, or to the write that supersedes the previous revision.
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

// succeed applies the result of a successful action.
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
		// An altered record counts as written by another program.
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

// forgetReached forgets a failure if its target is reached nevertheless.
func (w *world) forgetReached() {
	if w.Failure != nil && w.Failure.Target == Target(w.Observation) && Reached(w.Observation) {
		w.Failure = nil
	}
}

// atRest reports whether the hold needs no further step.
func (w *world) atRest() bool {
	return !w.Held.Expired && w.Newest.WrittenByUs && w.Newest.Status == api.StatusDeployed
}

// ended reports whether the decision is final, and fails if a final decision is wrong.
func (w *world) ended(t *rapid.T, d Decision) bool {
	switch {
	case w.gone, d.State == StateDeleted && d.Step == StepWait:
		return true
	case d.State != StateInSync && d.State != StatePostponed && (d.State != StateHeld || !w.atRest()):
		return false
	case w.Deleting:
		t.Fatalf("%s during a deletion", d.State)
	case w.Request != nil || (w.VerifyRequested || w.TestRequested) && !w.untrusted():
		t.Fatalf("%s with an unanswered request", d.State)
	case w.Inconsistent && w.Newest != nil:
		t.Fatalf("%s while two revisions are deployed", d.State)
	case d.State == StateInSync && w.Newest.Digest != w.Desired:
		t.Fatal("in sync with a wrong digest")
	}
	return true
}

// TestNext_EveryPathEnds: after any start, changes and failures, the release is in sync,
// held or gone within a few successful steps, and every request was answered once.
func TestNext_EveryPathEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		disturbances := rapid.IntRange(0, 8).Draw(t, "disturbances")
		var taken []Decision
		var failed *Decision
		for steps := 0; steps < 16; {
			w.forgetReached()
			d := Next(w.Observation)
			taken = append(taken, d)
			if failed != nil && isAction(d.Step) && d.Step == failed.Step && d.Revision == failed.Revision {
				t.Fatalf("%s is repeated after a failure without backoff: %v", d.Step, taken)
			}
			failed = nil
			if disturbances == 0 && w.ended(t, d) {
				return
			}
			switch {
			case d.Step != StepWait:
			case d.After > 0:
				w.Now = w.Now.Add(d.After)
			case d.State == StateWaiting && disturbances == 0:
				w.Dependency = nil
			case d.State == StateInUse && disturbances == 0:
				w.Dependents = nil
			case disturbances == 0:
				t.Fatalf("the wait has no end: %v", taken)
			}
			switch {
			case w.gone || disturbances > 0 && d.State == StateDeleted && d.Step == StepWait:
				return
			case disturbances > 0 && (d.Step == StepWait || rapid.Bool().Draw(t, "disturbed")):
				disturbances--
				if isAction(d.Step) && rapid.Bool().Draw(t, "by a failure") {
					w.fail(t, d)
					failed = &d
				} else {
					w.change(t)
				}
			case d.Step != StepWait:
				w.succeed(t, d)
				if disturbances == 0 {
					steps++
				}
			}
		}
		t.Fatalf("no end: %v", taken)
	})
}

// TestNext_PauseOnlyDelays: the pending step of a pause is the step without the pause.
func TestNext_PauseOnlyDelays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := observation(t)
		o.Paused, o.PausedDeletion = false, false
		// The pending step ignores the limit of actions.
		o.Earliest = time.Time{}
		free := Next(o)
		o.Paused = true
		paused := Next(o)
		switch {
		case o.Deleting || o.Running != nil:
			if paused != free {
				t.Errorf("decision under a pause %+v, want %+v", paused, free)
			}
		case paused.State != StatePaused || paused.Pending != (Pending{free.State, free.Step}):
			t.Errorf("decision under a pause %+v, without %+v", paused, free)
		}
	})
}
