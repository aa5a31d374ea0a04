package reconcile

import (
	"context"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
)

// action is what a step does beside the passes.
type action struct {
	do func(*Reconciler, context.Context, *view, helm.Request) error
	// done and failed are the reasons of the events that tell how it ended. What
	// is no news when done has no done.
	done, failed string
	// prunes: there may be more revisions afterwards than are kept.
	prunes bool
	// applies: every object was looked at.
	applies bool
	// values: the action needs the values of the release, its own since it may
	// change them.
	values bool
}

// verb is an action that is one of Helm's and no more.
func verb(do func(*helm.Client, context.Context, helm.Request) error) func(*Reconciler, context.Context, *view, helm.Request) error {
	return func(r *Reconciler, ctx context.Context, _ *view, request helm.Request) error {
		return do(r.Helm, ctx, request)
	}
}

// actions holds the steps that are actions.
var actions = map[plan.Step]action{
	plan.StepInstall: {
		do:   verb((*helm.Client).Install),
		done: api.EventInstalled, failed: api.EventInstallFailed, applies: true, values: true,
	},
	plan.StepUpgrade: {
		do:   verb((*helm.Client).Upgrade),
		done: api.EventUpgraded, failed: api.EventUpgradeFailed, applies: true, prunes: true, values: true,
	},
	plan.StepRollback: {
		do: func(r *Reconciler, ctx context.Context, _ *view, request helm.Request) error {
			return r.Helm.Rollback(ctx, request, request.Marks.Held.Revision)
		},
		done: api.EventRolledBack, failed: api.EventRollbackFailed, applies: true, prunes: true,
	},
	plan.StepResume: {
		do:   verb((*helm.Client).Mark),
		done: api.EventResumed, failed: api.EventRollbackFailed,
	},
	plan.StepRefuse: {
		do:     verb((*helm.Client).Mark),
		failed: api.EventRollbackFailed,
	},
	plan.StepUninstall: {
		do: func(r *Reconciler, ctx context.Context, v *view, request helm.Request) error {
			if err := r.Helm.Uninstall(ctx, request); err != nil {
				return err
			}
			return r.leftBehind(v)
		},
		done: api.EventUninstalled, failed: api.EventUninstallFailed,
	},
	plan.StepOrphan: {
		do: func(r *Reconciler, ctx context.Context, v *view, request helm.Request) error {
			if err := r.Helm.Orphan(ctx, request); err != nil {
				return err
			}
			// Nothing else records that it was done.
			return r.letGo(ctx, v)
		},
		done: api.EventOrphaned, failed: api.EventUninstallFailed,
	},
	plan.StepAdopt: {
		do:   verb((*helm.Client).Adopt),
		done: api.EventAdopted, failed: api.EventAdoptionFailed, applies: true, values: true,
	},
	plan.StepRepair: {
		do: func(r *Reconciler, ctx context.Context, v *view, request helm.Request) error {
			repaired, err := r.Helm.Repair(ctx, request, v.damage)
			r.reportRepairs(v, repaired)
			return err
		},
		failed: api.EventRepairFailed,
	},
	plan.StepVerify: {
		do:     verb((*helm.Client).Verify),
		failed: api.EventRepairFailed, applies: true,
	},
	plan.StepRecord: {
		do:     verb((*helm.Client).Record),
		failed: api.EventRepairFailed,
	},
	plan.StepDiagnose: {
		do: func(r *Reconciler, ctx context.Context, v *view, _ helm.Request) error {
			return r.diagnose(ctx, v)
		},
	},
	plan.StepTest: {
		do:   verb((*helm.Client).Test),
		done: api.EventTestsPassed, failed: api.EventTestsFailed,
	},
	plan.StepSign: {
		do:     verb((*helm.Client).Sign),
		failed: api.EventRepairFailed,
	},
	plan.StepRestore: {
		do:     verb((*helm.Client).Restore),
		failed: api.EventRepairFailed,
	},
	plan.StepTidy: {
		do:     verb((*helm.Client).Tidy),
		failed: api.EventUpgradeFailed,
	},
	plan.StepUnlock: {
		do: func(r *Reconciler, ctx context.Context, v *view, request helm.Request) error {
			return r.Helm.MarkFailed(ctx, request, v.history[0],
				"Interrupted: the action ended with the process that ran it")
		},
		done: api.EventInterrupted, failed: api.EventInterrupted,
	},
}
