package reconcile

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/decide"
	"github.com/chartwright/chartwright/internal/inventory"
)

// failure is the last action on a release, if it failed.
type failure struct {
	decide.Failure
	reason  string
	message string
	// stalled: only a person can help.
	stalled bool
}

// memory holds, by the custom resource's UID, the last failure and when every
// object was last applied. It is lost with the process, which costs one more
// try, and a period that begins anew. The zero value is ready.
type memory struct {
	mu       sync.Mutex
	failures map[about]failure
	applied  map[types.UID]time.Time
	// progresses are of the newest revisions, where they are deployed.
	progresses map[types.UID]progress
	// damaged holds the objects whose damage was counted, while it lasts.
	damaged map[types.UID]map[apply.Key]bool
	// touched is when objects were last applied.
	touched map[types.UID]time.Time
	// uninstalled holds the custom resources whose release was uninstalled for
	// good, so that nothing is left to look for.
	uninstalled map[types.UID]bool
}

// about is what a failure is of: what brings a release to its spec and what
// repairs what runs fail apart from each other.
type about struct {
	uid    types.UID
	repair bool
}

// get returns nil where the last try succeeded.
func (m *memory) get(uid types.UID, repair bool) *failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.failures[about{uid, repair}]; ok {
		return &f
	}
	return nil
}

// put stores a failure, counts it, and tells whether it is news: another aim,
// reason or message than that of the failure before.
func (m *memory) put(uid types.UID, repair bool, f failure) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := about{uid, repair}
	before := m.failures[key]
	f.Attempts = 1
	if before.Aim == f.Aim {
		f.Attempts = before.Attempts + 1
	}
	if m.failures == nil {
		m.failures = map[about]failure{}
	}
	m.failures[key] = f
	return before.Aim != f.Aim || before.reason != f.reason || before.message != f.message
}

// succeeded forgets the failure.
func (m *memory) succeeded(uid types.UID, repair bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.failures, about{uid, repair})
}

// reached forgets the failure to bring about what is there now.
func (m *memory) reached(uid types.UID, aim string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failures[about{uid, false}].Aim == aim {
		delete(m.failures, about{uid, false})
	}
}

// appliedAll notes when every object was applied.
func (m *memory) appliedAll(uid types.UID, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.applied == nil {
		m.applied = map[types.UID]time.Time{}
	}
	m.applied[uid] = at
}

// appliedAt returns when all objects were last applied, or first asked for.
func (m *memory) appliedAt(uid types.UID, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.applied == nil {
		m.applied = map[types.UID]time.Time{}
	}
	if _, known := m.applied[uid]; !known {
		m.applied[uid] = now
	}
	return m.applied[uid]
}

// found notes which objects are damaged, and returns those that were not when
// it was last told.
func (m *memory) found(uid types.UID, drift []inventory.Drift) (anew []apply.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.damaged[uid]
	if len(drift) == 0 {
		delete(m.damaged, uid)
		return nil
	}
	now := make(map[apply.Key]bool, len(drift))
	for _, d := range drift {
		now[d.Key] = true
		if !before[d.Key] {
			anew = append(anew, d.Key)
		}
	}
	if m.damaged == nil {
		m.damaged = map[types.UID]map[apply.Key]bool{}
	}
	m.damaged[uid] = now
	return anew
}

// uninstall notes that nothing is left of a release.
func (m *memory) uninstall(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.uninstalled == nil {
		m.uninstalled = map[types.UID]bool{}
	}
	m.uninstalled[uid] = true
}

func (m *memory) isUninstalled(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.uninstalled[uid]
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.failures, about{uid, false})
	delete(m.failures, about{uid, true})
	delete(m.applied, uid)
	delete(m.progresses, uid)
	delete(m.touched, uid)
	delete(m.damaged, uid)
	delete(m.uninstalled, uid)
}

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
	cr.SetManagedFields(nil)
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
