package operator

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/operator/crdwatch"
	"github.com/chartwright/chartwright/internal/operator/kindset"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/operator/signingkey"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// KindManager starts each kind when its CRD is served, and replaces and stops kinds when
// their sources change. It runs on every replica, so that the caches of a standby are
// filled. Its state belongs to the loop in Start; the goroutines of tasks end before Start
// returns.
type KindManager struct {
	options Options
	// set holds the kinds to serve. It is complete when loaded is closed.
	set    *kindset.Set
	loaded <-chan struct{}
	// chartKinds is closed when set has the ChartKinds that were served before a restart.
	chartKinds  <-chan struct{}
	shared      reconcile.Shared
	resources   *customresource.Client
	reconcilers *reconcilers
	informers
	// sources are the watches of the sources of values, observed those of the objects that
	// status fields read, and dependencies those of the objects that custom resources depend
	// on.
	sources      *sourceWatches
	observed     *observedWatches
	dependencies *dependencyWatches
	// recordKinds limits the kinds that the operator watches because release records name
	// them.
	recordKinds *recordKinds
	crds        *crdwatch.Watcher
	installer   *crdwatch.Installer
	signingKey  *signingkey.Manager
	readiness   *readiness.Checker

	// first are the kinds that were registered when the operator was created, until they are
	// prepared.
	first map[schema.GroupKind]kindset.Entry
	// kinds are the kinds that wait, are served or stop.
	kinds []*kindState
	// ended receives kinds whose controller and caches have ended, emptied receives removed
	// kinds without custom resources, and unserved those that the API server no longer
	// serves.
	ended, emptied, unserved chan *servedKind
	// claimed reports that followRecords has skipped a kind, see kindset.Set.Claimed.
	claimed bool
	// opened receives a value when a scope is ready, which has more release records.
	opened chan struct{}
}

// The API server serves a new CRD some time after it is stored. These constants are how
// often and how long to check for its kind after the last change of a CRD, and when to
// refresh the capabilities of the API server a second time.
const (
	kindCheckInterval = 500 * time.Millisecond
	kindCheckDuration = 30 * time.Second
	crdSettleDelay    = 3 * time.Second
	// pollInterval is how often to check for kinds if the operator cannot watch CRDs.
	pollInterval = 10 * time.Second
)

// Start starts kinds until the context ends. It returns an error if the watches of a
// namespace cannot be set up before the first kind starts.
func (k *KindManager) Start(ctx context.Context) error {
	defer k.tasks.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	k.observed.until, k.dependencies.until, k.sources.until, k.sources.others.until = ctx, ctx, ctx, ctx
	changes := k.set.Changes()
	k.tasks.Go(k.shared.Actions.Capabilities().Warm)
	k.awaitInputs(ctx)
	k.readiness.SetNotReady("the operator is starting")
	if err := k.openScopes(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	k.follow(ctx)
	k.followRecords()
	lookups := crdwatch.NewLookups(k.manager.GetRESTMapper(), k.tasks)
	lastChange := time.Now()
	var settled <-chan time.Time
	for {
		waiting, failed := k.startServed(ctx, lookups)
		k.readiness.SetNotReady("")
		var again <-chan time.Time
		switch {
		case waiting && time.Since(lastChange) < kindCheckDuration:
			again = time.After(kindCheckInterval)
		case waiting && failed, k.crds.Forbidden():
			// No event will report that the API server serves a kind.
			again = time.After(pollInterval)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
			lastChange = time.Now()
			k.follow(ctx)
			if k.claimed {
				k.followRecords()
			}
		case <-k.opened:
			lastChange = time.Now()
			k.followRecords()
		case s := <-k.emptied:
			k.empty(s)
		case s := <-k.unserved:
			lastChange = time.Now()
			k.lookUpAgain(s)
		case s := <-k.ended:
			k.end(ctx, s)
			k.endUnused()
		case <-k.crds.Changes():
			lastChange = time.Now()
			settled = time.After(crdSettleDelay)
			k.capabilitiesChanged(ctx)
			k.shared.Inventory.Retry()
		case <-settled:
			k.capabilitiesChanged(ctx)
			k.retryUnserved()
			k.shared.Inventory.Retry()
			k.reconcilers.each((*reconcile.Reconciler).KindsChanged)
		case <-again:
			if k.crds.Forbidden() {
				k.retryUnserved()
			}
		}
	}
}

// endUnused ends the shared watches that no kind needs, neither one that is or will be served nor
// one that is ending.
func (k *KindManager) endUnused() {
	kinds := k.set.Kinds()
	for _, state := range k.kinds {
		kinds = append(kinds, state.kind)
		if state.served != nil {
			kinds = append(kinds, state.served.kind)
		}
	}
	k.observed.endUnused(kinds)
	k.dependencies.endUnused(kinds)
	k.sources.others.endUnused(kinds)
}

// retryUnserved starts the shared watches whose kind was not served.
func (k *KindManager) retryUnserved() {
	k.observed.retryUnserved()
	k.dependencies.retryUnserved()
	k.sources.others.retryUnserved()
}

// awaitInputs waits for what the manager needs before the first kind starts. Without a key no
// release record can be signed.
func (k *KindManager) awaitInputs(ctx context.Context) {
	for _, needed := range []<-chan struct{}{k.crds.Known(), k.signingKey.Loaded(), k.loaded, k.chartKinds} {
		receive(ctx, needed)
	}
}

// openScopes starts the watches that reconciliations need in each scope. It returns when
// each scope is ready or forbidden, and at least one is ready. It returns an error if a
// scope cannot be watched; an error after that is logged.
func (k *KindManager) openScopes(ctx context.Context) error {
	opened, failed := newLatch(), make(chan error, len(k.scopes))
	for _, scope := range k.scopes {
		k.tasks.Go(func() {
			err := k.openScope(ctx, scope)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				k.logger.Error(err, "namespace not served", "namespace", scope.name)
				failed <- err
			default:
				opened.set()
			}
		})
	}
	for _, scope := range k.scopes {
		select {
		case <-scope.ready.done:
		case <-scope.forbidden.done:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
	if !isClosed(opened.done) {
		k.readiness.SetNotReady("the operator lacks the permission to watch Secrets, which store the release records")
	}
	select {
	case <-opened.done:
		k.readiness.SetNotReady("the operator is starting")
		return nil
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (k *KindManager) openScope(ctx context.Context, scope *namespaceScope) error {
	for _, watch := range []func(context.Context, *namespaceScope) error{k.watchRecords, k.openSources, k.watchManagedResources} {
		if err := watch(ctx, scope); err != nil {
			return err
		}
	}
	scope.ready.set()
	select {
	case k.opened <- struct{}{}:
	default: // a signal is already pending
	}
	if scope.name != "" {
		k.logger.Info("serving namespace", "namespace", scope.name)
	}
	return nil
}

// capabilitiesChanged requests a reconciliation of every custom resource whose chart reads
// the capabilities of the API server, because its rendering may differ now.
func (k *KindManager) capabilitiesChanged(ctx context.Context) {
	k.shared.Actions.Capabilities().Refresh()
	if k.recordKinds.isStale() {
		k.tasks.Go(func() {
			k.refreshRecordKinds(ctx)
			k.watchKindsOf(k.shared.Index.Deployed(k.options.Name))
			k.shared.Inventory.Retry()
		})
	}
	k.reconcilers.each(func(r *reconcile.Reconciler) {
		if !r.DeletionOnly && r.Kind.Chart.MayReadCapabilities() {
			r.WakeAll()
		}
	})
}
