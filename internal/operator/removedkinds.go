package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
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
// the status of a release does not matter. A kind whose source still exists, but could not
// be loaded, was not removed.
func (k *KindManager) followRecords() {
	k.claimed = false
	found := k.shared.Index.OwnerKinds(k.options.Name)
	removed := rankKinds(found, func(gk schema.GroupKind) bool {
		if k.state(gk) != nil || !mayBeServed(gk) {
			return false
		}
		claimed := k.set.Claimed(gk)
		k.claimed = k.claimed || claimed
		return !claimed
	})
	if most := max(0, maxRemovedKinds-k.removedKinds()); len(removed) > most {
		k.logger.Info("too many removed kinds in release records: deletions of some are not carried out", "dropped", len(removed)-most, "example", removed[most].String())
		removed = removed[:most]
	}
	for _, gk := range removed {
		k.logger.Info("releases found whose kind was removed: only deletions of their custom resources are carried out",
			"kind", gk.Kind, "group", gk.Group, "namespaces", len(found[gk.String()]), "example", slices.Min(sets.List(found[gk.String()])))
		state := k.add(gk)
		// Without a version, the lookup finds the preferred one.
		state.kind = catalog.Kind{Watch: watches.Watch{Group: gk.Group, Kind: gk.Kind}}
		state.removed = true
		k.prepare(state)
	}
}

// rankKinds returns the wanted kinds. Those with records in the most namespaces are first,
// because a user may be able to write records in some namespaces only.
func rankKinds(found map[string]sets.Set[string], wanted func(schema.GroupKind) bool) []schema.GroupKind {
	var kinds []schema.GroupKind
	for kind := range found {
		if gk := schema.ParseGroupKind(kind); wanted(gk) {
			kinds = append(kinds, gk)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int {
		return cmp.Or(len(found[b.String()])-len(found[a.String()]), cmp.Compare(a.String(), b.String()))
	})
	return kinds
}

// maxRemovedKinds limits the removed kinds that the operator watches because release
// records name them. Every user with permission to write Secrets can write records that
// name any kinds.
const maxRemovedKinds = 100

// removedKinds counts the removed kinds that are known from release records only.
func (k *KindManager) removedKinds() (count int) {
	for _, state := range k.kinds {
		if state.removed && state.kind.Chart == nil {
			count++
		}
	}
	return count
}

// mayBeServed reports whether the operator may have served a kind. Kinds of the API server
// itself have no CRD: their groups have no dot or belong to Kubernetes.
func mayBeServed(gk schema.GroupKind) bool {
	return gk.Kind != "" && strings.Contains(gk.Group, ".") && gk.Group != "k8s.io" && !strings.HasSuffix(gk.Group, ".k8s.io")
}

// awaitUnserved requests another lookup of a removed kind when the API server no longer
// serves it. The definition of the kind may be gone for good, or have another version.
func (s *servedKind) awaitUnserved(ctx context.Context) {
	if receive(ctx, s.unserved) && receive(ctx, time.After(crdSettleDelay)) {
		send(ctx, s.manager.unserved, s)
	}
}

// lookUpAgain stops a removed kind, to look up its served version.
func (k *KindManager) lookUpAgain(served *servedKind) {
	if state := served.state; state.removed && state.served == served {
		state.kind.Version, state.kind.Plural = "", ""
		served.stop()
	}
}

// drainInterval is how often the custom resources of a removed kind are counted at most.
const drainInterval = time.Second

// drain reports how many custom resources of a removed kind are left, until all are deleted.
// It only reads the caches.
func (s *servedKind) drain(ctx context.Context) {
	for ctx.Err() == nil {
		left, err := s.reconciler.Remaining(ctx)
		switch {
		case err != nil:
			s.logger.Error(err, "failed to count the custom resources of a removed kind")
		case left == 0:
			send(ctx, s.manager.emptied, s)
			return
		default:
			s.manager.readiness.SetState(s.gk, readiness.Removed, fmt.Sprintf(
				"custom resources left: %d. Delete them, or define the kind again", left))
		}
		if receive(ctx, s.changed) {
			receive(ctx, time.After(drainInterval))
		}
	}
}
