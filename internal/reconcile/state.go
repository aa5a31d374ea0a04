package reconcile

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/chartwright/chartwright/internal/release"
)

// table is a map for concurrent use. The zero value is ready.
type table[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]V
}

func (t *table[K, V]) get(key K) (V, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, ok := t.entries[key]
	return value, ok
}

func (t *table[K, V]) values() []V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.entries))
}

func (t *table[K, V]) keys() []K {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.entries))
}

func (t *table[K, V]) put(key K, value V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.putLocked(key, value)
}

func (t *table[K, V]) putLocked(key K, value V) {
	if t.entries == nil {
		t.entries = map[K]V{}
	}
	t.entries[key] = value
}

func (t *table[K, V]) forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.entries, key)
}

// departed holds the UIDs of deleted custom resources by their names. The zero value is ready.
type departed struct {
	table[types.NamespacedName, []types.UID]
}

func (d *departed) add(key types.NamespacedName, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.putLocked(key, append(d.entries[key], uid))
}

// take removes the UIDs of a name and returns them.
func (d *departed) take(key types.NamespacedName) []types.UID {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer delete(d.entries, key)
	return d.entries[key]
}

// latest holds custom resources as this process last wrote them, until the
// cache has caught up. The zero value is ready.
type latest struct {
	table[types.NamespacedName, *unstructured.Unstructured]
}

// newest returns the newer of a custom resource in the cache and the one that this
// process wrote last.
func (l *latest) newest(key types.NamespacedName, cached *unstructured.Unstructured) *unstructured.Unstructured {
	written := l.seen(key, cached.GetResourceVersion())
	if written == nil {
		return cached
	}
	if written.GetUID() != cached.GetUID() {
		l.forget(key)
		return cached
	}
	return written
}

// seen drops the written custom resource if the cache holds it or a newer one.
// Otherwise it returns it.
func (l *latest) seen(key types.NamespacedName, cachedVersion string) *unstructured.Unstructured {
	l.mu.Lock()
	defer l.mu.Unlock()
	written, ok := l.entries[key]
	if !ok {
		return nil
	}
	if order, err := resourceversion.CompareResourceVersion(written.GetResourceVersion(), cachedVersion); err != nil || order <= 0 {
		delete(l.entries, key)
		return nil
	}
	return written
}

// verdicts holds why release records must not be used, by their UIDs. Everyone
// with write access to Secrets in a namespace can change the release records there.
// Only an action, which reads a record, finds out whether the operator has signed
// its content. The verdicts are lost with the process, which costs one more read.
// The zero value is ready.
type verdicts struct {
	table[types.UID, verdict]
}

// verdict applies to one version of a record.
type verdict struct {
	resourceVersion string
	// inputs is the digest of the inputs of the release, if the verdict depends on
	// them.
	inputs string
	why    string
}

func (s *verdicts) add(record release.Record, inputs, why string) {
	s.put(record.UID, verdict{resourceVersion: record.ResourceVersion, inputs: inputs, why: why})
}

// of returns why a record must not be used, empty if there is no verdict on it.
func (s *verdicts) of(record release.Record, inputs string) string {
	if known, _ := s.get(record.UID); known.resourceVersion == record.ResourceVersion && known.inputs == inputs {
		return known.why
	}
	return ""
}
