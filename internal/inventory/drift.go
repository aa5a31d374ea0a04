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
	if of := x.owners[owner]; of != nil {
		for _, key := range of.expected {
			// Another owner may expect the object by now.
			if o := x.objects[key]; o != nil && o.by == owner {
				o.expected, o.by = nil, ""
				of.addObject(key)
				x.removeIfEmpty(key, o)
			}
		}
		of.expected, of.known = nil, false
		x.removeOwnerIfEmpty(owner, of)
	}
	if objects == nil {
		return
	}
	of := x.owner(owner)
	// What is expected now is all that the release has.
	of.known, of.named = true, nil
	maps.DeleteFunc(of.finished, func(key apply.Key, _ finished) bool {
		return !slices.ContainsFunc(objects, func(s apply.State) bool { return s.Key == key })
	})
	of.expected = make([]apply.Key, 0, len(objects))
	for i := range objects {
		if x.expect(owner, &objects[i]) {
			of.expected = append(of.expected, objects[i].Key)
		}
	}
}

// ExpectOne says that one of an owner's objects is from now on expected to be as
// it was just applied.
func (x *Index) ExpectOne(owner types.UID, s apply.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := x.owners[owner]
	if of == nil || !of.known {
		return
	}
	if x.expect(owner, &s) && !slices.Contains(of.expected, s.Key) {
		of.expected = append(of.expected, s.Key)
	}
}

// expect notes what an owner expects, and tells whether it expected nothing of
// that name before.
func (x *Index) expect(owner types.UID, s *apply.State) (anew bool) {
	o := x.objects[s.Key]
	if o == nil {
		o = &entry{}
		x.objects[s.Key] = o
	}
	if of := x.owners[owner]; of != nil && of.finished[s.Key].uid != s.UID {
		// Another Job has the name.
		delete(of.finished, s.Key)
	}
	anew = o.expected == nil || o.by != owner
	if anew && o.expected != nil && !s.Managed {
		// It is the other's, and stays so. This owner misses it.
		return true
	}
	// Most often it is what is there, and needs no copy of its own.
	if o.by = owner; o.live != nil && *o.live == *s {
		o.expected = o.live
	} else {
		o.expected = new(*s)
	}
	return anew
}

// Intact reports whether an object is what an owner's release expects.
func (x *Index) Intact(owner types.UID, key apply.Key) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	by, drifted := x.ownerOfDrifted(key)
	return by != "" && by == owner && !drifted
}

// expectedBy returns what an owner's release expects of an object, nil if nothing.
func (x *Index) expectedBy(owner types.UID, key apply.Key) *apply.State {
	if o := x.objects[key]; o != nil && o.by == owner {
		return o.expected
	}
	return nil
}

// Drifted reports whether an object is known not to be what an owner's release
// expects.
func (x *Index) Drifted(owner types.UID, key apply.Key) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	by, drifted := x.ownerOfDrifted(key)
	return drifted && by == owner
}

// RestoreExpected takes the objects that exist for what is expected, if they have the
// digest that the release record holds. It returns whether anything is expected of
// the owner now.
//
// The digest does not cover the Jobs that have finished according to the record;
// they may be gone.
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
	// A record of an older version does not list the objects outside of the
	// namespace. The digest covers them.
	return len(claimed) > 0 && len(recorded.Outside) == 0 && x.restoreExpected(owner, append(owned, claimed...), recorded)
}

func (x *Index) restoreExpected(owner types.UID, owned []apply.State, recorded Recorded) bool {
	owned, jobs := splitJobs(owner, owned, recorded.Finished)
	recalled, ok := matchDigest(recorded.Digest, owned)
	if !ok {
		// An autoscaler may have taken replicas since.
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

// splitJobs takes the Jobs that have finished out of an owner's objects. Of those that
// are gone only the key is known.
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

// maxKept bounds the objects that may have outlived the manifest that named them,
// and so the subsets that matchDigest tries: at most 2^maxKept.
const maxKept = 8

// matchDigest returns those of the objects that have a digest. They are all of them,
// except that some which are to be kept may have been dropped from the manifest.
//
// The release record has a digest and no list of objects: the record is a Secret
// of at most a megabyte that holds the manifest already, its labels and annotations
// are read by every operator that starts, and a list of keys alone would not show
// whether the objects have drifted. The search runs only if an object with the
// policy "keep" has left the manifest, and ends at the size that the digest begins
// with.
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
	// Each number stands for some of them.
	for some := 1; some < 1<<len(kept); some++ {
		if !strings.HasPrefix(digest, strconv.Itoa(len(objects)-bits.OnesCount(uint(some)))+"-") {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(objects), func(s apply.State) bool {
			i := slices.Index(kept, s.Key)
			return i >= 0 && some&(1<<i) != 0
		})
		if apply.Digest(rest) == digest {
			return rest, true
		}
	}
	return nil, false
}

// Drift returns the objects of an owner that are not what is expected, in the
// order of their names. Those that a person asked to ignore are left out.
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

// driftOf reports whether an object is not what an owner expects.
func (x *Index) driftOf(owner types.UID, key apply.Key) (Drift, bool) {
	o := x.objects[key]
	switch {
	case o == nil:
		return Drift{Key: key, Gone: true}, !x.hasFinished(owner, key, nil)
	case o.by == owner:
		return x.compare(o.expected)
	case o.live == nil:
		return Drift{Key: key, Gone: true}, true
	default:
		// Another owner's release has taken it.
		return Drift{Key: key, Gone: !o.live.Managed}, !o.live.Ignored && !o.live.Deleting
	}
}

// compare reports whether an object differs from what is expected. A view that
// is older than what is expected says nothing: the watch has not caught up.
func (x *Index) compare(expected *apply.State) (Drift, bool) {
	live := x.objects[expected.Key].live
	switch {
	case x.hasFinished(expected.Owner, expected.Key, live):
		return Drift{}, false
	case live == nil:
		return Drift{Key: expected.Key, Gone: true}, true
	case live.Ignored, live.Matches(*expected):
		return Drift{}, false
	case live.UID == expected.UID && older(live.ResourceVersion, expected.ResourceVersion):
		return Drift{}, false
	case live.Deleting:
		// It is repaired when it is gone.
		return Drift{}, false
	}
	return Drift{Key: expected.Key, Gone: !live.Managed}, true
}
