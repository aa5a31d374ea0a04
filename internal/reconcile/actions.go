package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

// Actions are the actions on a release and its records. A helm.Client is the
// implementation.
type Actions interface {
	Install(ctx context.Context, request helm.Request) error
	Upgrade(ctx context.Context, request helm.Request) error
	Rollback(ctx context.Context, request helm.Request, revision int) error
	Uninstall(ctx context.Context, request helm.Request) error
	Orphan(ctx context.Context, request helm.Request) error
	Adopt(ctx context.Context, request helm.Request) error
	Repair(ctx context.Context, request helm.Request, drifted map[apply.Key]bool) ([]helm.Repaired, error)
	Verify(ctx context.Context, request helm.Request) error
	Test(ctx context.Context, request helm.Request) error

	Mark(ctx context.Context, request helm.Request) error
	MarkFailed(ctx context.Context, request helm.Request, record release.Record, reason string) error
	Record(ctx context.Context, request helm.Request) error
	Restore(ctx context.Context, request helm.Request) error
	Sign(ctx context.Context, request helm.Request) error
	Tidy(ctx context.Context, request helm.Request) error
	Prune(ctx context.Context, request helm.Request, limit int) error

	// Terminating reports whether a namespace is being deleted or does not exist.
	Terminating(ctx context.Context, namespace string) (bool, error)
	// SignedByCurrentKey reports whether the newest signing key has signed a record.
	// It makes no request.
	SignedByCurrentKey(record release.Record) bool
	// Capabilities returns what charts see as .Capabilities.
	Capabilities() *chart.Capabilities
}

// action describes a step that runs in the pool.
type action struct {
	do func(*Reconciler, context.Context, *snapshot, helm.Request) error
	// done and failed are the reasons of the events about its end. Without done, a
	// success emits no event.
	done, failed string
	// prunes reports that old revisions may have to be deleted afterwards.
	prunes bool
	// applies reports that the action applies every object.
	applies bool
	// values reports that the action needs the values of the release. It gets its own
	// copy and may change it.
	values bool
}

// verb returns an action that calls one method of Actions.
func verb(do func(Actions, context.Context, helm.Request) error) func(*Reconciler, context.Context, *snapshot, helm.Request) error {
	return func(r *Reconciler, ctx context.Context, _ *snapshot, request helm.Request) error {
		return do(r.Actions, ctx, request)
	}
}

// actions are the steps that run in the pool.
var actions = map[plan.Step]action{
	plan.StepInstall: {do: verb(Actions.Install), done: api.EventInstalled, failed: api.EventInstallFailed, applies: true, values: true},
	plan.StepUpgrade: {do: verb(Actions.Upgrade), done: api.EventUpgraded, failed: api.EventUpgradeFailed, applies: true, prunes: true, values: true},
	plan.StepRollback: {
		do: func(r *Reconciler, ctx context.Context, _ *snapshot, request helm.Request) error {
			return r.Actions.Rollback(ctx, request, request.Marks.Held.Revision)
		},
		done: api.EventRolledBack, failed: api.EventRollbackFailed, applies: true, prunes: true,
	},
	plan.StepResume: {do: verb(Actions.Mark), done: api.EventResumed, failed: api.EventRollbackFailed},
	plan.StepRefuse: {do: verb(Actions.Mark), failed: api.EventRollbackFailed},
	plan.StepUninstall: {
		do: func(r *Reconciler, ctx context.Context, v *snapshot, request helm.Request) error {
			if err := r.Actions.Uninstall(ctx, request); err != nil {
				return err
			}
			return r.leftBehind(v)
		},
		done: api.EventUninstalled, failed: api.EventUninstallFailed,
	},
	plan.StepOrphan: {
		do: func(r *Reconciler, ctx context.Context, v *snapshot, request helm.Request) error {
			if err := r.Actions.Orphan(ctx, request); err != nil {
				return err
			}
			// The removed finalizer is the only trace of the orphaning.
			return r.removeFinalizers(ctx, v)
		},
		done: api.EventOrphaned, failed: api.EventUninstallFailed,
	},
	plan.StepAdopt: {do: verb(Actions.Adopt), done: api.EventAdopted, failed: api.EventAdoptionFailed, applies: true, values: true},
	plan.StepRepair: {
		do: func(r *Reconciler, ctx context.Context, v *snapshot, request helm.Request) error {
			repaired, err := r.Actions.Repair(ctx, request, v.repair.objects)
			r.reportRepairs(v, repaired)
			return err
		},
		failed: api.EventRepairFailed,
	},
	plan.StepVerify:   {do: verb(Actions.Verify), failed: api.EventRepairFailed, applies: true},
	plan.StepRecord:   {do: verb(Actions.Record), failed: api.EventRepairFailed},
	plan.StepDiagnose: {do: (*Reconciler).diagnose},
	plan.StepTest:     {do: verb(Actions.Test), done: api.EventTestsPassed, failed: api.EventTestsFailed},
	plan.StepSign:     {do: verb(Actions.Sign), failed: api.EventRepairFailed},
	plan.StepRestore:  {do: verb(Actions.Restore), failed: api.EventRepairFailed},
	plan.StepTidy:     {do: verb(Actions.Tidy), failed: api.EventUpgradeFailed},
	plan.StepUnlock: {
		do: func(r *Reconciler, ctx context.Context, v *snapshot, request helm.Request) error {
			newest := v.History[0]
			r.memory.with(v.CR.GetUID(), func(known *remembered) { known.interrupted = newest.Revision })
			return r.Actions.MarkFailed(ctx, request, newest, "Interrupted: the operator stopped during the action")
		},
		done: api.EventInterrupted, failed: api.EventInterrupted,
	},
}

// diagnose finds out why the first unready object is not ready, and remembers the
// cause.
func (r *Reconciler) diagnose(ctx context.Context, v *snapshot, _ helm.Request) error {
	why := ""
	if len(v.Health.Unready) > 0 {
		ctx, cancel := context.WithTimeout(ctx, diagnosisTimeout)
		defer cancel()
		cause, err := r.Why(ctx, v.Health.Unready[0].Key, v.Health.Unready[0].UID)
		if why = cause; err != nil && why == "" {
			why = fmt.Sprintf("The cause could not be determined: %v", err)
		}
	}
	r.memory.diagnosed(v.CR.GetUID(), why, r.Now())
	return nil
}

// namedLeftovers is the number of leftovers that an error names.
const namedLeftovers = 5

// leftBehind returns an error if an uninstall left release records or objects
// behind. Without the error the next reconciliation would uninstall the release again
// without backoff.
func (r *Reconciler) leftBehind(v *snapshot) error {
	var left []string
	for _, record := range r.Index.OwnedBy(v.CR.GetUID()) {
		if record.Namespace == v.Release.Namespace {
			left = append(left, "Secret "+record.Namespace+"/"+record.Secret)
		}
	}
	for _, state := range r.Inventory.OwnedBy(v.CR.GetUID()) {
		if !state.Kept && !state.Deleting {
			left = append(left, state.String())
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	return fmt.Errorf("%w: %s", helm.ErrLeftBehind, api.First(left, namedLeftovers))
}

// reportRepairs counts corrected objects, and emits one event about them.
func (r *Reconciler) reportRepairs(v *snapshot, repaired []helm.Repaired) {
	if len(repaired) == 0 {
		return
	}
	kind := r.kindName()
	texts := make([]string, len(repaired))
	for i, one := range repaired {
		texts[i] = one.String()
		r.Metrics.DriftCorrected(kind, one.GroupKind().String())
		if r.memory.repaired(v.CR.GetUID(), one, r.Now()) {
			r.Recorder.Eventf(v.CR, corev1.EventTypeWarning, api.EventDriftFight,
				"%s drifted %d times within %s: corrections are delayed more and more. %s", one.Key, fightRepairs, fightWindow, status.Contested{Key: one.Key, Pointers: one.Pointers}.Advice())
		}
	}
	r.emit(v, api.EventDriftCorrected, status.Cut("Corrected "+strings.Join(texts, "; ")))
}
