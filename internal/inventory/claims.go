package inventory

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// An owner label is only a claim: a user who can write an object can give it the owner
// label of any custom resource and an Apply entry of the operator's field manager. An
// object therefore counts for an owner only in these cases:
//
//   - It is in the namespace of the release. Users with write access there can change
//     the release anyway.
//   - This process applied it for the owner.
//   - The release record lists it.

// Recorded is what a release record contains about the objects of its release.
type Recorded struct {
	// Digest is the digest of the objects, see apply.Digest.
	Digest string
	// Finished holds the Jobs that have finished, with their outcome (Complete or
	// Failed). Digest does not cover them.
	Finished map[apply.Key]string
	// Outside lists the objects outside the namespace of the release. Records of
	// older versions do not list them.
	Outside []apply.Key
}

// SetReleaseNamespace sets the namespace of an owner's release. Until it is set, only objects
// that this process applied count for the owner.
func (x *Index) SetReleaseNamespace(owner types.UID, namespace string) {
	x.mu.RLock()
	same := namespace == "" || x.known(owner).namespace == namespace
	x.mu.RUnlock()
	if same {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forgotten.Remove(owner)
	x.owner(owner).namespace = namespace
}

// Follow makes the index report every change of an owner's objects of these kinds that
// other clients made, whether or not it is drift. A kind without a group matches the
// kinds of all groups.
func (x *Index) Follow(owner types.UID, kinds []schema.GroupKind) {
	x.mu.RLock()
	same := slices.Equal(x.known(owner).followed, kinds)
	x.mu.RUnlock()
	if same {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.owner(owner).followed = kinds
}

// isFollowed reports whether the owner in the label of an object follows its kind.
func (x *Index) isFollowed(s *apply.State) bool {
	return slices.ContainsFunc(x.known(s.Owner).followed, func(gk schema.GroupKind) bool {
		return gk.Kind == s.Kind && (gk.Group == "" || gk.Group == s.Group)
	})
}

// AddObjects records that objects, which may be outside the release namespace, belong
// to the release of an owner.
func (x *Index) AddObjects(owner types.UID, objects []apply.Key) {
	if len(objects) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	info := x.owner(owner)
	for _, key := range objects {
		info.addObject(key)
	}
}

// ReleasedBy returns the existing objects that the release of an owner expects. known is false
// while the expected objects are unknown, for example after a restart. Unlike OwnedBy, it does
// not return objects in the release namespace that only have the owner label and an Apply entry
// of the operator's field manager.
func (x *Index) ReleasedBy(owner types.UID) (objects []apply.State, known bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	info := x.known(owner)
	for _, key := range info.expected {
		live, expected := x.live(key), x.expectedBy(owner, key)
		if live != nil && expected != nil && live.UID == expected.UID && live.Owner == owner && live.Managed {
			objects = append(objects, *live)
		}
	}
	return objects, info.known
}

// ClaimedBy returns the objects that carry the label of an owner and an Apply entry of
// the operator's field manager, but do not count for the owner.
func (x *Index) ClaimedBy(owner types.UID) []apply.State {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, claimed := x.labeled(owner)
	return claimed
}

// isOwned reports whether an object counts for the owner in its label.
func (x *Index) isOwned(info *owner, s *apply.State) bool {
	if !s.Managed {
		return false
	}
	if info.namespace != "" && info.namespace == s.Namespace || info.named[s.Key] {
		return true
	}
	return x.expectedBy(s.Owner, s.Key) != nil
}

// concernsOwner reports whether the owner in the label of an object is known, and the
// object counts for that owner.
func (x *Index) concernsOwner(s *apply.State) bool {
	return x.isOwned(x.known(s.Owner), s)
}

// addObject records that an object belongs to the release of an owner. Objects in the
// release namespace need no record.
func (o *owner) addObject(key apply.Key) {
	if o.namespace != "" && o.namespace == key.Namespace {
		return
	}
	if o.named == nil {
		o.named = map[apply.Key]bool{}
	}
	o.named[key] = true
}

// ExpectedUID returns the UID of the object that an owner's release expects under a
// key, or "" if it expects none.
func (x *Index) ExpectedUID(owner types.UID, key apply.Key) types.UID {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if expected := x.expectedBy(owner, key); expected != nil && expected.Managed {
		return expected.UID
	}
	return ""
}

// Forget drops everything recorded for a deleted owner except its live objects, which
// the watches report.
func (x *Index) Forget(owner types.UID) {
	x.Expect(owner, nil)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forgotten.Add(owner, nil)
	if info := x.owners[owner]; info != nil {
		info.finished, info.named, info.namespace, info.followed = nil, nil, "", nil
		x.removeOwnerIfEmpty(owner, info)
	}
}
