package operator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/reconcile"
	"github.com/chartwright/chartwright/internal/release"
)

// kinds starts each kind when its CRD is there. It is a Runnable that needs no
// leader election, so that a standby's caches are warm.
type kinds struct {
	manager   manager.Manager
	clientset kubernetes.Interface
	options   Options
	shared    reconcile.Shared
	sources   *valuesfrom.Store
	board     *board
	rights    *rights
	notices   notices
	// signingKey signs the release records.
	signingKey *signingKey
	// recordKinds limits which kinds release records have the operator watch.
	recordKinds *recordKinds
	// observing is what status fields speak of beside the releases.
	observing *observing
	// changed is told of CRDs that come or change.
	changed chan struct{}

	// areas are the namespaces to serve.
	areas []*area
	// pauses are what CRDs say of the rollouts.
	pauses pauses
	// defined is closed when all definitions were tried that are to be installed.
	defined chan struct{}
	// sight is told that the right to watch CRDs may have come.
	sight chan struct{}
	// blind: CRDs cannot be watched, for lack of rights.
	blind atomic.Bool

	mu      sync.Mutex
	waiting []catalog.Kind
	serving []*reconcile.Reconciler
	// looked: the API server was asked for the kinds once.
	looked bool
	// lookups are those that have not been answered.
	lookups map[schema.GroupVersionKind]chan lookup
	// forbidden are told when the operator's rights have changed, by kind.
	forbidden map[schema.GroupKind][]chan struct{}
}

// A new CRD is served some time after it is stored: how often, and how long,
// to look again after the last change, and when what the server can do is read
// a second time.
const (
	lookAgain = 500 * time.Millisecond
	lookUntil = 30 * time.Second
	settle    = 3 * time.Second
	// lookBlind is how often to look where no watch tells of CRDs.
	lookBlind = 10 * time.Second
)

func (k *kinds) addTo(mgr manager.Manager) error {
	k.areas = newAreas(k.options.Namespaces)
	k.sight = make(chan struct{}, 1)
	k.changed = make(chan struct{}, 1)
	k.forbidden = map[schema.GroupKind][]chan struct{}{}
	k.defined = make(chan struct{})
	if k.options.InstallCRDs {
		if err := mgr.Add(leading(k.installCRDs)); err != nil {
			return err
		}
	} else {
		close(k.defined)
	}
	return mgr.Add(k)
}

// NeedLeaderElection answers no: watching is no acting.
func (k *kinds) NeedLeaderElection() bool { return false }

// Start watches records and CRDs and starts kinds until the context ends.
func (k *kinds) Start(ctx context.Context) error {
	go k.shared.Helm.Capabilities().Warm()
	go k.signingKey.run(ctx)
	if err := k.watchCRDs(ctx); err != nil {
		return err
	}
	// Nothing is served without a key, because nothing could be signed.
	select {
	case <-k.signingKey.loaded:
		k.board.hold("the operator is starting")
	case <-ctx.Done():
		return nil
	}
	if err := k.openAreas(ctx); err != nil {
		return err
	}
	k.warnOfLeftBehind()
	lastChange := time.Now()
	var settled <-chan time.Time
	for {
		missing, failed := k.startServed(ctx)
		k.board.hold("")
		again := k.lookAgain(missing, failed, time.Since(lastChange))
		select {
		case <-ctx.Done():
			return nil
		case <-k.changed:
			lastChange = time.Now()
			settled = time.After(settle)
			k.capabilitiesChanged(ctx)
			k.shared.Inventory.Retry()
		case <-settled:
			k.capabilitiesChanged(ctx)
			k.watchNewlyKnown(ctx)
			k.shared.Inventory.Retry()
			k.each((*reconcile.Reconciler).KindsChanged)
		case <-again:
		}
	}
}

// lookAgain returns when to look for kinds though nothing has changed, nil for
// never. A kind of which the API server could not say whether it has it is looked
// for until it can.
func (k *kinds) lookAgain(missing, failed bool, sinceChange time.Duration) <-chan time.Time {
	switch {
	case !missing:
		return nil
	case sinceChange < lookUntil:
		return time.After(lookAgain)
	case failed, k.blind.Load():
		return time.After(lookBlind)
	default:
		return nil
	}
}

// startServed starts every waiting kind that the server knows. It reports whether
// some are left, and whether the lookup of one of them has failed.
func (k *kinds) startServed(ctx context.Context) (missing, failed bool) {
	k.mu.Lock()
	waiting := k.waiting
	k.mu.Unlock()
	left := make([]catalog.Kind, 0, len(waiting))
	for _, looked := range k.lookUp(waiting) {
		kind, gk := looked.kind, looked.kind.GVK().GroupKind()
		switch {
		case looked.err == nil:
			k.mu.Lock()
			k.start(ctx, kind, looked.scope)
			k.mu.Unlock()
			continue
		case meta.IsNoMatchError(looked.err):
			k.board.set(gk, stateWaiting, crdWaited(kind))
		default:
			// The API server is briefly away, or a group of it is.
			failed = true
			k.manager.GetLogger().Error(looked.err, "kind not looked up", "kind", kind.Kind, "group", kind.Group)
			k.board.set(gk, stateFailed, looked.err.Error())
		}
		left = append(left, kind)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(left) > 0 && !k.looked {
		for _, kind := range left {
			k.manager.GetLogger().Info("waiting for the CRD of a kind", "kind", kind.Kind, "group", kind.Group, "version", kind.Version)
		}
	}
	k.waiting, k.looked = left, true
	return len(left) > 0, failed
}

// each tells something to the reconciler of every kind that is served; it knows
// what is none of its business.
func (k *kinds) each(tell func(*reconcile.Reconciler)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.serving {
		tell(r)
	}
}

// recordChanged calls for a pass over the custom resource whose record somebody
// else changed.
func (k *kinds) recordChanged(record release.Record) {
	k.keepWarm(record)
	k.each(func(r *reconcile.Reconciler) { r.RecordChanged(record) })
}

// capabilitiesChanged calls for a pass over every custom resource whose chart
// looks at what the server can do, since it may render otherwise now.
func (k *kinds) capabilitiesChanged(ctx context.Context) {
	k.shared.Helm.Capabilities().Refresh()
	if k.recordKinds.isStale() {
		go func() {
			k.recordKinds.refresh(ctx)
			k.watchKindsOf(k.shared.Index.Deployed(k.options.Name))
			k.shared.Inventory.Retry()
		}()
	}
	k.each(func(r *reconcile.Reconciler) {
		if r.Kind.Chart.MayReadCapabilities() {
			r.WakeAll()
		}
	})
}
