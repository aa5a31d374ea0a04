package operator

import (
	"maps"
	"slices"
	"strings"
)

// warnOfLeftBehind tells of releases of this operator whose kind it no longer
// serves: somebody took the kind out of the watches file, and their custom
// resources can be neither changed nor deleted.
func (k *kinds) warnOfLeftBehind() {
	served := map[string]bool{}
	for _, kind := range k.options.Kinds {
		served[kind.GVK().GroupKind().String()] = true
	}
	left := map[string][]string{}
	for _, record := range k.shared.Index.Deployed(k.options.Name) {
		kind, name, _ := strings.Cut(record.Owner, "/")
		if record.Owner != "" && !served[kind] {
			left[kind] = append(left[kind], name)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(left)) {
		k.manager.GetLogger().Info("releases of a kind that is not served any more: their custom resources cannot be deleted until it is, or their finalizer is removed by hand",
			"kind", kind, "releases", len(left[kind]), "example", slices.Min(left[kind]))
	}
}
