package inventory

import (
	"sort"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// Drift is one object that is not what is expected.
type Drift struct {
	apply.Key
	// Gone: the object is not there, or not to be told from one that is not
	// ours.
	Gone bool
}

// Expect says what the objects of an owner are from now on expected to be, in
// place of what was expected before. With nil nothing is.
func (x *Index) Expect(owner types.UID, objects []apply.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range x.expected[owner] {
		delete(x.expectedBy, key)
	}
	delete(x.expected, owner)
	if objects == nil {
		return
	}
	expected := make(map[apply.Key]apply.State, len(objects))
	for _, s := range objects {
		expected[s.Key] = s
		x.expectedBy[s.Key] = owner
	}
	x.expected[owner] = expected
}

// Repaired says that one of an owner's objects is from now on expected to be as
// it was just applied.
func (x *Index) Repaired(owner types.UID, s apply.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.expected[owner] != nil {
		x.expected[owner][s.Key] = s
		x.expectedBy[s.Key] = owner
	}
}

// Intact tells whether an object is what an owner's release expects.
func (x *Index) Intact(owner types.UID, key apply.Key) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	expected, ok := x.expected[owner][key]
	if !ok {
		return false
	}
	_, drift := x.compare(expected)
	return !drift
}

// Recall takes what is there for what is expected, if it has the digest that
// the release record tells. It returns whether anything is expected of the
// owner now.
func (x *Index) Recall(owner types.UID, digest string) bool {
	x.mu.RLock()
	_, known := x.expected[owner]
	owned := x.ownedBy(owner)
	x.mu.RUnlock()
	if known {
		return true
	}
	if digest == "" {
		return false
	}
	if apply.Digest(owned) != digest {
		// An autoscaler may have taken replicas since.
		for i, s := range owned {
			owned[i] = s.Unscaled()
		}
		if apply.Digest(owned) != digest {
			return false
		}
	}
	x.Expect(owner, owned)
	return true
}

// Drift returns the objects of an owner that are not what is expected, in the
// order of their names. Those that a person asked to ignore are left out.
func (x *Index) Drift(owner types.UID) []Drift {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []Drift
	for _, expected := range x.expected[owner] {
		if drift, ok := x.compare(expected); ok {
			found = append(found, drift)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].String() < found[j].String() })
	return found
}

// compare tells whether an object differs from what is expected. A view that
// is older than what is expected says nothing: the watch has not caught up.
func (x *Index) compare(expected apply.State) (Drift, bool) {
	live, ok := x.objects[expected.Key]
	switch {
	case !ok:
		return Drift{Key: expected.Key, Gone: true}, true
	case live.Ignored, live.Intact(expected):
		return Drift{}, false
	case live.UID == expected.UID && older(live.ResourceVersion, expected.ResourceVersion):
		return Drift{}, false
	case live.Deleting:
		// It is repaired when it is gone.
		return Drift{}, false
	}
	return Drift{Key: expected.Key, Gone: !live.Ours}, true
}
