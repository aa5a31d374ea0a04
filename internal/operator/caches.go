package operator

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// caches reads the custom resources of a kind from the caches that have been put
// there, by namespace, empty for all. The zero value holds none.
type caches struct {
	mu          sync.RWMutex
	byNamespace map[string]cache.Cache
}

var _ client.Reader = &caches{}

func (c *caches) put(namespace string, customResources cache.Cache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byNamespace == nil {
		c.byNamespace = map[string]cache.Cache{}
	}
	c.byNamespace[namespace] = customResources
}

// Get reads one. What is in a namespace that has no cache is not there.
func (c *caches) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.mu.RLock()
	from, ok := c.byNamespace[key.Namespace]
	if !ok {
		from, ok = c.byNamespace[""]
	}
	c.mu.RUnlock()
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Group: object.GetObjectKind().GroupVersionKind().Group, Resource: object.GetObjectKind().GroupVersionKind().Kind}, key.Name)
	}
	return from.Get(ctx, key, object, options...)
}

// List reads all.
func (c *caches) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var all []runtime.Object
	for _, from := range c.byNamespace {
		if err := from.List(ctx, list, options...); err != nil {
			return err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		all = append(all, items...)
	}
	return meta.SetList(list, all)
}
