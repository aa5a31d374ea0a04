package decide

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
)

var statuses = []string{
	api.StatusDeployed, api.StatusSuperseded, api.StatusFailed, api.StatusUninstalling, api.StatusUninstalled,
	api.StatusPendingInstall, api.StatusPendingUpgrade, api.StatusPendingRollback, "unknown", "",
}

var digests = []string{desired, "another", ""}

func past(t *rapid.T, label string) time.Time {
	return now.Add(-time.Duration(rapid.IntRange(0, 1200).Draw(t, label)) * time.Second)
}

// observation draws any observation, also those that never come about.
func observation(t *rapid.T) Observation {
	o := Observation{
		Now:       now,
		Deleting:  rapid.Bool().Draw(t, "deleting"),
		Finalizer: rapid.Bool().Draw(t, "finalizer"),
		Conflict:  rapid.IntRange(0, 4).Draw(t, "conflict") == 0,
		Desired:   desired,
		Period:    rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(t, "period"),
		Applied:   past(t, "applied"),
	}
	o.Adoptable = rapid.IntRange(0, 4).Draw(t, "adoptable") == 0
	o.Orphans = rapid.Bool().Draw(t, "orphans")
	o.Drifted = rapid.Bool().Draw(t, "drifted")
	o.Unverified = rapid.Bool().Draw(t, "unverified")
	if rapid.Bool().Draw(t, "repair failed") {
		o.RepairFailure = &Failure{Aim: "repaired", Attempts: rapid.IntRange(1, 60).Draw(t, "repairs"), At: past(t, "repaired")}
	}
	if rapid.IntRange(0, 4).Draw(t, "invalid") == 0 {
		o.Invalid = "spec: expected an object"
	}
	if rapid.IntRange(0, 4).Draw(t, "running") == 0 {
		o.Running = &Running{Step: rapid.SampledFrom([]Step{StepInstall, StepUpgrade, StepUninstall, StepUnlock, StepAdopt, StepRepair, StepVerify}).Draw(t, "step"), Since: past(t, "since")}
	}
	if rapid.IntRange(0, 4).Draw(t, "newest") > 0 {
		o.Newest = &Revision{
			Number:  rapid.IntRange(1, 5).Draw(t, "number"),
			Status:  rapid.SampledFrom(statuses).Draw(t, "status"),
			Ours:    rapid.Bool().Draw(t, "ours"),
			Genuine: rapid.Bool().Draw(t, "genuine"),
			Began:   past(t, "began"),
			Timeout: 5 * time.Minute,
		}
		if o.Newest.Genuine {
			o.Newest.Digest = rapid.SampledFrom(digests).Draw(t, "digest")
		}
	}
	if rapid.Bool().Draw(t, "failed") {
		o.Failure = &Failure{
			Aim:      rapid.SampledFrom([]string{desired, "another", "gone"}).Draw(t, "aim"),
			Attempts: rapid.IntRange(1, 60).Draw(t, "attempts"),
			At:       past(t, "at"),
		}
	}
	return o
}

func TestNextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := observation(t)
		d := Next(o)
		action := !slices.Contains([]Step{StepWait, StepAddFinalizer, StepRemoveFinalizer}, d.Step)

		if o.Running != nil && d.Step != StepWait {
			t.Errorf("%s while an action runs", d.Step)
		}
		if o.Deleting && d.Step != StepWait && d.Step != StepUninstall && d.Step != StepRemoveFinalizer {
			t.Errorf("%s while the resource goes", d.Step)
		}
		if !o.Deleting && d.Step == StepRemoveFinalizer {
			t.Error("the finalizer goes while the resource stays")
		}
		if !o.Deleting && d.Step == StepUninstall && o.Newest.Status != api.StatusUninstalling {
			t.Error("an uninstall that nobody asked for")
		}
		if d.Step == StepRemoveFinalizer && o.Newest != nil && o.Newest.Ours {
			t.Error("the finalizer goes before the release")
		}
		if (d.Step == StepInstall || d.Step == StepUpgrade) && !o.Finalizer {
			t.Errorf("%s before the finalizer", d.Step)
		}
		if action && d.Step != StepUninstall && o.Conflict {
			t.Errorf("%s of what is another's", d.Step)
		}
		if o.Invalid != "" && (d.Step == StepInstall || d.Step == StepUpgrade || d.Step == StepAdopt) {
			t.Errorf("%s though %s", d.Step, o.Invalid)
		}
		if n := o.Newest; n != nil && n.Status == api.StatusDeployed && n.Digest == desired && (d.Step == StepInstall || d.Step == StepUpgrade) {
			t.Errorf("%s of what is deployed", d.Step)
		}
		if n := o.Newest; n != nil && n.Ours && n.Status == api.StatusDeployed && d.Step == StepInstall {
			t.Error("an install over what is deployed")
		}
		if d.Step == StepVerify && (o.Newest.Status != api.StatusDeployed || o.Period == 0 && !o.Unverified) {
			t.Error("a verification that nobody asked for")
		}
		if d.Step == StepRepair && (o.Newest.Status != api.StatusDeployed || !o.Drifted) {
			t.Error("a repair of what is sound, or not deployed")
		}
		if d.Step == StepAdopt && !o.Adoptable {
			t.Error("an adoption of what is not to be had")
		}
		if d.Step == StepRemoveFinalizer && o.Orphans {
			t.Error("the finalizer goes before the objects")
		}
		if d.State == StateInSync && d.Step != StepWait {
			t.Errorf("%s in sync", d.Step)
		}

		if d.Step == StepWait {
			ended := d.State == StateDeleted || d.State == StateInvalid || d.State == StateInSync && o.Period == 0
			if d.After <= 0 && o.Running == nil && !ended {
				t.Errorf("nothing wakes it in state %s", d.State)
			}
			longest := maxBackoff
			if d.State == StateInSync {
				longest = o.Period
			}
			if d.After > longest {
				t.Errorf("it waits for %s in state %s", d.After, d.State)
			}
		} else if d.After != 0 {
			t.Errorf("%s with a wait of %s", d.Step, d.After)
		}

		// What failed just now is not tried again at once, whatever it is.
		if action {
			failure := &Failure{Aim: AimOf(d.Step, o), Attempts: 1, At: now}
			if Repairs(d.Step) {
				o.RepairFailure = failure
			} else {
				o.Failure = failure
			}
			if again := Next(o); again.Step == d.Step {
				t.Errorf("%s failed, and comes again without a pause", d.Step)
			}
			// And the wait is no end.
			o.Now = now.Add(maxBackoff)
			if again := Next(o); again.Step == StepWait && again.State != StateInSync {
				t.Errorf("%s failed and is never tried again: %+v", d.Step, again)
			}
		}
	})
}

// world is as much of a cluster as decisions depend on.
type world struct {
	Observation
	gone bool
}

// carryOut does what a step does. Where it fails it leaves what the real one
// may leave.
func (w *world) carryOut(t *rapid.T, step Step, succeeds bool) {
	number := 0
	if w.Newest != nil {
		number = w.Newest.Number
	}
	if !succeeds {
		aim := AimOf(step, w.Observation)
		if Repairs(step) {
			if w.RepairFailure == nil {
				w.RepairFailure = &Failure{Aim: aim}
			}
			w.RepairFailure.Attempts++
			w.RepairFailure.At = w.Now
			return
		}
		if w.Failure == nil || w.Failure.Aim != aim {
			w.Failure = &Failure{Aim: aim}
		}
		w.Failure.Attempts++
		w.Failure.At = w.Now
		// A retry replaces the failed revision of the same inputs.
		if w.Newest == nil || w.Newest.Status != api.StatusFailed || w.Newest.Digest != w.Desired {
			number++
		}
		if step == StepUninstall && w.Newest == nil {
			return
		}
		if step == StepUninstall {
			w.Newest.Status = rapid.SampledFrom([]string{w.Newest.Status, api.StatusUninstalling}).Draw(t, "left by the uninstall")
			return
		}
		if step != StepInstall && step != StepUpgrade {
			return
		}
		if left := rapid.SampledFrom([]string{"", api.StatusFailed, api.StatusPendingUpgrade}).Draw(t, "left by the failure"); left != "" {
			w.Newest = &Revision{Number: number, Status: left, Digest: w.Desired, Ours: true, Genuine: true, Began: w.Now, Timeout: time.Minute}
		}
		return
	}
	switch step {
	case StepAddFinalizer:
		w.Finalizer = true
	case StepRemoveFinalizer:
		w.Finalizer, w.gone = false, true
	case StepInstall, StepUpgrade:
		w.Newest = &Revision{Number: number + 1, Status: api.StatusDeployed, Digest: w.Desired, Ours: true, Genuine: true, Began: w.Now, Timeout: time.Minute}
		w.Failure, w.Applied = nil, w.Now
		w.Drifted, w.Unverified, w.Orphans, w.Adoptable = false, false, true, false
	case StepUninstall:
		w.Newest, w.Failure, w.Orphans = nil, nil, false
	case StepUnlock:
		w.Newest.Status, w.Failure = api.StatusFailed, nil
	case StepAdopt:
		w.Newest.Ours, w.Newest.Genuine, w.Newest.Digest = true, true, "another"
		w.Failure, w.Adoptable = nil, false
	case StepRepair:
		w.RepairFailure, w.Drifted = nil, false
	case StepVerify:
		w.RepairFailure, w.Applied, w.Drifted, w.Unverified = nil, w.Now, false, false
	case StepWait:
	}
}

// TestEveryPathEnds: from wherever it starts and however often actions fail,
// once they succeed the release is in sync or gone within a few steps.
func TestEveryPathEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{Observation: observation(t)}
		w.Conflict, w.Invalid, w.Running = false, "", nil
		if w.Newest != nil {
			w.Newest.Ours = true
		}
		failures := rapid.IntRange(0, 6).Draw(t, "failures")
		var taken []Decision
		for steps := 0; steps < 12; {
			d := Next(w.Observation)
			taken = append(taken, d)
			switch {
			case d.State == StateInSync, d.State == StateDeleted && d.Step == StepWait, w.gone:
				if w.Deleting && d.State == StateInSync {
					t.Fatalf("in sync while it goes: %v", taken)
				}
				return
			case d.Step == StepWait:
				if d.After <= 0 {
					t.Fatalf("waits for nothing: %v", taken)
				}
				w.Now = w.Now.Add(d.After)
				continue
			}
			succeeds := failures == 0 || rapid.Bool().Draw(t, "succeeds")
			if !succeeds {
				failures--
			} else if failures == 0 {
				steps++
			}
			w.carryOut(t, d.Step, succeeds)
			// The spec may be edited, and the resource deleted, at any time.
			if failures > 0 && rapid.IntRange(0, 5).Draw(t, "edited") == 0 {
				w.Desired += "'"
			}
			if failures > 0 && rapid.IntRange(0, 9).Draw(t, "deleted") == 0 {
				w.Deleting = true
			}
		}
		t.Fatalf("no end: %v", taken)
	})
}

// TestRepairsThatFailHoldUpNoUpgrade: what cannot be repaired may be just what
// the upgrade would put right.
func TestRepairsThatFailHoldUpNoUpgrade(t *testing.T) {
	o := guarded(newest(2, api.StatusDeployed, "another"), failedTo(desired, 1, time.Hour))
	o.Drifted = true
	o.RepairFailure = &Failure{Aim: "repaired", Attempts: 9, At: now}
	if d := Next(o); d.Step != StepUpgrade {
		t.Errorf("%+v, want the upgrade", d)
	}
}
