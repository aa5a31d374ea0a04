package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/inventory/health"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// newInventory returns the inventory of the objects that carry this operator's
// label. It begins empty, and with no area.
func (k *kinds) newInventory() inventory.Inventory {
	index := inventory.NewIndex(k.drifted, k.healthChanged)
	index.Judge = k.judge()
	watches := inventory.NewWatches(index, func(gvk schema.GroupVersionKind) (bool, error) {
		return apiutil.IsGVKNamespaced(gvk, k.manager.GetRESTMapper())
	})
	metrics.CountObjects(watches.Counts)
	return inventory.Inventory{Index: index, Watches: watches}
}

// judge returns what the health of objects depends on beside the objects.
func (k *kinds) judge() inventory.Judge {
	rules := map[schema.GroupKind]health.Rules{}
	for _, kind := range k.options.Kinds {
		if len(kind.HealthRules) > 0 {
			rules[kind.GVK().GroupKind()] = kind.HealthRules
		}
	}
	judge := inventory.Judge{Rules: rules}
	if known, ok := k.manager.GetRESTMapper().(*mapper); ok {
		judge.NoStatus = known.noStatus
	}
	return judge
}

// dependentsWithin is how long the start waits for all dependents together. What
// may not be watched never begins.
const dependentsWithin = 5 * time.Second

// watchDependents watches what the stored releases of an area have objects of,
// before any pass asks how these objects are.
func (k *kinds) watchDependents(ctx context.Context, a *area) error {
	options := k.cacheOptions()
	a.limit(&options)
	options.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{api.LabelOperator: k.options.Name})
	dependents, err := cache.New(k.manager.GetConfig(), k.shared.Inventory.Options(options))
	if err != nil {
		return fmt.Errorf("watch dependents: %w", err)
	}
	if err := k.manager.Add(standbyCache{Cache: dependents}); err != nil {
		return fmt.Errorf("watch dependents: %w", err)
	}
	if err := k.shared.Inventory.Join(ctx, a.name, dependents); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, dependentsWithin)
	defer cancel()
	blind := map[string]int{}
	for _, record := range k.shared.Index.Deployed(k.options.Name) {
		if !a.has(record.Namespace) {
			continue
		}
		err := k.shared.Inventory.Need(within, record.OwnerUID, record.Namespace, record.Inventory.GVKs())
		switch {
		case errors.Is(err, inventory.ErrUnwatched):
			blind[err.Error()]++
		case err != nil:
			return err
		}
	}
	for why, releases := range blind {
		k.manager.GetLogger().Info("damage to some objects will not be seen", "why", why, "releases", releases)
	}
	return ctx.Err()
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
