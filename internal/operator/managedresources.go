package operator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/inventory/health"
	"github.com/chartwright/chartwright/internal/reconcile"
	"github.com/chartwright/chartwright/internal/release"
)

// newInventory returns the inventory of the managed resources of this operator. It is empty
// and watches no scope yet.
func newInventory(mapper meta.RESTMapper, kinds []catalog.Kind, served *reconcilers, limited *recordKinds) inventory.Inventory {
	index := inventory.NewIndex(served.forOne((*reconcile.Reconciler).Drifted), served.forOne((*reconcile.Reconciler).HealthChanged))
	rules := map[schema.GroupKind]health.Rules{}
	for _, kind := range kinds {
		if len(kind.HealthRules) > 0 {
			rules[kind.GVK().GroupKind()] = kind.HealthRules
		}
	}
	index.HealthConfig = inventory.HealthConfig{Rules: inventory.NewRuleSet(rules)}
	if known, ok := mapper.(*versionMapper); ok {
		index.HealthConfig.NoStatus = known.noStatus
	}
	watches := inventory.NewWatches(index, func(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
		return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	})
	watches.MayServe = limited.mayServe
	return inventory.Inventory{Index: index, Watches: watches}
}

// unwatchedLines lists, for /readyz, the kinds of managed resources that cannot be watched.
func unwatchedLines(watches *inventory.Watches) []string {
	var lines []string
	for _, u := range watches.AllUnwatched() {
		if len(lines) == 0 {
			lines = append(lines, "managed resources that are not watched: their drift is not detected, and their health is unknown")
		}
		lines = append(lines, fmt.Sprintf("  %s: %s", u.GroupKind, u.Why))
	}
	return lines
}

// unwatchedKinds returns the kinds of managed resources that cannot be watched, once for
// each namespace.
func unwatchedKinds(watches *inventory.Watches) []string {
	all := watches.AllUnwatched()
	kinds := make([]string, len(all))
	for i, unwatched := range all {
		kinds[i] = unwatched.String()
	}
	return kinds
}

// managedTimeout is how long the start waits for all managed resources together. A kind
// that cannot be watched does not delay it.
const managedTimeout = 4 * time.Second

// watchManagedResources watches the managed resources of the stored releases of a scope
// before the first reconciliation. Kinds that cannot be watched are reported on their
// custom resources, and retried.
func (k *KindManager) watchManagedResources(ctx context.Context, scope *namespaceScope) error {
	options := k.cacheOptions(scope)
	options.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{api.LabelOperator: k.options.Name})
	managed, err := k.startCache(ctx, k.shared.Inventory.Options(scope.name, options))
	if err != nil {
		return fmt.Errorf("watch managed resources: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, managedTimeout)
	defer cancel()
	k.shared.Inventory.AddNamespace(scope.name, managed)
	k.refreshRecordKinds(limited)
	k.watchKindsOf(slices.DeleteFunc(k.shared.Index.Deployed(k.options.Name), func(r release.Record) bool { return !scope.has(r.Namespace) }))
	k.shared.Inventory.WaitForSync(limited, scope.name)
	for _, unwatched := range k.shared.Inventory.AllUnwatched() {
		k.logger.Info("managed resources not watched: drift not detected, health unknown", "dependent", unwatched.String(), "reason", unwatched.Why)
	}
	return ctx.Err()
}

// refreshRecordKinds reads which kinds the API server serves, with at most one request. It
// discards a response after the context has ended.
func (k *KindManager) refreshRecordKinds(ctx context.Context) {
	answer := make(chan func(schema.GroupVersionKind) bool, 1)
	k.tasks.Go(func() {
		serves, err := k.shared.Actions.Capabilities().Serves()
		if err != nil {
			k.logger.Error(err, "failed to read the kinds of the API server")
		}
		answer <- serves
	})
	select {
	case serves := <-answer:
		if serves != nil {
			k.recordKinds.refresh(serves)
		}
	case <-ctx.Done():
	}
}

// watchKindsOf watches the kinds in release records, up to the limits.
func (k *KindManager) watchKindsOf(stored []release.Record) {
	k.recordKinds.choose(stored)
	for i := range stored {
		k.shared.Inventory.WatchMore(stored[i].OwnerUID, k.recordKinds.of(stored[i]))
	}
}

// ownerIn returns the owner of a release record of this operator, or "". The index also reports
// records that were deleted: their owner may be forgotten.
func ownerIn(index *release.Index, record release.Record, operator string) types.UID {
	if _, exists := index.Get(record.Namespace, record.Secret); !exists || record.Operator != operator {
		return ""
	}
	return record.OwnerUID
}

// Limits for the kinds that the operator watches because release records name them. Every
// user with permission to write Secrets can write records that name any kinds. An action
// watches the kinds that it applies without a limit.
const (
	maxServedKinds   = 300
	maxUnservedKinds = 20
)

// recordKinds selects the kinds that the operator watches because release records name
// them.
type recordKinds struct {
	logger logr.Logger

	mu sync.Mutex
	// serves reports whether the API server serves a kind. It is nil before the first
	// refresh.
	serves  func(schema.GroupVersionKind) bool
	watched sets.Set[schema.GroupVersionKind]
	// served and unserved count the kinds in watched. dropped are the other kinds.
	served, unserved int
	dropped          sets.Set[schema.GroupVersionKind]
}

func newRecordKinds(logger logr.Logger) *recordKinds {
	return &recordKinds{logger: logger, watched: sets.New[schema.GroupVersionKind](), dropped: sets.New[schema.GroupVersionKind]()}
}

// isStale reports whether to refresh after a change of a CRD, because a kind was not served
// before.
func (r *recordKinds) isStale() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unserved+len(r.dropped) > 0
}

// mayServe reports whether the API server may serve a kind. It makes no request.
func (r *recordKinds) mayServe(gvk schema.GroupVersionKind) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.unknown(gvk)
}

// refresh replaces the kinds that the API server serves, and reconsiders dropped kinds.
func (r *recordKinds) refresh(serves func(schema.GroupVersionKind) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serves, r.served, r.unserved = serves, 0, 0
	clear(r.dropped)
	for gvk := range r.watched {
		r.count(gvk)
	}
}

// choose selects kinds of many records at once. Kinds in records of the most namespaces
// come first, because a tenant can write only to few namespaces.
func (r *recordKinds) choose(all []release.Record) {
	namespaces := map[schema.GroupVersionKind]sets.Set[string]{}
	for i := range all {
		for _, gvk := range all[i].Inventory.GVKs() {
			if namespaces[gvk] == nil {
				namespaces[gvk] = sets.Set[string]{}
			}
			namespaces[gvk].Insert(all[i].Namespace)
		}
	}
	ranked := slices.SortedFunc(maps.Keys(namespaces), func(a, b schema.GroupVersionKind) int {
		return cmp.Or(len(namespaces[b])-len(namespaces[a]), cmp.Compare(a.String(), b.String()))
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.dropped)
	for _, gvk := range ranked {
		r.watches(gvk)
	}
	if len(r.dropped) > before {
		r.logger.Info("too many kinds in release records: some are not watched", "dropped", len(r.dropped), "watched", len(r.watched))
	}
}

// of returns the kinds of a record that are watched.
func (r *recordKinds) of(record release.Record) []schema.GroupVersionKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(record.Inventory.GVKs(), func(gvk schema.GroupVersionKind) bool { return !r.watches(gvk) })
}

// watches reports whether a kind is watched. It starts to watch the kind if the limits
// allow it. The caller must hold the lock.
func (r *recordKinds) watches(gvk schema.GroupVersionKind) bool {
	if r.watched.Has(gvk) {
		return true
	}
	if r.unknown(gvk) && r.unserved >= maxUnservedKinds || r.served >= maxServedKinds {
		if len(r.dropped) < maxServedKinds {
			r.dropped.Insert(gvk)
		}
		return false
	}
	r.watched.Insert(gvk)
	r.count(gvk)
	return true
}

func (r *recordKinds) count(gvk schema.GroupVersionKind) {
	if r.unknown(gvk) {
		r.unserved++
	} else {
		r.served++
	}
}

// unknown reports whether the API server does not serve a kind. Before the first refresh
// every kind counts as served.
func (r *recordKinds) unknown(gvk schema.GroupVersionKind) bool {
	return r.serves != nil && !r.serves(gvk)
}
