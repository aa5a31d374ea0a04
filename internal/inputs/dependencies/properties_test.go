package dependencies

import (
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestStore_EqualsNaiveComputation applies random changes to random graphs of at most 30
// users. After each change, the results equal those computed from scratch, and a custom
// resource whose result has changed was notified.
func TestStore_EqualsNaiveComputation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		t.Repeat(newWorld(t).actions())
	})
}

// TestStore_IsSafeForConcurrentUse finds races if it runs with the race detector. Each user
// depends on the next one, and all of them are ready in the end.
func TestStore_IsSafeForConcurrentUse(t *testing.T) {
	const count = 4
	s := NewStore(func(types.UID) {})
	s.Serve(appGVK.GroupKind(), []schema.GroupKind{appGVK.GroupKind()}, nil)
	var tasks sync.WaitGroup
	for i := range count {
		tasks.Go(func() {
			user := app(strconv.Itoa(i))
			for version := range 50 {
				o := newObject(appGVK, user.Name)
				o.SetResourceVersion(strconv.Itoa(version))
				s.Feed(appGVK).Handler().OnAdd(o, false)
				s.Feed(appGVK).Synced()
				s.Set(user, []Ref{ref(appGVK, strconv.Itoa((i+1)%count)), selector(appGVK, "tier=gold")})
				s.Hold(user.UID, "held")
				s.Check(user.UID, epoch)
				s.Dependents(user.Key, epoch)
				s.Expect(appGVK.GroupKind(), []types.UID{user.UID})
				s.Settle(user.UID, o.GetResourceVersion())
				s.Forget(user.UID)
				s.Set(user, []Ref{ref(appGVK, strconv.Itoa((i+1)%count))})
			}
		})
	}
	tasks.Wait()
	for i := range count {
		if v := s.Check(app(strconv.Itoa(i)).UID, epoch); v.Waits != nil || len(v.Cycle) != count {
			t.Errorf("user %d: %+v", i, v)
		}
	}
}
