package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

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
