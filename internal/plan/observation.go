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
	// Change is what users have changed since the running action began.
	Change Change
	// Abort is the revision whose action a user aborts, 0 for none;
	// AbortUninstall: a user keeps the delete hooks from running.
	Abort          int
	AbortUninstall bool
	// Newest is the newest stored revision, if any.
	Newest *Revision
	// Inconsistent: more than one revision is deployed, or one of ours is pending
	// below a newer one.
	Inconsistent bool
	// Conflict: every release name that the custom resource may use belongs to
	// another owner.
	Conflict bool
	// Adoptable: the release has the name that the custom resource's would
	// have, and no operator made it.
	Adoptable bool
	// Inherited: it is adoptable, and the operator-sdk has made it for this custom
	// resource, with which it goes.
	Inherited bool
	// Orphans: there are objects of the release, whatever its records say.
	Orphans bool
	// Unsearched: there is no record, and objects were not searched for. There may
	// be some if the records were deleted.
	Unsearched bool
	// Drifted: an object of the deployed revision has drifted and is to be
	// corrected.
	Drifted bool
	// Unverified: nothing is known of what the objects should be like.
	Unverified bool
	// Unrecorded: a Job with ttlSecondsAfterFinished has finished, and the record
	// does not say so.
	Unrecorded bool
	// Unsigned: the current key has not signed the newest record, and may do so now.
	Unsigned bool
	// Desired is the digest of what the release should be rendered from.
	Desired string
	// Invalid is why there is no such digest, nil if there is one.
	Invalid *Problem
	// Postponed: only the chart has changed, and the rollout has not reached this
	// custom resource.
	Postponed bool
	// Request is the rollback request that was not answered yet, if any.
	Request *Request
	// Held is the hold, if any.
	Held *Held
	// VerifyRequested: a user asked for everything to be verified, or forced.
	VerifyRequested bool
	// TestRequested: a user asked for the chart's tests.
	TestRequested bool
	// RetryToken changes with every request for another try, which waits for no
	// backoff.
	RetryToken string
	// Overdue: the objects of the newest revision never became ready, and should
	// have by now.
	Overdue bool
	// NeedsDiagnosis: some objects are not ready, and it is time to find out why.
	NeedsDiagnosis bool
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
	// Digest is what the revision was rendered from; empty if another program
	// wrote it, so that it equals no desired digest.
	Digest string
	// Owned: its release belongs to this custom resource.
	Owned bool
	// WrittenByUs: this operator wrote it, and not, say, the helm CLI.
	WrittenByUs bool
	// Stripped: this operator wrote it, and another program has written its record
	// since, which has lost its annotations. Whether anything else has changed is
	// not known. Such a revision is not WrittenByUs.
	Stripped bool
	// Untrusted: an action has read the record, and what it stores is not what this
	// operator has written. Nothing from it is applied.
	Untrusted bool
	// Began is when its action began.
	Began time.Time
	// Timeout is how long an action of another program may be under way.
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
	// Expired: the spec was edited since a try to meet the request has failed.
	Expired bool
}

// Held is a hold on an earlier revision.
type Held struct {
	Revision int
	// Token is that of the request which led to it.
	Token string
	// Expired: the spec was edited since.
	Expired bool
	// ByFailure: the upgrade has failed too often; no user requested the hold.
	ByFailure bool
}

// Failure is an action that failed. It is forgotten when the process ends,
// which costs one more try.
type Failure struct {
	// Target is what the action was to bring about, see TargetOf.
	Target TargetKey
	// Attempts counts the failures in a row with that target.
	Attempts int
	At       time.Time
}

// Problem is why the release cannot follow the spec: a reason of the condition
// Ready and a message for the user.
type Problem struct {
	Reason, Message string
}

// Inputs are what an action began with, by which a later change is detected.
type Inputs struct {
	// Values and Spec are digests of the values and of the spec, both without the
	// field of the scale subresource. Scaled is a digest of the values with it.
	Values, Spec, Scaled string
	// Request is the token of the rollback request that was not answered yet.
	Request string
	// HooksDisabled: an annotation disables the action's hooks.
	HooksDisabled bool
}

// Hook is a hook that an action waits for.
type Hook struct {
	// Name is that of the object: "Job default/web-pre-upgrade".
	Name  string
	State api.HookState
	// Why is what keeps the hook from ending, in a sentence; empty while it runs.
	Why string
}

// Change is what users have changed since the running action began.
type Change string

// The changes. Where several have come, the first of them counts.
const (
	ChangeNone Change = ""
	// ChangeAbort: an annotation aborts the action.
	ChangeAbort Change = "Abort"
	// ChangeDeletion: the custom resource is being deleted.
	ChangeDeletion Change = "Deletion"
	// ChangeHooksDisabled: an annotation disables the hooks of the action.
	ChangeHooksDisabled Change = "HooksDisabled"
	// ChangeRollback: an annotation requests an earlier revision, or the end of the
	// hold that the action brings about.
	ChangeRollback Change = "Rollback"
	// ChangeEdit: the values are others.
	ChangeEdit Change = "Edit"
	// ChangeScale: the values differ in the field of the scale subresource alone.
	ChangeScale Change = "Scale"
)

// guarded reports whether the custom resource waits for its release to be
// uninstalled.
func (o Observation) guarded() bool { return o.Finalizer || o.Former }

// Holding reports whether the release is held, whatever the spec says. A release
// that was uninstalled is not held.
func (o Observation) Holding() bool { return o.Held != nil && !o.Held.Expired && o.stored() }

// staying reports whether the release does not follow the spec for now.
func (o Observation) staying() bool { return o.Holding() || o.Postponed }

// stored reports whether there is a release of this custom resource that is not
// being uninstalled.
func (o Observation) stored() bool {
	return o.Newest != nil && o.Newest.Owned && !api.Uninstalled(o.Newest.Status)
}

// runs reports whether a revision of ours is deployed, is the newest, and may be
// applied again.
func (o Observation) runs() bool {
	return o.stored() && o.Newest.WrittenByUs && !o.Newest.Untrusted && o.Newest.Status == api.StatusDeployed
}

// untrusted reports whether nothing from the newest record may be applied.
func (o Observation) untrusted() bool { return o.Newest != nil && o.Newest.Untrusted }

// stuck reports whether the spec cannot be followed for now.
func (o Observation) stuck() bool {
	return o.Invalid != nil || o.Earliest.After(o.Now) || o.failing()
}

// failing reports whether the last try to bring the release to its Target has
// failed.
func (o Observation) failing() bool { return o.Failure != nil && o.Failure.Target == Target(o) }
