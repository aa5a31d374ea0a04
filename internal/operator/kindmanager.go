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

// KindManager starts each kind when its CRD is served. It runs on every replica, so that
// the caches of a standby are filled. Its state belongs to the loop in Start; the
// goroutines of tasks end before Start returns.
type KindManager struct {
	options     Options
	shared      reconcile.Shared
	reconcilers *reconcilers
	informers
	// sources are the sources of values, and observed the objects that status fields read.
	sources  *valuesfrom.Store
	observed *observedWatches
	// recordKinds limits the kinds that the operator watches because release records name
	// them.
	recordKinds *recordKinds
	crds        *crdwatch.Watcher
	// crdsTried is closed after the first attempt to install each CRD.
	crdsTried  <-chan struct{}
	signingKey *signingkey.Manager
	readiness  *readiness.Checker
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
	k.tasks.Go(k.shared.Actions.Capabilities().Warm)
	// Without a key no release record can be signed.
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
			// No event will report that the API server serves the kind.
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

// startServed starts the waiting kinds that the API server serves. It returns the other
// kinds, and whether a lookup has failed.
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
			// The API server, or an aggregated API server, is unavailable.
			failed = true
			k.logger.Error(found.Err, "failed to look up kind", "kind", kind.Kind, "group", kind.Group)
			k.readiness.SetState(kind.GVK().GroupKind(), readiness.Failed, found.Err.Error())
		}
		left = append(left, kind)
	}
	return left, failed
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
		if r.Kind.Chart.MayReadCapabilities() {
			r.WakeAll()
		}
	})
}

// warnOfOrphanedKinds logs releases of this operator whose kind was removed from the
// watches file. Their custom resources can no longer be reconciled or deleted.
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
		k.logger.Info("releases found whose kind is not served; to delete their custom resources, serve the kind again or remove their finalizers",
			"kind", kind, "releases", len(orphaned[kind]), "example", slices.Min(orphaned[kind]))
	}
}

// reconcilers are the reconcilers of all served kinds. Each ignores events about custom
// resources of other kinds.
type reconcilers struct {
	mu  sync.Mutex
	all []*reconcile.Reconciler
}

// add adds a reconciler. It calls prepare before other goroutines can use the reconciler.
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

// forOne returns a function that calls a method of the reconcilers for one custom resource,
// for example for the owner of a drifted resource.
func (r *reconcilers) forOne(do func(*reconcile.Reconciler, types.UID)) func(types.UID) {
	return func(uid types.UID) {
		r.each(func(one *reconcile.Reconciler) { do(one, uid) })
	}
}
