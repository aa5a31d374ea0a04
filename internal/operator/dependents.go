package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/inventory/health"
	"github.com/chartwright/chartwright/internal/reconcile"
	"github.com/chartwright/chartwright/internal/release"
)

// newInventory returns the inventory of the objects that carry this operator's
// label. It begins empty, and with no area.
func (k *kinds) newInventory() inventory.Inventory {
	index := inventory.NewIndex(k.drifted, k.healthChanged)
	index.HealthConfig = k.judge()
	watches := inventory.NewWatches(index, func(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
		return k.manager.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	})
	watches.MayServe = func(gvk schema.GroupVersionKind) bool { return k.recordKinds.mayServe(gvk) }
	k.board.details = func() []string { return unwatchedLines(watches.AllUnwatched()) }
	return inventory.Inventory{Index: index, Watches: watches}
}

// unwatchedLines lists, for /readyz, the kinds of objects that cannot be watched.
func unwatchedLines(unwatched []inventory.Unwatched) []string {
	if len(unwatched) == 0 {
		return nil
	}
	lines := []string{"objects of releases that are not watched: their drift is not detected, and their health is not known"}
	for _, u := range unwatched {
		lines = append(lines, fmt.Sprintf("  %s: %s", u.GroupKind, u.Why))
	}
	return lines
}

// judge returns what the health of objects depends on beside the objects.
func (k *kinds) judge() inventory.HealthConfig {
	rules := map[schema.GroupKind]health.Rules{}
	for _, kind := range k.options.Kinds {
		if len(kind.HealthRules) > 0 {
			rules[kind.GVK().GroupKind()] = kind.HealthRules
		}
	}
	judge := inventory.HealthConfig{Rules: rules}
	if known, ok := k.manager.GetRESTMapper().(*mapper); ok {
		judge.NoStatus = known.noStatus
	}
	return judge
}

// dependentsWithin is how long the start waits for all dependents together. A
// kind that cannot be watched does not delay it.
const dependentsWithin = 4 * time.Second

// watchDependents watches the objects of the stored releases of an area, before
// any pass needs to know them. Kinds that cannot be watched are reported on
// the custom resources concerned, and tried again.
func (k *kinds) watchDependents(ctx context.Context, a *area) error {
	options := k.cacheOptions()
	a.limit(&options)
	options.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{api.LabelOperator: k.options.Name})
	dependents, err := cache.New(k.manager.GetConfig(), k.shared.Inventory.Options(a.name, options))
	if err != nil {
		return fmt.Errorf("watch dependents: %w", err)
	}
	if err := k.manager.Add(standbyCache{Cache: dependents}); err != nil {
		return fmt.Errorf("watch dependents: %w", err)
	}
	within, cancel := context.WithTimeout(ctx, dependentsWithin)
	defer cancel()
	k.shared.Inventory.AddNamespace(a.name, dependents)
	k.recordKinds.refresh(within)
	stored := slices.DeleteFunc(k.shared.Index.Deployed(k.options.Name), func(r release.Record) bool { return !a.has(r.Namespace) })
	k.watchKindsOf(stored)
	k.shared.Inventory.WaitForSync(within, a.name)
	for _, unwatched := range k.shared.Inventory.AllUnwatched() {
		k.manager.GetLogger().Info("objects not watched: their drift is not detected, and their health is not known", "dependent", unwatched.String(), "why", unwatched.Why)
	}
	return ctx.Err()
}

// watchKindsOf watches the kinds that release records name, as far as there is
// room for them.
func (k *kinds) watchKindsOf(stored []release.Record) {
	k.recordKinds.choose(stored)
	for i := range stored {
		k.shared.Inventory.WatchMore(stored[i].OwnerUID, k.recordKinds.of(stored[i]))
	}
}

// drifted calls for a pass over the custom resource whose objects are damaged.
func (k *kinds) drifted(owner types.UID) {
	k.each(func(r *reconcile.Reconciler) { r.Drifted(owner) })
}

// healthChanged calls for a pass over the custom resource of which an object has
// become ready, or is so no more.
func (k *kinds) healthChanged(owner types.UID) {
	k.each(func(r *reconcile.Reconciler) { r.HealthChanged(owner) })
}

// unwatchedKinds returns the names of the kinds of managed objects that cannot be
// watched, a kind once for each namespace.
func unwatchedKinds(watches *inventory.Watches) []string {
	var kinds []string
	for _, unwatched := range watches.AllUnwatched() {
		kinds = append(kinds, unwatched.String())
	}
	return kinds
}
