package decide

import "time"

// Observation is everything that a decision depends on.
type Observation struct {
	Now time.Time

	// Deleting: the custom resource has a deletion timestamp.
	Deleting bool
	// Finalizer: the custom resource carries our finalizer.
	Finalizer bool

	// Running is the action under way on the release, if any.
	Running *Running
	// Newest is the newest stored revision, if any.
	Newest *Revision
	// Conflict: every release name that the custom resource may use belongs
	// to somebody else.
	Conflict bool

	// Adoptable: the release has the name that the custom resource's would
	// have, and no operator made it.
	Adoptable bool
	// Orphans: there are objects of the release, whatever its records say.
	Orphans bool
	// Drifted: an object of the deployed revision is damaged, and is to be
	// repaired.
	Drifted bool
	// Unverified: nothing is known of what the objects should be like.
	Unverified bool

	// Desired is the digest of what the release should be rendered from.
	Desired string
	// Invalid is why no such digest can be had, empty where it can.
	Invalid string

	// Period is how often every object is applied again; 0 is never.
	Period time.Duration
	// Applied is when every object was last applied, or this process first
	// looked.
	Applied time.Time

	// Failure is the last try of this process to bring the release to the
	// spec, or to uninstall it, if it failed; RepairFailure that of a repair.
	Failure       *Failure
	RepairFailure *Failure
}

// Running is an action under way.
type Running struct {
	Step  Step
	Since time.Time
}

// Revision is one stored revision of the release.
type Revision struct {
	Number int
	// Status is Helm's word, see package records.
	Status string
	// Digest is what the revision was rendered from; empty where somebody
	// else wrote it, so that it equals no desired digest.
	Digest string
	// Ours: its release belongs to this custom resource.
	Ours bool
	// Genuine: this operator wrote it, and not, say, the helm CLI.
	Genuine bool
	// Began is when its action began.
	Began time.Time
	// Timeout is how long somebody else's action may be under way.
	Timeout time.Duration
}

// Failure is an action that failed. It is forgotten when the process ends,
// which costs one more try.
type Failure struct {
	// Aim is what the action was to bring about, see the function Aim.
	Aim string
	// Attempts counts the failures in a row with that aim.
	Attempts int
	At       time.Time
}
