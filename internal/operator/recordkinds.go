package operator

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/release"
)

// Everybody who may write Secrets can write release records that name any kinds,
// so these are the most that records can have the operator watch. An action
// watches what it applies, whatever its number.
const (
	maxServedKinds   = 300
	maxUnservedKinds = 20
)

// recordKinds chooses which kinds the operator watches because release records
// name them.
type recordKinds struct {
	// read returns a function that reports whether the API server serves a kind. It
	// sends one request at most, however many kinds there are.
	read   func() (func(schema.GroupVersionKind) bool, error)
	logger logr.Logger

	mu sync.Mutex
	// serves is nil as long as read has not returned.
	serves  func(schema.GroupVersionKind) bool
	watched map[schema.GroupVersionKind]bool
	// served and unserved count the kinds in watched; dropped are the others.
	served, unserved int
	dropped          map[schema.GroupVersionKind]struct{}
}

func newRecordKinds(read func() (func(schema.GroupVersionKind) bool, error), logger logr.Logger) *recordKinds {
	return &recordKinds{read: read, logger: logger, watched: map[schema.GroupVersionKind]bool{}, dropped: map[schema.GroupVersionKind]struct{}{}}
}

// isStale reports whether what the API server serves is to be read again when
// definitions have changed: some kind was not served.
func (r *recordKinds) isStale() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unserved+len(r.dropped) > 0
}

// mayServe reports whether the API server may serve a kind. It sends no request.
func (r *recordKinds) mayServe(gvk schema.GroupVersionKind) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.unknown(gvk)
}

// refresh reads which kinds the API server serves, until the context ends. It
// considers kinds again that were dropped.
func (r *recordKinds) refresh(ctx context.Context) {
	answer := make(chan func(schema.GroupVersionKind) bool, 1)
	go func() {
		serves, err := r.read()
		if err != nil {
			r.logger.Error(err, "kinds of the API server not known")
		}
		answer <- serves
	}()
	var serves func(schema.GroupVersionKind) bool
	select {
	case serves = <-answer:
	case <-ctx.Done():
	}
	if serves == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serves, r.served, r.unserved = serves, 0, 0
	clear(r.dropped)
	for gvk := range r.watched {
		r.count(gvk)
	}
}

// choose decides on the kinds of many records at once. The kinds that records in
// most namespaces name come first, since a tenant writes in few.
func (r *recordKinds) choose(all []release.Record) {
	namespaces := map[schema.GroupVersionKind]map[string]struct{}{}
	for i := range all {
		for _, gvk := range all[i].Inventory.GVKs() {
			if namespaces[gvk] == nil {
				namespaces[gvk] = map[string]struct{}{}
			}
			namespaces[gvk][all[i].Namespace] = struct{}{}
		}
	}
	ranked := make([]schema.GroupVersionKind, 0, len(namespaces))
	for gvk := range namespaces {
		ranked = append(ranked, gvk)
	}
	slices.SortFunc(ranked, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(len(namespaces[b])-len(namespaces[a]), cmp.Compare(a.String(), b.String()))
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.dropped)
	for _, gvk := range ranked {
		r.watches(gvk)
	}
	if len(r.dropped) > before {
		r.logger.Info("kinds that release records name are not watched: there are too many", "dropped", len(r.dropped), "watched", len(r.watched))
	}
}

// of returns the kinds of a record that are watched.
func (r *recordKinds) of(record release.Record) []schema.GroupVersionKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(record.Inventory.GVKs(), func(gvk schema.GroupVersionKind) bool { return !r.watches(gvk) })
}

// watches reports whether a kind is watched, and decides so if there is room. It
// is called under the lock.
func (r *recordKinds) watches(gvk schema.GroupVersionKind) bool {
	if r.watched[gvk] {
		return true
	}
	if r.unknown(gvk) && r.unserved >= maxUnservedKinds || r.served >= maxServedKinds {
		if len(r.dropped) < maxServedKinds {
			r.dropped[gvk] = struct{}{}
		}
		return false
	}
	r.watched[gvk] = true
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

// unknown reports whether the API server does not serve a kind. Before it has
// answered, every kind counts as served.
func (r *recordKinds) unknown(gvk schema.GroupVersionKind) bool {
	return r.serves != nil && !r.serves(gvk)
}
