package helm

import (
	"fmt"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/guard"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// approveMove returns an ApprovalError if the uninstall before a move to another namespace
// is not approved. A move needs an approval with every guard.mode and approval, because it
// deletes all objects of the release. An uninstall that has begun needs no further
// approval: the record has the status uninstalling.
func (r *run) approveMove(history []release.Record) error {
	if r.MoveTo == "" || len(history) == 0 || history[0].Status == api.StatusUninstalling {
		return nil
	}
	if err := r.mayMove(); err != nil {
		return err
	}
	plan := guard.Plan{
		Action:     fmt.Sprintf("move the release from namespace %s to %s, which deletes and creates all its objects", r.Namespace, r.MoveTo),
		DeletesAll: true,
		Base:       history[0].Revision,
	}
	if r.Guard.Mode != watches.GuardOff {
		var err error
		if plan.Operations, err = r.guardedOperations(history, nil); err != nil {
			return err
		}
	}
	if digest := plan.Digest(); r.Approve != digest {
		return &ApprovalError{Plan: plan, command: r.approveCommand(digest), other: r.Approve != ""}
	}
	return nil
}

// mayMove returns an error if the install after the uninstall would fail for a known reason:
// the namespace does not exist, or the chart cannot be rendered.
func (r *run) mayMove() error {
	if !r.CreateNamespace {
		missing, err := r.client.Terminating(r.kube.ctx, r.MoveTo)
		if err != nil {
			return err
		}
		if missing {
			return fmt.Errorf("the new namespace %s of the release does not exist or is being deleted: create it, or set the namespace back", r.MoveTo)
		}
	}
	values := r.Values
	if r.CurrentValues != nil {
		var err error
		if values, err = r.CurrentValues(); err != nil {
			return err
		}
	}
	prepared, err := r.Chart.Prepare(values, r.numbers(r.Integers))
	if err != nil {
		return err
	}
	moved := *r
	moved.Namespace = r.MoveTo
	_, err = moved.execute(prepared, 1)
	return r.classify(err)
}
