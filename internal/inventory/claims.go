package inventory

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// An owner label is a claim. Whoever may write an object can give it the owner
// label of any custom resource, and an Apply entry of our field manager. An object
// therefore counts for an owner only in the namespace of the release, whose users
// may do as they like with the release anyway, or if the release itself names the
// object: because this process applied it, or because the release record lists it.

// Recorded is what a release record says of the objects of its release.
type Recorded struct {
	// Digest is the digest of the objects, see apply.Digest.
	Digest string
	// Finished holds the Jobs that have finished, and how. Digest does not cover them.
	Finished map[apply.Key]string
	// Outside lists the objects that are not in the namespace of the release. Records
	// of older versions do not list them.
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
	x.owner(owner).namespace = namespace
}

// AddObjects notes that the release of an owner has objects, which may be outside of its
// namespace.
func (x *Index) AddObjects(owner types.UID, objects []apply.Key) {
	if len(objects) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	of := x.owner(owner)
	for _, key := range objects {
		of.addObject(key)
	}
}

// ClaimedBy returns the objects that carry the label of an owner and an Apply entry
// of our field manager, and do not count for the owner.
func (x *Index) ClaimedBy(owner types.UID) []apply.State {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, claimed := x.labeled(owner)
	return claimed
}

// isOwned reports whether an object counts for the owner in its label.
func (x *Index) isOwned(of *owner, s *apply.State) bool {
	if !s.Managed {
		return false
	}
	if of.namespace != "" && of.namespace == s.Namespace || of.named[s.Key] {
		return true
	}
	return x.expectedBy(s.Owner, s.Key) != nil
}

// concernsOwner reports whether a change of an object concerns the owner in its label.
func (x *Index) concernsOwner(s *apply.State) bool {
	return x.isOwned(x.known(s.Owner), s)
}

// addObject notes that the release of an owner has an object, which may be outside of
// its namespace.
func (o *owner) addObject(key apply.Key) {
	if o.namespace != "" && o.namespace == key.Namespace {
		return
	}
	if o.named == nil {
		o.named = map[apply.Key]bool{}
	}
	o.named[key] = true
}

// ExpectedUID returns the UID of an object that an owner's release expects, empty
// if it expects none of that name.
func (x *Index) ExpectedUID(owner types.UID, key apply.Key) types.UID {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if expected := x.expectedBy(owner, key); expected != nil && expected.Managed {
		return expected.UID
	}
	return ""
}

// Forget drops what is known of an owner that is gone, save its objects, which the
// watches report.
func (x *Index) Forget(owner types.UID) {
	x.Expect(owner, nil)
	x.mu.Lock()
	defer x.mu.Unlock()
	if of := x.owners[owner]; of != nil {
		of.finished, of.named, of.namespace = nil, nil, ""
		x.removeOwnerIfEmpty(owner, of)
	}
}
