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
	"github.com/chartwright/chartwright/internal/release"
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

// An object that is damaged as often as it is repaired is in a fight, with a
// webhook or another controller. It is then repaired ever more slowly.
const (
	fightRepairs = 5
	fightWindow  = time.Minute
	// maxPause bounds the time between two repairs in a fight.
	maxPause = 10 * time.Minute
)

// fights counts the repairs of each object. The zero value is ready.
type fights struct {
	mu      sync.Mutex
	byOwner map[types.UID]map[apply.Key]*fight
}

type fight struct {
	// repairs holds the times of the newest repairs, oldest first.
	repairs []time.Time
	// pause is the time to the next repair; 0 outside a fight.
	pause time.Duration
}

// repaired counts a repair and tells whether a fight has begun with it.
func (f *fights) repaired(owner types.UID, key apply.Key, at time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byOwner == nil {
		f.byOwner = map[types.UID]map[apply.Key]*fight{}
	}
	if f.byOwner[owner] == nil {
		f.byOwner[owner] = map[apply.Key]*fight{}
	}
	it := f.byOwner[owner][key]
	if it == nil {
		it = &fight{}
		f.byOwner[owner][key] = it
	}
	if n := len(it.repairs); n > 0 && at.Sub(it.repairs[n-1]) > max(fightWindow, 2*it.pause) {
		*it = fight{}
	}
	it.repairs = append(it.repairs, at)
	if len(it.repairs) > fightRepairs {
		it.repairs = it.repairs[1:]
	}
	if it.pause > 0 {
		it.pause = min(2*it.pause, maxPause)
		return false
	}
	if len(it.repairs) == fightRepairs && at.Sub(it.repairs[0]) <= fightWindow {
		it.pause = fightWindow / fightRepairs
		return true
	}
	return false
}

// wait returns how long not to repair an object yet, 0 for not at all, and
// whether it is in a fight.
func (f *fights) wait(owner types.UID, key apply.Key, now time.Time) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	it := f.byOwner[owner][key]
	if it == nil || it.pause == 0 {
		return 0, false
	}
	return max(0, it.repairs[len(it.repairs)-1].Add(it.pause).Sub(now)), true
}

func (f *fights) forget(owner types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byOwner, owner)
}

// foreign is a set of records by their UID. The zero value is ready.
type foreign struct {
	mu   sync.Mutex
	uids map[types.UID]struct{}
}

func (f *foreign) add(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.uids == nil {
		f.uids = map[types.UID]struct{}{}
	}
	f.uids[uid] = struct{}{}
}

func (f *foreign) has(uid types.UID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.uids[uid]
	return ok
}

// Everyone with write access to Secrets in a namespace can change the release
// records there. Whether the operator has signed what a record stores is known
// when an action has read it; what is remembered of that is lost with the process,
// which costs one more read.

// verdicts holds why records must not be used, by their UIDs. The zero value is
// ready.
type verdicts struct {
	mu    sync.Mutex
	known map[types.UID]verdict
}

// verdict is about one state of a record.
type verdict struct {
	resourceVersion string
	// inputs is the digest of what the release was to be rendered from, where the
	// verdict depends on it.
	inputs string
	why    string
}

func (s *verdicts) add(record release.Record, inputs, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[types.UID]verdict{}
	}
	s.known[record.UID] = verdict{resourceVersion: record.ResourceVersion, inputs: inputs, why: why}
}

// of returns why a record must not be used, empty where nothing is known against
// it.
func (s *verdicts) of(record release.Record, inputs string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.known[record.UID]
	if !ok || known.resourceVersion != record.ResourceVersion || known.inputs != inputs {
		return ""
	}
	return known.why
}
