package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/watches"
)

// followRecords finds releases of this operator whose kind no source defines: the kind was
// removed while the operator was not running. Deletions of its custom resources are
// carried out from the records. An uninstall may have begun before the operator stopped, so
// the status of a release does not matter. A kind that a source still defines, but has not
// loaded, was not removed.
func (k *KindManager) followRecords() {
	k.claimed = false
	found := k.shared.Index.OwnerKinds(k.options.Name)
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		gk := schema.ParseGroupKind(kind)
		if k.state(gk) != nil {
			continue
		}
		if k.set.Claimed(gk) {
			k.claimed = true
			continue
		}
		k.logger.Info("releases found whose kind was removed: only deletions of their custom resources are carried out",
			"kind", gk.Kind, "group", gk.Group, "namespaces", len(found[kind]), "example", slices.Min(sets.List(found[kind])))
		state := k.add(gk)
		// Without a version, the lookup finds the preferred one.
		state.kind = catalog.Kind{Watch: watches.Watch{Group: gk.Group, Kind: gk.Kind}}
		state.removed = true
		k.prepare(state)
	}
}

// awaitUnserved requests another lookup of a removed kind when the API server no longer
// serves it. The definition of the kind may be gone for good, or have another version.
func (s *servedKind) awaitUnserved(ctx context.Context) {
	select {
	case <-s.unserved:
	case <-ctx.Done():
		return
	}
	select {
	case <-time.After(crdSettleDelay):
	case <-ctx.Done():
		return
	}
	select {
	case s.manager.unserved <- s:
	case <-ctx.Done():
	}
}

// lookUpAgain stops a removed kind, to look up in which version it is served.
func (k *KindManager) lookUpAgain(served *servedKind) {
	if state := served.state; state.removed && state.served == served {
		state.kind.Version, state.kind.Plural = "", ""
		served.stop()
	}
}

// drainInterval is how often the custom resources of a removed kind are counted at most.
const drainInterval = time.Second

// drain reports how many custom resources of a removed kind are left, until there are none.
// It only reads the caches.
func (s *servedKind) drain(ctx context.Context) {
	for ctx.Err() == nil {
		left, err := s.reconciler.Remaining(ctx)
		switch {
		case err != nil:
			s.logger.Error(err, "failed to count the custom resources of a removed kind")
		case left == 0:
			select {
			case s.manager.emptied <- s:
			case <-ctx.Done():
			}
			return
		default:
			s.manager.readiness.SetState(s.gk, readiness.Removed, fmt.Sprintf(
				"custom resources left: %d. Delete them, or define the kind again", left))
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
		}
		select {
		case <-time.After(drainInterval):
		case <-ctx.Done():
		}
	}
}
