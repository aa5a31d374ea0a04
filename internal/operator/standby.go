package operator

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chartwright/chartwright/internal/release"
)

// Times of the leader election. The leader renews the lease every leaseRetry,
// and ends where it could not for renewDeadline; a lease that nobody has renewed
// for leaseDuration is free. A standby looks every leaseRetry and up to 1.2 times
// as much besides, so that it has seen within 1.65 seconds that a leader has
// gone which gave the lease back.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	leaseRetry    = 750 * time.Millisecond
)

// keepWarm has a standby watch what the leader's releases have objects of.
// Actions say so in the process that runs them alone; without it a standby would
// know nothing of these objects when it takes over, and apply them all anew.
func (k *kinds) keepWarm(record release.Record) {
	if record.OwnerUID == "" || record.Operator != k.options.Name || isClosed(k.manager.Elected()) {
		return
	}
	k.shared.Inventory.WatchMore(record.OwnerUID, k.recordKinds.of(record))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// afterDefinitions holds passes back until the definitions were installed, or
// tried, since a status that the old one does not know would be cut.
type afterDefinitions struct {
	ctrlreconcile.Reconciler
	tried <-chan struct{}
}

// Reconcile waits for the definitions, and makes the pass.
func (a afterDefinitions) Reconcile(ctx context.Context, request ctrlreconcile.Request) (ctrlreconcile.Result, error) {
	select {
	case <-a.tried:
		return a.Reconciler.Reconcile(ctx, request)
	case <-ctx.Done():
		return ctrlreconcile.Result{}, ctx.Err()
	}
}

// leading is a Runnable of the leader alone.
type leading func(ctx context.Context) error

var _ manager.LeaderElectionRunnable = leading(nil)

// Start runs it.
func (l leading) Start(ctx context.Context) error { return l(ctx) }

// NeedLeaderElection answers yes: it writes.
func (leading) NeedLeaderElection() bool { return true }
