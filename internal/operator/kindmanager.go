package operator

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/operator/crdwatch"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/operator/signingkey"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// KindManager starts each kind when its CRD is served. It is a Runnable that runs
// on every replica, so that the caches of a standby are warm. The loop in run owns
// what changes; the goroutines of tasks end with Start.
type KindManager struct {
	options     Options
	shared      reconcile.Shared
	reconcilers *reconcilers
	informers
	// sources are the objects that values come from, and observed those that status
	// fields reference.
	sources  *valuesfrom.Store
	observed *observedWatches
	// recordKinds limits which kinds are watched because release records name them.
	recordKinds *recordKinds
	crds        *crdwatch.Watcher
	// crdsTried is closed when the CRDs that are to be installed were tried.
	crdsTried  <-chan struct{}
	signingKey *signingkey.Manager
	readiness  *readiness.Checker
}

// A new CRD is served some time after it is stored: how often to look for its
// kind, for how long after the last change of a CRD, and when to refresh the
// capabilities of the API server a second time.
const (
	kindCheckInterval = 500 * time.Millisecond
	kindCheckDuration = 30 * time.Second
	crdSettleDelay    = 3 * time.Second
	// pollInterval is how often to look for kinds if no watch reports CRDs.
	pollInterval = 10 * time.Second
)

// Start starts kinds until the context ends. It returns an error if the watches of
// a namespace cannot be set up before the first kind starts.
func (k *KindManager) Start(ctx context.Context) error {
	defer k.tasks.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	k.tasks.Go(k.shared.Actions.Capabilities().Warm)
	// Without a key nothing can be signed, so that nothing is served.
	for _, needed := range []<-chan struct{}{k.crds.Known(), k.signingKey.Loaded()} {
		select {
		case <-needed:
		case <-ctx.Done():
			return nil
		}
	}
	k.readiness.SetNotReady("the operator is starting")
	if err := k.openScopes(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	k.warnOfOrphanedKinds()
	lookups := crdwatch.NewLookups(k.manager.GetRESTMapper(), k.tasks)
	waiting, first := k.options.Kinds, true
	lastChange := time.Now()
	var settled <-chan time.Time
	for {
		var failed bool
		waiting, failed = k.startServed(ctx, lookups, waiting)
		if first {
			for _, kind := range waiting {
				k.logger.Info("waiting for the CRD of a kind", "kind", kind.Kind, "group", kind.Group, "version", kind.Version)
			}
			first = false
		}
		k.readiness.SetNotReady("")
		var again <-chan time.Time
		switch {
		case len(waiting) == 0:
		case time.Since(lastChange) < kindCheckDuration:
			again = time.After(kindCheckInterval)
		case failed, k.crds.Forbidden():
			// No event reports that the API server serves the kind now.
			again = time.After(pollInterval)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.crds.Changes():
			lastChange = time.Now()
			settled = time.After(crdSettleDelay)
			k.capabilitiesChanged(ctx)
			k.shared.Inventory.Retry()
		case <-settled:
			k.capabilitiesChanged(ctx)
			k.observed.retryUnserved(ctx)
			k.shared.Inventory.Retry()
			k.reconcilers.each((*reconcile.Reconciler).KindsChanged)
		case <-again:
		}
	}
}

// openScopes watches, in each scope, what reconciles need. It returns when each
// scope is ready or forbidden, and one is ready. It returns an error if a scope
// cannot be watched; a later one is logged.
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
		k.readiness.SetNotReady("release records, which are Secrets, may not be watched, for lack of rights")
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
	for _, watch := range []func(context.Context, *namespaceScope) error{k.watchRecords, k.watchSources, k.watchManagedResources} {
		if err := watch(ctx, scope); err != nil {
			return err
		}
	}
	scope.ready.set()
	if scope.name != "" {
		k.logger.Info("serving namespace", "namespace", scope.name)
	}
	return nil
}

// startServed starts the waiting kinds that the API server serves. It returns the
// others, and whether a lookup has failed.
func (k *KindManager) startServed(ctx context.Context, lookups *crdwatch.Lookups, waiting []catalog.Kind) (left []catalog.Kind, failed bool) {
	for _, found := range lookups.Find(ctx, waiting) {
		kind := found.Kind
		switch {
		case found.Err == nil:
			k.startKind(ctx, kind, found.Mapping.Scope.Name())
			continue
		case meta.IsNoMatchError(found.Err):
			k.readiness.SetState(kind.GVK().GroupKind(), readiness.Waiting, readiness.WaitsForCRD(kind))
		default:
			// The API server, or one that serves a group of it, is away.
			failed = true
			k.logger.Error(found.Err, "kind not looked up", "kind", kind.Kind, "group", kind.Group)
			k.readiness.SetState(kind.GVK().GroupKind(), readiness.Failed, found.Err.Error())
		}
		left = append(left, kind)
	}
	return left, failed
}

// capabilitiesChanged requests a reconcile of every custom resource whose chart
// reads the capabilities of the API server, since it may render otherwise now.
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
		if r.Kind.Chart.MayReadCapabilities() {
			r.WakeAll()
		}
	})
}

// warnOfOrphanedKinds logs releases of this operator whose kind was removed from
// the watches file: their custom resources can be neither changed nor deleted.
func (k *KindManager) warnOfOrphanedKinds() {
	served := map[string]bool{}
	for _, kind := range k.options.Kinds {
		served[kind.GVK().GroupKind().String()] = true
	}
	orphaned := map[string][]string{}
	for _, record := range k.shared.Index.Deployed(k.options.Name) {
		kind, name, _ := strings.Cut(record.Owner, "/")
		if record.Owner != "" && !served[kind] {
			orphaned[kind] = append(orphaned[kind], name)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(orphaned)) {
		k.logger.Info("releases of a kind that is not served any more: their custom resources cannot be deleted until it is, or their finalizer is removed by hand",
			"kind", kind, "releases", len(orphaned[kind]), "example", slices.Min(orphaned[kind]))
	}
}

// reconcilers are those of the kinds that are served. Each ignores events about
// custom resources of other kinds.
type reconcilers struct {
	mu  sync.Mutex
	all []*reconcile.Reconciler
}

// add adds a reconciler, and calls a function before each can see it.
func (r *reconcilers) add(reconciler *reconcile.Reconciler, prepare func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	prepare()
	r.all = append(r.all, reconciler)
}

func (r *reconcilers) each(do func(*reconcile.Reconciler)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reconciler := range r.all {
		do(reconciler)
	}
}

// forOne returns a function that calls a method of the reconcilers for one custom
// resource: for the owner of a managed resource that has drifted, for example.
func (r *reconcilers) forOne(do func(*reconcile.Reconciler, types.UID)) func(types.UID) {
	return func(uid types.UID) {
		r.each(func(one *reconcile.Reconciler) { do(one, uid) })
	}
}
