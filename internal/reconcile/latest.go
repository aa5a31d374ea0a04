package reconcile

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// keys holds the names of custom resources by their UID. The zero value is
// ready.
type keys struct {
	mu    sync.Mutex
	names map[types.UID]types.NamespacedName
}

func (k *keys) put(uid types.UID, name types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.names == nil {
		k.names = map[types.UID]types.NamespacedName{}
	}
	k.names[uid] = name
}

func (k *keys) get(uid types.UID) (types.NamespacedName, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	name, ok := k.names[uid]
	return name, ok
}

func (k *keys) all() []types.NamespacedName {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.names))
}

func (k *keys) forget(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.names, uid)
}

// latest holds custom resources as this process last wrote them, until the
// cache has caught up. The zero value is ready.
type latest struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*unstructured.Unstructured
}

// wrote remembers what a write returned.
func (l *latest) wrote(key types.NamespacedName, cr *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects == nil {
		l.objects = map[types.NamespacedName]*unstructured.Unstructured{}
	}
	l.objects[key] = cr
}

// newest returns the newer of what the cache holds and what was written last.
func (l *latest) newest(key types.NamespacedName, cached *unstructured.Unstructured) *unstructured.Unstructured {
	l.mu.Lock()
	defer l.mu.Unlock()
	written, ok := l.objects[key]
	if !ok {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(written.GetResourceVersion(), cached.GetResourceVersion())
	if err != nil || order <= 0 || written.GetUID() != cached.GetUID() {
		delete(l.objects, key)
		return cached
	}
	return written
}

// seen drops what was written where the cache holds it, or something newer.
func (l *latest) seen(key types.NamespacedName, resourceVersion string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	written, ok := l.objects[key]
	if !ok {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(written.GetResourceVersion(), resourceVersion); err != nil || order <= 0 {
		delete(l.objects, key)
	}
}

func (l *latest) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.objects, key)
}
