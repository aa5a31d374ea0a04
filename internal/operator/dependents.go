package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// newInventory returns the inventory over a cache of its own, which holds the
// objects that carry this operator's label and begins empty.
func (k *kinds) newInventory() (inventory.Inventory, error) {
	options := k.cacheOptions()
	options.DefaultNamespaces = k.options.cacheNamespaces()
	options.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{api.LabelOperator: k.options.Name})
	dependents, err := cache.New(k.manager.GetConfig(), inventory.Options(options))
	if err != nil {
		return inventory.Inventory{}, fmt.Errorf("watch dependents: %w", err)
	}
	if err := k.manager.Add(standbyCache{Cache: dependents}); err != nil {
		return inventory.Inventory{}, fmt.Errorf("watch dependents: %w", err)
	}
	index := inventory.NewIndex(k.drifted, k.healthChanged)
	watches := inventory.NewWatches(dependents, index)
	metrics.CountObjects(watches.Counts)
	return inventory.Inventory{Index: index, Watches: watches}, nil
}

// dependentsWithin is how long the start waits for all dependents together. What
// may not be watched never begins.
const dependentsWithin = 5 * time.Second

// watchDependents watches what the stored releases have objects of, before any
// pass asks how these objects are.
func (k *kinds) watchDependents(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, dependentsWithin)
	defer cancel()
	blind := map[string]int{}
	for _, record := range k.shared.Index.Deployed(k.options.Name) {
		err := k.shared.Inventory.Need(within, record.OwnerUID, record.Inventory.GVKs())
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
