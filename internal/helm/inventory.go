package helm

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// Inventory is what the actions ask and tell about the objects of releases.
type Inventory interface {
	// Get returns what is known of one object.
	Get(key apply.Key) (apply.State, bool)
	// Place sets the namespace of an owner's release, and Name notes objects that it
	// has, which may be outside of that namespace.
	SetReleaseNamespace(owner types.UID, namespace string)
	AddObjects(owner types.UID, objects []apply.Key)
	// OwnedBy returns the objects that count for an owner. ClaimedBy returns those that
	// only carry its label, outside of the namespace of its release.
	OwnedBy(owner types.UID) []apply.State
	ClaimedBy(owner types.UID) []apply.State
	// ExpectedUID returns the UID of an object that is expected for an owner, empty
	// if none is.
	ExpectedUID(owner types.UID, key apply.Key) types.UID
	// Intact tells whether an object is as it was last applied for an owner.
	Intact(owner types.UID, key apply.Key) bool
	// Damaged tells whether an object is not what is expected for an owner.
	Drifted(owner types.UID, key apply.Key) bool
	// Put and Remove tell what an action has just written.
	Put(state apply.State)
	Remove(state apply.State)
	// Expect says what the objects of an owner are to be from now on, and
	// Repaired says it of one of them.
	Expect(owner types.UID, objects []apply.State)
	ExpectOne(owner types.UID, state apply.State)
	// Outcome returns how a Job with ttlSecondsAfterFinished has finished, and an
	// empty text if it has not; Finish notes that one that is gone has.
	JobOutcome(owner types.UID, key apply.Key, uid types.UID) string
	SetJobOutcome(owner types.UID, key apply.Key, outcome string)
	// Finished returns the expected Jobs that have finished so, and Expected what
	// is expected of every object.
	JobOutcomes(owner types.UID) map[apply.Key]string
	Expected(owner types.UID) ([]apply.State, bool)
	// Forget drops what is known of an owner whose release is gone.
	Forget(owner types.UID)
	// Kinds returns what Need was last told.
	Kinds(owner types.UID) []schema.GroupVersionKind
	// Need makes sure that the kinds are watched, in the namespace of the
	// release, before objects are applied.
	EnsureWatched(ctx context.Context, owner types.UID, namespace string, kinds []schema.GroupVersionKind) error
}
