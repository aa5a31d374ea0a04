package inventory

import (
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// Drift is one object whose live state differs from the expected state.
type Drift struct {
	apply.Key
	// Gone is true if the object does not exist, or if it has no Apply entry of the
	// operator's field manager and may therefore be another object of that name.
	Gone bool
}

// Expect replaces the expected state of the objects of an owner. With nil, no state is
// expected.
func (x *Index) Expect(owner types.UID, objects []apply.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if info := x.owners[owner]; info != nil {
		for _, key := range info.expected {
			// Another owner may expect the object in the meantime.
			if o := x.objects[key]; o != nil && o.owner == owner {
				o.expected, o.owner = nil, ""
				info.addObject(key)
				x.removeIfEmpty(key, o)
			}
		}
		info.expected, info.known = nil, false
		x.removeOwnerIfEmpty(owner, info)
	}
	if objects == nil {
		return
	}
	info := x.owner(owner)
	// The expected objects are all objects of the release.
	info.known, info.named = true, nil
	maps.DeleteFunc(info.finished, func(key apply.Key, _ finished) bool {
		return !slices.ContainsFunc(objects, func(s apply.State) bool { return s.Key == key })
	})
	info.expected = make([]apply.Key, 0, len(objects))
	for i := range objects {
		if x.expect(owner, &objects[i]) {
			info.expected = append(info.expected, objects[i].Key)
		}
	}
}

// ExpectOne sets the expected state of one object of an owner after an apply.
func (x *Index) ExpectOne(owner types.UID, s apply.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	info := x.owners[owner]
	if info == nil || !info.known {
		return
	}
	if x.expect(owner, &s) && !slices.Contains(info.expected, s.Key) {
		info.expected = append(info.expected, s.Key)
	}
}

// expect sets the expected state of an object. It reports whether the owner expected no
// object with that key before.
func (x *Index) expect(owner types.UID, s *apply.State) (isNew bool) {
	o := x.objects[s.Key]
	if o == nil {
		o = &entry{}
		x.objects[s.Key] = o
	}
	if info := x.owners[owner]; info != nil && info.finished[s.Key].uid != s.UID {
		// Another Job has taken the name.
		delete(info.finished, s.Key)
	}
	isNew = o.expected == nil || o.owner != owner
	if isNew && o.expected != nil && !s.Managed {
		// Another owner applied the object and expects it. The object has drifted for
		// this owner only.
		return true
	}
	// The states are usually equal and can share memory.
	if o.owner = owner; o.live != nil && *o.live == *s {
		o.expected = o.live
	} else {
		o.expected = new(*s)
	}
	return isNew
}

// Intact reports whether an owner's release expects an object and finds it without drift.
func (x *Index) Intact(owner types.UID, key apply.Key) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	by, drifted := x.ownerOfDrifted(key)
	return by != "" && by == owner && !drifted
}

// expectedBy returns the state that an owner's release expects of an object, or nil.
func (x *Index) expectedBy(owner types.UID, key apply.Key) *apply.State {
	if o := x.objects[key]; o != nil && o.owner == owner {
		return o.expected
	}
	return nil
}

// Drifted reports whether an owner's release expects an object and the object has drifted.
func (x *Index) Drifted(owner types.UID, key apply.Key) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	by, drifted := x.ownerOfDrifted(key)
	return drifted && by == owner
}

// RestoreExpected makes the live state of an owner's objects the expected state if its
// digest matches the release record. It reports whether the owner has an expected state
// afterwards.
//
// The digest does not cover the Jobs that have finished according to the record, because
// they may no longer exist.
func (x *Index) RestoreExpected(owner types.UID, recorded Recorded) bool {
	x.mu.RLock()
	known := x.known(owner).known
	x.mu.RUnlock()
	if known {
		return true
	}
	x.AddObjects(owner, recorded.Outside)
	if recorded.Digest == "" {
		return false
	}
	x.mu.RLock()
	owned, claimed := x.labeled(owner)
	x.mu.RUnlock()
	if x.restoreExpected(owner, owned, recorded) {
		return true
	}
	// A record of an older version does not list the objects outside the release
	// namespace, but its digest covers them.
	return len(claimed) > 0 && len(recorded.Outside) == 0 && x.restoreExpected(owner, append(owned, claimed...), recorded)
}

func (x *Index) restoreExpected(owner types.UID, owned []apply.State, recorded Recorded) bool {
	owned, jobs := splitJobs(owner, owned, recorded.Finished)
	recalled, ok := matchDigest(recorded.Digest, owned)
	if !ok {
		// An autoscaler may have taken over spec.replicas since.
		owned = slices.Clone(owned)
		for i, s := range owned {
			owned[i] = s.Unscaled()
		}
		if recalled, ok = matchDigest(recorded.Digest, owned); !ok {
			return false
		}
	}
	for _, job := range jobs {
		x.setOutcome(&job, recorded.Finished[job.Key])
	}
	x.Expect(owner, append(recalled, jobs...))
	return true
}

// splitJobs separates the finished Jobs from the other objects of an owner. For Jobs
// that no longer exist it returns a state with nothing but key and owner.
func splitJobs(owner types.UID, owned []apply.State, done map[apply.Key]string) (rest, jobs []apply.State) {
	if len(done) == 0 {
		return owned, nil
	}
	missing := maps.Clone(done)
	for _, s := range owned {
		if _, is := done[s.Key]; !is {
			rest = append(rest, s)
			continue
		}
		jobs = append(jobs, s)
		delete(missing, s.Key)
	}
	for key := range missing {
		jobs = append(jobs, apply.State{Key: key, Owner: owner})
	}
	return rest, jobs
}

// maxKept limits the number of objects that matchDigest may leave out, and thus the
// number of subsets that it tries to 2^maxKept.
const maxKept = 8

// matchDigest returns the objects if they have the given digest. If they do not, it
// searches for a subset that has it: objects with the policy "keep" may have been
// dropped from the manifest.
//
// The release record has only a digest and no list of objects. The record is a Secret of
// at most a megabyte that already contains the manifest, each operator reads its labels
// and annotations at startup, and a list of keys would not show whether the objects have
// drifted. The search runs only if an object with the policy "keep" is no longer in the
// manifest, and tries only subsets of the size with which the digest begins.
func matchDigest(digest string, objects []apply.State) ([]apply.State, bool) {
	if apply.Digest(objects) == digest {
		return objects, true
	}
	var kept []apply.Key
	for _, s := range objects {
		if s.Kept && len(kept) < maxKept {
			kept = append(kept, s.Key)
		}
	}
	// The bits of subset select the kept objects that are left out.
	for subset := 1; subset < 1<<len(kept); subset++ {
		if !strings.HasPrefix(digest, strconv.Itoa(len(objects)-bits.OnesCount(uint(subset)))+"-") {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(objects), func(s apply.State) bool {
			i := slices.Index(kept, s.Key)
			return i >= 0 && subset&(1<<i) != 0
		})
		if apply.Digest(rest) == digest {
			return rest, true
		}
	}
	return nil, false
}

// Drift returns the objects of an owner that have drifted, sorted by name. Objects whose
// annotation says that drift is ignored are not included.
func (x *Index) Drift(owner types.UID) []Drift {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []Drift
	for _, key := range x.known(owner).expected {
		if drift, ok := x.driftOf(owner, key); ok {
			found = append(found, drift)
		}
	}
	slices.SortFunc(found, func(a, b Drift) int { return strings.Compare(a.String(), b.String()) })
	return found
}

// driftOf reports whether an object of an owner has drifted.
func (x *Index) driftOf(owner types.UID, key apply.Key) (Drift, bool) {
	o := x.objects[key]
	switch {
	case o == nil:
		return Drift{Key: key, Gone: true}, !x.hasFinished(owner, key, nil)
	case o.owner == owner:
		return x.compare(o.expected)
	case o.live == nil:
		return Drift{Key: key, Gone: true}, true
	default:
		// The release of another owner has taken over the object.
		return Drift{Key: key, Gone: !o.live.Managed}, !o.live.Ignored && !o.live.Deleting
	}
}

// compare reports whether an object has drifted. If the live state is older than the
// expected state, the watch is late, and this is not drift. An object that a user has protected
// since it was applied counts as drifted, because a foreground deletion of the custom resource
// would delete it until the repair removes its ownerReference.
func (x *Index) compare(expected *apply.State) (Drift, bool) {
	live := x.objects[expected.Key].live
	switch {
	case x.hasFinished(expected.Owner, expected.Key, live):
		return Drift{}, false
	case live == nil:
		return Drift{Key: expected.Key, Gone: true}, true
	case live.Ignored, live.Matches(*expected) && (!live.Protected || !live.Referred):
		return Drift{}, false
	case live.UID == expected.UID && older(live.ResourceVersion, expected.ResourceVersion):
		return Drift{}, false
	case live.Deleting:
		// Drift is corrected once the object is deleted.
		return Drift{}, false
	}
	return Drift{Key: expected.Key, Gone: !live.Managed}, true
}
