package planner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory"
)

// objects is an inventory that lists the objects of a kind when a plan first needs it.
type objects struct {
	*inventory.Index
	metadata metadata.Interface
	mapper   meta.RESTMapper
	// selector selects the objects of the planned custom resources. everywhere lists a kind
	// in all namespaces, because many custom resources are planned.
	selector   string
	everywhere bool

	mu    sync.Mutex
	lists map[listed]func() error
	kinds map[types.UID][]schema.GroupVersionKind
}

// listed is a kind in a namespace; "" means all namespaces.
type listed struct {
	schema.GroupVersionKind
	namespace string
}

// EnsureWatched lists the kinds in a namespace.
func (o *objects) EnsureWatched(ctx context.Context, owner types.UID, namespace string, kinds []schema.GroupVersionKind) error {
	o.mu.Lock()
	o.kinds[owner] = kinds
	o.mu.Unlock()
	errs := make([]error, len(kinds))
	for i, kind := range kinds {
		errs[i] = o.list(ctx, kind, namespace)
	}
	return errors.Join(errs...)
}

// Kinds returns the kinds of the last call of EnsureWatched.
func (o *objects) Kinds(owner types.UID) []schema.GroupVersionKind {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kinds[owner]
}

// list lists a kind in a namespace once.
func (o *objects) list(ctx context.Context, kind schema.GroupVersionKind, namespace string) error {
	mapping, err := o.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		// There are no objects of the kind.
		return nil
	}
	if err != nil {
		return err
	}
	if o.everywhere || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	at := listed{kind, namespace}
	o.mu.Lock()
	once := o.lists[at]
	if once == nil {
		once = sync.OnceValue(func() error { return o.read(ctx, mapping, namespace) })
		o.lists[at] = once
	}
	o.mu.Unlock()
	return once()
}

func (o *objects) read(ctx context.Context, mapping *meta.RESTMapping, namespace string) error {
	from, options := o.metadata.Resource(mapping.Resource).Namespace(namespace), metav1.ListOptions{LabelSelector: o.selector}
	err := apply.EachListed(ctx, from, options, func(object *metav1.PartialObjectMetadata) {
		o.Observe(apply.StateOf(mapping.GroupVersionKind.GroupKind(), object))
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", mapping.Resource.GroupResource(), err)
	}
	return nil
}
