package plan

import (
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// Observation is everything that a decision depends on.
type Observation struct {
	Now time.Time
	// Deleting: the custom resource has a deletion timestamp.
	Deleting bool
	// Finalizer: the custom resource carries our finalizer. Former: it carries one
	// of the operator-sdk's, which ours is to take the place of.
	Finalizer bool
	Former    bool
	// Paused: nothing is to be changed; PausedDeletion: nor uninstalled.
	Paused         bool
	PausedDeletion bool
	// Orphan: the release stays when the custom resource goes.
	Orphan bool
	// Running is the action under way on the release, if any.
	Running *Running
	// Change is what people have changed since the running action began.
	Change Change
	// Abort is the revision whose action a person aborts, 0 for none;
	// AbortUninstall: a person keeps the delete hooks from running.
	Abort          int
	AbortUninstall bool
	// Newest is the newest stored revision, if any.
	Newest *Revision
	// Untidy: more than one revision is deployed, or one of ours is pending below
	// a newer one.
	Untidy bool
	// Conflict: every release name that the custom resource may use belongs
	// to somebody else.
	Conflict bool
	// Adoptable: the release has the name that the custom resource's would
	// have, and no operator made it.
	Adoptable bool
	// Inherited: it is adoptable, and the operator-sdk has made it for this custom
	// resource, with which it goes.
	Inherited bool
	// Orphans: there are objects of the release, whatever its records say.
	Orphans bool
	// Unsearched: there is no record, and nobody has looked for objects. There
	// may be some where the records were deleted.
	Unsearched bool
	// Drifted: an object of the deployed revision is damaged, and is to be
	// repaired.
	Drifted bool
	// Unverified: nothing is known of what the objects should be like.
	Unverified bool
	// Unrecorded: a Job with ttlSecondsAfterFinished has finished, and the record
	// does not say so.
	Unrecorded bool
	// Unsigned: the current key has not signed the newest record, and its turn has
	// come.
	Unsigned bool
	// Desired is the digest of what the release should be rendered from.
	Desired string
	// Invalid is why no such digest can be had, empty where it can.
	Invalid string
	// Postponed: nothing but the chart is another, and its turn has not come.
	Postponed bool
	// Request is the rollback request that was not answered yet, if any.
	Request *Request
	// Held is the hold, if any.
	Held *Held
	// VerifyRequested: a person asked for everything to be verified, or forced.
	VerifyRequested bool
	// TestRequested: a person asked for the chart's tests.
	TestRequested bool
	// Nudge changes with every request for another try, which waits for no
	// backoff.
	Nudge string
	// Overdue: the objects of the newest revision never became ready, and should
	// have by now.
	Overdue bool
	// Puzzling: some objects are not ready, and it is time to find out why.
	Puzzling bool
	// LastGood is the revision to go back to where the newest fails for good,
	// 0 for none.
	LastGood int
	// Retries is how many tries may fail before the release goes back to
	// LastGood; 0 goes on trying.
	Retries int
	// Earliest is when the next action may begin that authors of custom resources
	// can cause, see Limited. The zero time limits nothing.
	Earliest time.Time
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
	Step Step
	// Queued tells that it waits for its turn, and Since since when it does, or
	// since when it runs.
	Queued bool
	Since  time.Time
	// Inputs are what it began with.
	Inputs Inputs
	// Hook is the hook that it waits for, nil for none.
	Hook *Hook
}

// Revision is one stored revision of the release.
type Revision struct {
	Number int
	// Status is Helm's word, see package api.
	Status string
	// Digest is what the revision was rendered from; empty where somebody
	// else wrote it, so that it equals no desired digest.
	Digest string
	// Ours: its release belongs to this custom resource.
	Ours bool
	// Genuine: this operator wrote it, and not, say, the helm CLI.
	Genuine bool
	// Stripped: this operator wrote it, and somebody else has written its record
	// since, which has lost its annotations. Whether anything else has changed is
	// not known. Such a revision is not Genuine.
	Stripped bool
	// Untrusted: an action has read the record, and what it stores is not what this
	// operator has written. Nothing from it is applied.
	Untrusted bool
	// Began is when its action began.
	Began time.Time
	// Timeout is how long somebody else's action may be under way.
	Timeout time.Duration
}

// Request is a rollback request.
type Request struct {
	// Token tells it from others.
	Token string
	// Revision is the one to bring back. 0 stands for the other two: Resume
	// asks for the end of a hold, and a request without it cannot be met.
	Revision int
	Resume   bool
	// Over: the spec was edited since a try to meet it has failed.
	Over bool
}

// Held is a hold on an earlier revision.
type Held struct {
	Revision int
	// Token is that of the request which led to it.
	Token string
	// Over: the spec was edited since.
	Over bool
	// ByFailure: no person asked for it, but what was to come in its place has
	// failed too often.
	ByFailure bool
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

// guarded tells whether the custom resource waits for its release to be
// uninstalled.
func (o Observation) guarded() bool { return o.Finalizer || o.Former }

// holding tells whether the release stays where it is, whatever the spec says.
// One that somebody has uninstalled is nowhere.
func (o Observation) holding() bool { return o.Held != nil && !o.Held.Over && o.stored() }

// staying tells whether the release stays where it is for now.
func (o Observation) staying() bool { return o.holding() || o.Postponed }

// stored tells whether there is a release of this custom resource that is not
// on its way out.
func (o Observation) stored() bool {
	return o.Newest != nil && o.Newest.Ours && !api.Uninstalled(o.Newest.Status)
}

// runs reports whether a revision of ours is deployed, is the newest, and may be
// applied again.
func (o Observation) runs() bool {
	return o.stored() && o.Newest.Genuine && !o.Newest.Untrusted && o.Newest.Status == api.StatusDeployed
}

// untrusted reports whether nothing from the newest record may be applied.
func (o Observation) untrusted() bool { return o.Newest != nil && o.Newest.Untrusted }

// stuck reports whether the spec cannot be followed for now.
func (o Observation) stuck() bool {
	return o.Invalid != "" || o.Earliest.After(o.Now) || o.Failure != nil && o.Failure.Aim == Aim(o)
}
