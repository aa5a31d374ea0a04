package operator

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/reconcile"
)

// reconcilers are the reconcilers of all served kinds. Each ignores events about custom
// resources of other kinds.
type reconcilers struct {
	mu  sync.Mutex
	all []*reconcile.Reconciler
}

// add adds a reconciler. It calls prepare before other goroutines can use the reconciler.
func (r *reconcilers) add(reconciler *reconcile.Reconciler, prepare func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	prepare()
	r.all = append(r.all, reconciler)
}

// remove removes a reconciler.
func (r *reconcilers) remove(reconciler *reconcile.Reconciler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(r.all, func(other *reconcile.Reconciler) bool { return other == reconciler })
}

func (r *reconcilers) each(do func(*reconcile.Reconciler)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reconciler := range r.all {
		do(reconciler)
	}
}

// forOne returns a function that calls a method of the reconcilers for one custom resource,
// for example for the owner of a drifted resource.
func (r *reconcilers) forOne(do func(*reconcile.Reconciler, types.UID)) func(types.UID) {
	return func(uid types.UID) {
		r.each(func(one *reconcile.Reconciler) { do(one, uid) })
	}
}
