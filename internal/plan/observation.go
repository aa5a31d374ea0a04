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
	// Finalizer: the custom resource has Chartwright's finalizer. Former: it has a
	// finalizer of the operator-sdk, which must be replaced.
	Finalizer bool
	Former    bool
	// Paused: reconciliation is paused. PausedDeletion: the pause includes the
	// uninstall.
	Paused         bool
	PausedDeletion bool
	// Orphan: the release stays when the custom resource is deleted.
	Orphan bool
	// Running is the running action on the release, or nil.
	Running *Running
	// Change is what users have changed since the running action began.
	Change Change
	// Abort is the revision whose action a user aborts, 0 for none. AbortUninstall: a
	// user stops the delete hooks.
	Abort          int
	AbortUninstall bool
	// Newest is the newest stored revision, or nil.
	Newest *Revision
	// Inconsistent: more than one revision is deployed, or one of our revisions is
	// pending although there is a newer revision.
	Inconsistent bool
	// Conflict: every release name that the custom resource may use belongs to
	// another owner.
	Conflict bool
	// Adoptable: the release has a name that the custom resource may use, and no
	// operator created it.
	Adoptable bool
	// Inherited: the release is adoptable, and the operator-sdk created it for this
	// custom resource. It is uninstalled when the custom resource is deleted.
	Inherited bool
	// Orphans: objects of the release exist, whether or not it has records.
	Orphans bool
	// Unsearched: there is no record, and nothing has searched for objects. Objects may
	// exist if the records were deleted.
	Unsearched bool
	// Drifted: an object of the deployed revision has drifted and may be corrected
	// now.
	Drifted bool
	// Unverified: the expected content of the objects is unknown.
	Unverified bool
	// Unrecorded: a Job with ttlSecondsAfterFinished has finished, which the record
	// does not state yet.
	Unrecorded bool
	// Unsigned: the newest record lacks a signature with the current key, and may be
	// signed now.
	Unsigned bool
	// Desired is the digest of the inputs that the release should be rendered from.
	Desired string
	// Invalid is why there is no such digest, nil if there is one.
	Invalid *Problem
	// AccountUnknown: the name of the service account is not known. Only a deletion is carried
	// out.
	AccountUnknown bool
	// Dependency is why the release must not be changed to follow the spec yet: an object
	// that the custom resource depends on is not ready. It is nil if all are ready.
	Dependency *Obstacle
	// Dependents is why the release must not be uninstalled yet: other custom resources
	// depend on this one. It is nil if none does.
	Dependents *Obstacle
	// MoveTo is the namespace that the spec requests for the release, if the release is in
	// another one.
	MoveTo string
	// Postponed: only the chart has changed, and the upgrade waits for the rollout.
	Postponed bool
	// Request is the unanswered rollback request, or nil.
	Request *Request
	// Held is the hold on the release, or nil.
	Held *Held
	// VerifyRequested: a user requests that every object is applied again, by
	// reconcile-requested-at or force.
	VerifyRequested bool
	// TestRequested: a user requests the chart's tests.
	TestRequested bool
	// RetryToken changes with every request to retry, which ends the backoff.
	RetryToken string
	// Overdue: the objects of the newest revision never became ready, and their
	// deadline has passed.
	Overdue bool
	// NeedsDiagnosis: some objects are not ready, and the time to find the cause has
	// come.
	NeedsDiagnosis bool
	// LastGood is the revision to roll back to if the newest one fails for good, 0 for
	// none.
	LastGood int
	// Retries is the number of failed attempts before a rollback to LastGood; 0 means
	// no rollback.
	Retries int
	// Earliest is when the next action may begin that authors of custom resources
	// can cause, see Limited. The zero time limits nothing.
	Earliest time.Time
	// Period is how often every object is applied again; 0 means never.
	Period time.Duration
	// Applied is when every object was last applied, or when this process first
	// observed the custom resource.
	Applied time.Time
	// Failure is the last attempt of this process to reach the target of the release,
	// if it failed. RepairFailure is the last failed drift correction.
	Failure       *Failure
	RepairFailure *Failure
}

// Running is a running or queued action.
type Running struct {
	Step Step
	// Queued reports that the action waits for a slot. Since is when it was queued or,
	// afterwards, when it began.
	Queued bool
	Since  time.Time
	// Inputs are the inputs at the time when it was queued.
	Inputs Inputs
	// Hook is the hook that it waits for, nil for none.
	Hook *Hook
}

// Revision is one stored revision of the release.
type Revision struct {
	Number int
	// Status is Helm's status of the revision, see package api.
	Status string
	// Digest is that of the inputs that the revision was rendered from. It is empty if
	// another program wrote the revision, and then equals no desired digest.
	Digest string
	// Owned: its release belongs to this custom resource.
	Owned bool
	// WrittenByUs: this operator wrote it, and not, for example, the helm CLI.
	WrittenByUs bool
	// Stripped: this operator wrote it, and another program has written its record
	// since and dropped its annotations. Whether anything else has changed is unknown.
	// Such a revision is not WrittenByUs.
	Stripped bool
	// Untrusted: an action has read the record and found that this operator did not
	// write its content. Nothing from the record is applied.
	Untrusted bool
	// Began is when its action began.
	Began time.Time
	// Timeout bounds the duration of an action of another program.
	Timeout time.Duration
}

// Request is a rollback request.
type Request struct {
	// Token identifies the request.
	Token string
	// Revision is the revision to roll back to. If it is 0, Resume requests the end of
	// the hold; without Resume, the request is refused.
	Revision int
	Resume   bool
	// Expired: the spec was edited after a failed attempt to answer the request.
	Expired bool
}

// Held is a hold on an earlier revision.
type Held struct {
	Revision int
	// Token is that of the request for the rollback.
	Token string
	// Expired: the spec was edited since.
	Expired bool
	// ByFailure: the upgrade has failed too often; no user requested the hold.
	ByFailure bool
}

// Failure is an action that failed. It is kept in memory only: after a restart the
// action is retried without backoff.
type Failure struct {
	// Target is the target of the action, see TargetOf.
	Target TargetKey
	// Attempts counts the failures in a row with that target.
	Attempts int
	// Transients counts those of them that were Transient.
	Transients int
	// Transient reports that the API server was not available, or that the namespace is being
	// deleted. That says nothing about the target, and causes no rollback.
	Transient bool
	// Stale reports that the operator has not received a change that the action found. Usually
	// the change ends the failure.
	Stale bool
	At    time.Time
	// Waits reports that the action waits for an approval. It has not failed.
	Waits bool
}

// Problem is why the release cannot follow the spec: a reason of the condition
// Ready and a message for the user.
type Problem struct {
	Reason, Message string
	// Waits reports that the problem may end with the wait for Observation.Dependency, for
	// example because the dependency is a source of values. The values are unknown until then.
	Waits bool
}

// Obstacle is why a step has to wait for other custom resources or objects.
type Obstacle struct {
	// Message is for the user.
	Message string
	// After is when to observe again if no event ends the wait; 0 means never.
	After time.Duration
}

// Inputs are compared to detect a change during an action.
type Inputs struct {
	// Values and Spec are digests of the values and of the spec, both without the
	// field of the scale subresource. Scaled is a digest of the values with it.
	Values, Spec, Scaled string
	// Request is the token of the unanswered rollback request.
	Request string
	// HooksDisabled: an annotation disables the action's hooks.
	HooksDisabled bool
}

// Hook is a hook that an action waits for.
type Hook struct {
	// Name is the kind, namespace and name of the object: "Job default/web-pre-upgrade".
	Name  string
	State api.HookState
	// Why is the sentence that describes what delays the hook; empty while it runs.
	Why string
}

// Change is what users have changed since the running action began.
type Change string

// The changes, the one with the highest precedence first.
const (
	ChangeNone Change = ""
	// ChangeAbort: an annotation aborts the action.
	ChangeAbort Change = "Abort"
	// ChangeDeletion: the custom resource is being deleted.
	ChangeDeletion Change = "Deletion"
	// ChangeHooksDisabled: an annotation disables the hooks of the action.
	ChangeHooksDisabled Change = "HooksDisabled"
	// ChangeRollback: an annotation requests an earlier revision, or the end of the
	// hold that the action will set.
	ChangeRollback Change = "Rollback"
	// ChangeEdit: the values have changed.
	ChangeEdit Change = "Edit"
	// ChangeScale: only the field of the scale subresource has changed.
	ChangeScale Change = "Scale"
)

// guarded reports whether the custom resource waits for its release to be
// uninstalled.
func (o Observation) guarded() bool { return o.Finalizer || o.Former }

// Holding reports whether a hold keeps the release from following the spec. A
// release that was uninstalled is not held.
func (o Observation) Holding() bool { return o.Held != nil && !o.Held.Expired && o.stored() }

// staying reports whether a hold or the rollout keeps the release from following
// the spec.
func (o Observation) staying() bool { return o.Holding() || o.Postponed }

// stored reports whether the custom resource has a release that is not being
// uninstalled.
func (o Observation) stored() bool {
	return o.Newest != nil && o.Newest.Owned && !api.Uninstalled(o.Newest.Status)
}

// runs reports whether the newest revision is owned by the custom resource, is
// deployed, and may be applied again.
func (o Observation) runs() bool {
	return o.stored() && o.Newest.WrittenByUs && !o.Newest.Untrusted && o.Newest.Status == api.StatusDeployed
}

// untrusted reports whether nothing from the newest record may be applied.
func (o Observation) untrusted() bool { return o.Newest != nil && o.Newest.Untrusted }

// stuck reports whether the release cannot follow the spec for now.
func (o Observation) stuck() bool {
	return o.Invalid != nil || o.Dependency != nil || o.Earliest.After(o.Now) || o.failing()
}

// waits reports whether the action that brings the release to its Target waits for an
// approval.
func (o Observation) waits() bool { return o.failing() && o.Failure.Waits }

// failing reports whether the last try to bring the release to its Target has
// failed.
func (o Observation) failing() bool { return o.Failure != nil && o.Failure.Target == Target(o) }
