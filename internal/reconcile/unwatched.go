package reconcile

import (
	"fmt"
	"strings"
)

// observeUnwatched lists the kinds of the release's objects that cannot be
// watched.
func (r *Reconciler) observeUnwatched(v *view) {
	if r.Inventory.Watches == nil {
		return
	}
	unwatched := r.Inventory.Unwatched(v.cr.GetUID(), v.release.Namespace)
	if len(unwatched) == 0 {
		return
	}
	kinds := make([]string, len(unwatched))
	for i, u := range unwatched {
		kinds[i] = fmt.Sprintf("%s: %s", u.GroupKind, u.Why)
	}
	v.unwatched = "Objects of these kinds cannot be watched; their drift is not detected, and they count as ready. " + strings.Join(kinds, "; ")
}

// KindsChanged tries again at once what has failed since the API server did not
// serve the kind of an object. It is called when a CustomResourceDefinition has
// changed.
func (r *Reconciler) KindsChanged() {
	for _, owner := range r.memory.due(func(f *failure) bool { return f.unserved }) {
		if key, ok := r.keys.get(owner); ok {
			r.Wake(key, 0)
		}
	}
}
