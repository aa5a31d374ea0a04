package reconcile

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/decide"
	"github.com/chartwright/chartwright/internal/helm"
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
}

// actions holds the steps that are actions.
var actions = map[decide.Step]action{
	decide.StepInstall: {
		do: func(r *Reconciler, ctx context.Context, _ *view, request helm.Request) error {
			return r.Helm.Install(ctx, request)
		},
		done: api.EventInstalled, failed: api.EventInstallFailed, applies: true,
	},
	decide.StepUpgrade: {
		do: func(r *Reconciler, ctx context.Context, _ *view, request helm.Request) error {
			return r.Helm.Upgrade(ctx, request)
		},
		done: api.EventUpgraded, failed: api.EventUpgradeFailed, applies: true, prunes: true,
	},
	decide.StepRollback: {
		do: func(r *Reconciler, ctx context.Context, _ *view, request helm.Request) error {
			return r.Helm.Rollback(ctx, request, request.Marks.Held.Revision)
		},
		done: api.EventRolledBack, failed: api.EventRollbackFailed, applies: true, prunes: true,
	},
	decide.StepResume: {
		do: func(r *Reconciler, ctx context.Context, _ *view, request helm.Request) error {
			return r.Helm.Mark(ctx, request)
		},
		done: api.EventResumed, failed: api.EventRollbackFailed,
	},
	decide.StepRefuse: {
		do: func(r *Reconciler, ctx context.Context, _ *view, request helm.Request) error {
			return r.Helm.Mark(ctx, request)
		},
		failed: api.EventRollbackFailed,
	},
	decide.StepUninstall: {
		do: func(r *Reconciler, ctx context.Context, _ *view, request helm.Request) error {
			return r.Helm.Uninstall(ctx, request)
		},
		done: api.EventUninstalled, failed: api.EventUninstallFailed,
	},
	decide.StepOrphan: {
		do: func(r *Reconciler, ctx context.Context, v *view, request helm.Request) error {
			if err := r.Helm.Orphan(ctx, request); err != nil {
				return err
			}
			// Nothing else tells that it was done.
			return r.patchFinalizer(ctx, v, controllerutil.RemoveFinalizer)
		},
		done: api.EventOrphaned, failed: api.EventUninstallFailed,
	},
	decide.StepAdopt: {
		do: func(r *Reconciler, ctx context.Context, _ *view, request helm.Request) error {
			return r.Helm.Adopt(ctx, request)
		},
		done: api.EventAdopted, failed: api.EventAdoptionFailed, applies: true,
	},
	decide.StepRepair: {
		do: func(r *Reconciler, ctx context.Context, v *view, request helm.Request) error {
			repaired, err := r.Helm.Repair(ctx, request, v.damage)
			r.reportRepairs(v, repaired)
			return err
		},
		failed: api.EventRepairFailed,
	},
	decide.StepVerify: {
		do: func(r *Reconciler, ctx context.Context, _ *view, request helm.Request) error {
			return r.Helm.Verify(ctx, request)
		},
		failed: api.EventRepairFailed, applies: true,
	},
	decide.StepDiagnose: {
		do: func(r *Reconciler, ctx context.Context, v *view, _ helm.Request) error {
			return r.diagnose(ctx, v)
		},
	},
	decide.StepTest: {
		do: func(r *Reconciler, ctx context.Context, _ *view, request helm.Request) error {
			return r.Helm.Test(ctx, request)
		},
		done: api.EventTestsPassed, failed: api.EventTestsFailed,
	},
	decide.StepTidy: {
		do: func(r *Reconciler, ctx context.Context, _ *view, request helm.Request) error {
			return r.Helm.Tidy(ctx, request)
		},
		failed: api.EventUpgradeFailed,
	},
	decide.StepUnlock: {
		do: func(r *Reconciler, ctx context.Context, v *view, request helm.Request) error {
			return r.Helm.MarkFailed(ctx, request, v.history[0],
				"Interrupted: the action ended with the process that ran it")
		},
		done: api.EventInterrupted, failed: api.EventInterrupted,
	},
}
