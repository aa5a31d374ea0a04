package inventory

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// move watches a kind in a version that the API server serves, after a list or watch request
// for a resource was answered by 404. The requests are repeated until the API server serves
// the resource again, or the watch has moved.
func (w *Watches) move(watched *watch, namespace string, ended schema.GroupVersionResource) {
	mapping, err := w.changeVersion(watched, ended)
	switch {
	case meta.IsNoMatchError(err):
		w.setFailure(watched, namespace, responseError(http.StatusNotFound))
	case err != nil:
		w.setFailure(watched, namespace, err)
	case mapping != nil:
		ctx, cancel := context.WithTimeout(context.Background(), idleTimeout)
		defer cancel()
		w.relist(ctx, watched, nil, 0)
	}
}

// errEnded reports a version that is served no longer, although the API server lists it.
var errEnded = errors.New("the API server answers 404 for their version, and lists no other; the operator tries again")

// changeVersion changes the version of a watch, and removes the informers of the version that
// has ended. It returns nil if the watch has another version already.
func (w *Watches) changeVersion(watched *watch, ended schema.GroupVersionResource) (*meta.RESTMapping, error) {
	watched.starting.Lock()
	defer watched.starting.Unlock()
	w.mu.Lock()
	old, moved := watched.gvk, watched.resource != ended
	w.mu.Unlock()
	if moved {
		return nil, nil
	}
	mapping, err := w.mapping(schema.GroupVersionKind{Group: old.Group, Kind: old.Kind})
	if err == nil && mapping.Resource == ended {
		err = errEnded
	}
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	watched.gvk, watched.resource = mapping.GroupVersionKind, mapping.Resource
	caches := slices.Collect(maps.Keys(watched.synced))
	w.mu.Unlock()
	for _, at := range caches {
		removeInformers(context.Background(), at, old)
	}
	return mapping, nil
}
