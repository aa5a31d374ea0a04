package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/api"
)

var now = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

const desired = "digest-of-the-spec"

// guarded returns a custom resource with our finalizer and no release, changed
// in turn.
func guarded(changes ...func(*Observation)) Observation {
	o := Observation{Now: now, Finalizer: true, Desired: desired, Applied: now}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func newest(number int, status, digest string) func(*Observation) {
	return func(o *Observation) {
		o.Newest = &Revision{Number: number, Status: status, Digest: digest, Ours: true, Genuine: true, Began: now, Timeout: time.Minute}
	}
}

// byOthers makes the newest revision one that the helm CLI wrote.
func byOthers(o *Observation) { o.Newest.Genuine, o.Newest.Digest = false, "" }

func ofAnother(o *Observation) { o.Newest.Ours = false }

func beingDeleted(o *Observation) { o.Deleting = true }

func noFinalizer(o *Observation) { o.Finalizer = false }

func running(step Step) func(*Observation) {
	return func(o *Observation) { o.Running = &Running{Step: step, Since: now} }
}

// failedTo is a failure so long ago.
func failedTo(aim string, attempts int, ago time.Duration) func(*Observation) {
	return func(o *Observation) { o.Failure = &Failure{Aim: aim, Attempts: attempts, At: now.Add(-ago)} }
}

// expect runs one check.
type expect struct {
	name string
	o    Observation
	// want is nil where the check does not apply.
	want *Decision
}

func runCheck(t *testing.T, look check, tests []expect) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, applies := look(test.o)
			if applies != (test.want != nil) {
				t.Fatalf("applies: %v, want %v", applies, test.want != nil)
			}
			if applies {
				if diff := cmp.Diff(*test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestBusy(t *testing.T) {
	runCheck(t, busy, []expect{
		{"nothing runs", guarded(), nil},
		{"an action runs", guarded(running(StepInstall)), &Decision{State: StateBusy, Step: StepWait}},
		{"an action runs and the resource goes", guarded(running(StepUpgrade), beingDeleted), &Decision{State: StateBusy, Step: StepWait}},
	})
}

func TestDeleted(t *testing.T) {
	runCheck(t, deleted, []expect{
		{"it stays", guarded(), nil},
		{"its release is there", guarded(beingDeleted, newest(1, api.StatusDeployed, desired)), nil},
		{"its release is gone", guarded(beingDeleted), &Decision{State: StateDeleted, Step: StepRemoveFinalizer}},
		{"the release is another's", guarded(beingDeleted, newest(1, api.StatusDeployed, ""), ofAnother), &Decision{State: StateDeleted, Step: StepRemoveFinalizer}},
		{"somebody took the finalizer away", guarded(beingDeleted, noFinalizer, newest(1, api.StatusDeployed, desired)), &Decision{State: StateDeleted, Step: StepWait}},
		{"other finalizers hold it", guarded(beingDeleted, noFinalizer), &Decision{State: StateDeleted, Step: StepWait}},
	})
}

func TestDeleting(t *testing.T) {
	uninstall := &Decision{State: StateDeleting, Step: StepUninstall}
	runCheck(t, deleting, []expect{
		{"it stays", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"deployed", guarded(beingDeleted, newest(1, api.StatusDeployed, desired)), uninstall},
		{"pending", guarded(beingDeleted, newest(1, api.StatusPendingInstall, desired)), uninstall},
		{"begun before", guarded(beingDeleted, newest(1, api.StatusUninstalling, desired)), uninstall},
		{"another's upgrade", guarded(beingDeleted, newest(2, api.StatusPendingUpgrade, ""), byOthers), uninstall},
		{"failed just now", guarded(beingDeleted, newest(1, api.StatusDeployed, desired), failedTo("gone", 1, 0)), &Decision{State: StateDeleting, Step: StepWait, After: time.Second}},
		{"an upgrade failed just now", guarded(beingDeleted, newest(1, api.StatusDeployed, desired), failedTo(desired, 9, 0)), uninstall},
	})
}

func TestConflict(t *testing.T) {
	runCheck(t, conflict, []expect{
		{"a name is free", guarded(), nil},
		{"none is", guarded(func(o *Observation) { o.Conflict = true }), &Decision{State: StateConflict, Step: StepWait, After: maxBackoff}},
	})
}

func TestInvalid(t *testing.T) {
	runCheck(t, invalid, []expect{
		{"values", guarded(), nil},
		{"no values", guarded(func(o *Observation) { o.Invalid = "spec: expected an object" }), &Decision{State: StateInvalid, Step: StepWait}},
	})
}

func TestUnguarded(t *testing.T) {
	runCheck(t, unguarded, []expect{
		{"with the finalizer", guarded(), nil},
		{"without", guarded(noFinalizer), &Decision{State: StateUnguarded, Step: StepAddFinalizer}},
	})
}

func TestLocked(t *testing.T) {
	unlock := &Decision{State: StateLocked, Step: StepUnlock}
	began := func(ago time.Duration) func(*Observation) {
		return func(o *Observation) { o.Newest.Began = now.Add(-ago) }
	}
	runCheck(t, locked, []expect{
		{"no release", guarded(), nil},
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"uninstalling", guarded(newest(1, api.StatusUninstalling, desired)), nil},
		{"our install was cut short", guarded(newest(1, api.StatusPendingInstall, desired)), unlock},
		{"our upgrade was cut short", guarded(newest(2, api.StatusPendingUpgrade, desired)), unlock},
		{"our rollback was cut short", guarded(newest(3, api.StatusPendingRollback, desired)), unlock},
		{"somebody upgrades", guarded(newest(2, api.StatusPendingUpgrade, ""), byOthers, began(20*time.Second)), &Decision{State: StateLocked, Step: StepWait, After: 40 * time.Second}},
		{"somebody's upgrade has passed its time", guarded(newest(2, api.StatusPendingUpgrade, ""), byOthers, began(time.Minute)), unlock},
	})
}

func TestUninstalling(t *testing.T) {
	runCheck(t, uninstalling, []expect{
		{"no release", guarded(), nil},
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"begun", guarded(newest(1, api.StatusUninstalling, desired)), &Decision{State: StateUninstalling, Step: StepUninstall}},
		{"failed just now", guarded(newest(1, api.StatusUninstalling, desired), failedTo("gone", 3, time.Second)), &Decision{State: StateUninstalling, Step: StepWait, After: 3 * time.Second}},
	})
}

func TestAbsent(t *testing.T) {
	install := &Decision{State: StateAbsent, Step: StepInstall}
	runCheck(t, absent, []expect{
		{"no release", guarded(), install},
		{"the record of an uninstalled one", guarded(newest(4, api.StatusUninstalled, "")), install},
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"failed", guarded(newest(1, api.StatusFailed, desired)), nil},
		{"failed before anything was stored", guarded(failedTo(desired, 2, 0)), &Decision{State: StateAbsent, Step: StepWait, After: 2 * time.Second}},
		{"that was for another spec", guarded(failedTo("another", 2, 0)), install},
		{"that was long ago", guarded(failedTo(desired, 2, 2*time.Second)), install},
	})
}

func TestFailed(t *testing.T) {
	runCheck(t, failed, []expect{
		{"deployed", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"the first install", guarded(newest(1, api.StatusFailed, desired)), &Decision{State: StateFailed, Step: StepInstall}},
		{"an upgrade", guarded(newest(2, api.StatusFailed, desired)), &Decision{State: StateFailed, Step: StepUpgrade}},
		{"an upgrade just now", guarded(newest(2, api.StatusFailed, desired), failedTo(desired, 4, 0)), &Decision{State: StateFailed, Step: StepWait, After: 8 * time.Second}},
		{"of another spec", guarded(newest(2, api.StatusFailed, "another"), failedTo("another", 4, 0)), nil},
		{"the first install, of another spec", guarded(newest(1, api.StatusFailed, "another")), nil},
		{"before anything was stored", guarded(newest(2, api.StatusDeployed, "another"), failedTo(desired, 1, 0)), &Decision{State: StateFailed, Step: StepWait, After: time.Second}},
		{"before anything was stored, long ago", guarded(newest(2, api.StatusDeployed, "another"), failedTo(desired, 1, time.Hour)), &Decision{State: StateFailed, Step: StepUpgrade}},
		{"of somebody else", guarded(newest(2, api.StatusFailed, ""), byOthers), nil},
	})
}

func TestOutOfSync(t *testing.T) {
	upgrade := &Decision{State: StateOutOfSync, Step: StepUpgrade}
	runCheck(t, outOfSync, []expect{
		{"what is desired is deployed", guarded(newest(3, api.StatusDeployed, desired)), nil},
		{"something else is", guarded(newest(3, api.StatusDeployed, "another")), upgrade},
		{"somebody upgraded it", guarded(newest(3, api.StatusDeployed, ""), byOthers), upgrade},
		{"somebody's upgrade failed", guarded(newest(3, api.StatusFailed, ""), byOthers), upgrade},
		{"it is superseded, and what superseded it is lost", guarded(newest(3, api.StatusSuperseded, desired)), upgrade},
		{"so, and the upgrade failed just now", guarded(newest(3, api.StatusSuperseded, desired), failedTo(desired, 1, 0)), &Decision{State: StateOutOfSync, Step: StepWait, After: time.Second}},
		{"the failed revision of a former spec", guarded(newest(2, api.StatusFailed, "another")), upgrade},
	})
}

func TestDue(t *testing.T) {
	every := func(period, ago time.Duration) func(*Observation) {
		return func(o *Observation) { o.Period, o.Applied = period, now.Add(-ago) }
	}
	deployed := newest(1, api.StatusDeployed, desired)
	runCheck(t, due, []expect{
		{"no period", guarded(deployed, every(0, time.Hour)), nil},
		{"not yet", guarded(deployed, every(time.Minute, time.Minute-1)), nil},
		{"on the point", guarded(deployed, every(time.Minute, time.Minute)), &Decision{State: StateDue, Step: StepVerify}},
		{"long ago", guarded(deployed, every(time.Minute, time.Hour)), &Decision{State: StateDue, Step: StepVerify}},
		{"failed just now", guarded(deployed, every(time.Minute, time.Hour), repairFailed), &Decision{State: StateDue, Step: StepWait, After: time.Second}},
		{"nothing is known", guarded(deployed, unverified), &Decision{State: StateDue, Step: StepVerify}},
	})
}

func unverified(o *Observation) { o.Unverified = true }

func damaged(o *Observation) { o.Drifted = true }

func repairFailed(o *Observation) {
	o.RepairFailure = &Failure{Aim: "repaired", Attempts: 1, At: now}
}

func TestDrifted(t *testing.T) {
	deployed := newest(2, api.StatusDeployed, desired)
	repair := &Decision{State: StateDrifted, Step: StepRepair}
	runCheck(t, drifted, []expect{
		{"undamaged", guarded(deployed), nil},
		{"damaged", guarded(deployed, damaged), repair},
		{"damaged, and an upgrade is due", guarded(newest(2, api.StatusDeployed, "another"), damaged), nil},
		{"damaged, and the upgrade that is due failed", guarded(newest(2, api.StatusDeployed, "another"), damaged, failedTo(desired, 3, 0)), repair},
		{"damaged by a revision that failed", guarded(newest(2, api.StatusFailed, desired), damaged), nil},
		{"the repair failed just now", guarded(deployed, damaged, repairFailed), &Decision{State: StateDrifted, Step: StepWait, After: time.Second}},
	})
}

func TestUnmanaged(t *testing.T) {
	adoptable := func(o *Observation) { o.Adoptable, o.Newest.Ours, o.Newest.Genuine = true, false, false }
	runCheck(t, unmanaged, []expect{
		{"ours", guarded(newest(1, api.StatusDeployed, desired)), nil},
		{"somebody's", guarded(newest(1, api.StatusDeployed, ""), adoptable), &Decision{State: StateUnmanaged, Step: StepAdopt}},
		{"somebody's, uninstalled", guarded(newest(1, api.StatusUninstalled, ""), adoptable), nil},
	})
}

func TestInSync(t *testing.T) {
	deployed := newest(1, api.StatusDeployed, desired)
	runCheck(t, inSync, []expect{
		{"deployed", guarded(deployed), &Decision{State: StateInSync, Step: StepWait}},
		{"until the period ends", guarded(deployed, func(o *Observation) { o.Period, o.Applied = time.Minute, now.Add(-20*time.Second) }), &Decision{State: StateInSync, Step: StepWait, After: 40 * time.Second}},
	})
}

// TestNextOrder: where several checks apply, the first in the chain counts.
func TestNextOrder(t *testing.T) {
	conflicts := func(o *Observation) { o.Conflict = true }
	isInvalid := func(o *Observation) { o.Invalid = "spec: expected an object" }
	deployed := newest(2, api.StatusDeployed, desired)
	for _, test := range []struct {
		name string
		o    Observation
		want State
	}{
		{"what runs comes before deletion", guarded(running(StepInstall), beingDeleted), StateBusy},
		{"deletion comes before an invalid spec", guarded(beingDeleted, isInvalid, deployed), StateDeleting},
		{"deletion comes before a conflict", guarded(beingDeleted, conflicts), StateDeleted},
		{"a conflict comes before the finalizer", guarded(conflicts, noFinalizer), StateConflict},
		{"an invalid spec needs no finalizer", guarded(isInvalid, noFinalizer), StateInvalid},
		{"the finalizer comes before an install", guarded(noFinalizer), StateUnguarded},
		{"the finalizer comes before unlocking", guarded(noFinalizer, newest(1, api.StatusPendingInstall, desired)), StateUnguarded},
		{"a lock comes before an upgrade", guarded(newest(2, api.StatusPendingUpgrade, "another")), StateLocked},
		{"an uninstall is finished before an install", guarded(newest(2, api.StatusUninstalling, desired)), StateUninstalling},
		{"an upgrade comes before a period", guarded(newest(2, api.StatusDeployed, "another"), func(o *Observation) { o.Period, o.Applied = 1, now.Add(-time.Hour) }), StateOutOfSync},
		{"nothing to do", guarded(deployed), StateInSync},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Next(test.o); got.State != test.want {
				t.Errorf("%+v, want state %s", got, test.want)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	for attempts, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 9: 256 * time.Second,
		10: 5 * time.Minute, 11: 5 * time.Minute, 1000: 5 * time.Minute, 1 << 40: 5 * time.Minute,
	} {
		if got := backoff(attempts); got != want {
			t.Errorf("after %d failures %s, want %s", attempts, got, want)
		}
	}
}
