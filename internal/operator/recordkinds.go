package operator

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// followRecords finds releases of this operator whose kind no source defines: the kind was
// removed while the operator was not running. Deletions of its custom resources are
// carried out from the records. An uninstall may have begun before the operator stopped, so
// the status of a release does not matter.
func (k *KindManager) followRecords() {
	found := k.shared.Index.OwnerKinds(k.options.Name)
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		gk := schema.ParseGroupKind(kind)
		if k.state(gk) != nil {
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
