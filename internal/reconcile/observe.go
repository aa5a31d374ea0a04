package reconcile

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/inputs/dependencies"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// snapshot is the state of a custom resource and its release in one reconciliation.
type snapshot struct {
	status.Snapshot
	key types.NamespacedName

	inputs
	progress progress
	repair   repair

	// unclear reports that the rollback request is carried out although the spec may
	// have been edited after it.
	unclear bool
	// undecided reports that the rollout does not know all custom resources yet.
	undecided bool
	// queued reports that the upgrade to a new chart waits for its turn in the rollout.
	queued bool
	// dependencies are the objects that the custom resource depends on.
	dependencies []dependencies.Ref
	// incomplete is why the content of the custom resource could not be read, see complete.
	incomplete error
	// missing is the source of values that makes the values invalid because it does not exist
	// or lacks a value, nil if no source is missing.
	missing *valuesfrom.Ref
	// signIn is how long until the newest record may be signed.
	signIn time.Duration

	// version is the resourceVersion of the custom resource, after the status was patched.
	version string

	// reached reports that the release has reached the target of the last failure, and
	// interrupted is a revision that failed only because the operator had stopped.
	reached     bool
	interrupted int
	// driftChecked reports that Drift is known.
	driftChecked bool
}

// inputs are the inputs of the release.
type inputs struct {
	// facts are computed from the spec, nil if the spec is invalid. values are the values
	// of the release. If they are nil, valuesOf computes them.
	facts          *specFacts
	values         map[string]any
	digests        release.Digests
	serviceAccount string
	// createNamespace reports that an install creates the namespace.
	createNamespace bool
}

// repair holds the drifted objects to correct now, and the time until the next object
// in a fight may be corrected.
type repair struct {
	objects map[apply.Key]bool
	after   time.Duration
}

// load returns the newer of a custom resource in the cache and the one that this
// process wrote last, nil if it is gone.
func (r *Reconciler) load(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(r.Kind.GVK())
	if err := r.Reader.Get(ctx, key, cr); err != nil {
		if apply.AnswerOf(err) == apply.Gone {
			return nil, nil
		}
		return nil, fmt.Errorf("read %s %s from the cache: %w", r.Kind.Kind, key, err)
	}
	return r.latest.newest(key, cr), nil
}

// observe reads what the decision depends on. It changes nothing but the memory of
// this process: caches, and when a state was first observed. It returns an error if the
// inputs cannot be read. If that lasts, the rest of the status is reported without them.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName, cr *unstructured.Unstructured) (*snapshot, error) {
	v := &snapshot{key: key, version: cr.GetResourceVersion(), Snapshot: status.Snapshot{
		CR: cr, Requests: annotations.ParseWithFloor(cr.GetAnnotations(), r.periodFloor()),
		NumbersChosen: r.Kind.Numbers != "",
	}}
	if customresource.Partial(cr) {
		r.readContent(ctx, v)
	}
	o := &v.Observation
	*o = plan.Observation{
		Now:       r.Now(),
		Deleting:  !cr.GetDeletionTimestamp().IsZero(),
		Finalizer: hasFinalizer(cr, api.Finalizer),
		Former:    hasFinalizer(cr, api.FinalizersOperatorSDK...),
		Period:    r.period(v),
		Earliest:  r.memory.of(cr.GetUID()).allowance.earliest(),
	}
	o.Applied = r.memory.appliedAt(cr.GetUID(), firstApplied(cr.GetUID(), o.Now, o.Period))
	o.Conflict = !r.findRelease(v)
	if err := customresource.TooLarge(cr); err != nil {
		o.Invalid = invalid(err)
	}
	if !r.watches(v.Release.Namespace) && o.Invalid == nil {
		o.Invalid = invalid(fmt.Errorf("the operator does not watch namespace %s of the release: add it to $WATCH_NAMESPACE", v.Release.Namespace))
	}
	r.observeRunning(v)
	if len(v.History) > 0 {
		o.Newest = r.revision(v)
	}
	err := r.observeInputs(ctx, v)
	if v.incomplete != nil {
		return nil, v.incomplete
	}
	// The values are not invalid if inputs could not be read at present.
	unread, lasting := errors.Is(err, errSourceUnread) || errors.Is(err, errUndiscovered), false
	r.memory.ifKnown(cr.GetUID(), func(m *remembered) { lasting = lasts(&m.unreadSince, unread, o.Now) })
	switch {
	case unread && !lasting:
		return nil, err
	case unread && o.Invalid == nil:
		v.Unread = true
		o.Invalid = &plan.Problem{Reason: api.ReasonInputsUnread, Message: v.Redact(apply.Explain(err))}
	case err != nil && o.Invalid == nil:
		o.Invalid = invalid(err)
		v.missing = missingSource(err)
	}
	o.Desired = v.digests.Input
	r.observeDependencies(ctx, v)
	r.observeRequests(v)
	// In a namespace that is being deleted, nothing waits.
	o.PausedDeletion = o.PausedDeletion && (!o.Deleting || !r.isTerminating(ctx, cr.GetNamespace()))
	r.observeRefusal(v)
	r.observeChange(v)
	r.observeObjects(v)
	r.observeFailures(v)
	if v.incomplete != nil {
		return nil, v.incomplete
	}
	if r.Permissions != nil {
		v.MissingRules, v.RulesKnown = r.Permissions.Missing(v.Release.Namespace)
	}
	return v, nil
}

// readContent makes a snapshot read the content when it is needed next.
func (r *Reconciler) readContent(ctx context.Context, v *snapshot) {
	v.values, v.Read = nil, sync.OnceValues(func() (*unstructured.Unstructured, error) { return r.complete(ctx, v) })
}

// complete reads a custom resource with the content that its cached copy lacks. The caller can
// be an action, which outlives the reconciliation.
func (r *Reconciler) complete(ctx context.Context, v *snapshot) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sourceTimeout)
	defer cancel()
	cr, err := r.Resources.Complete(ctx, v.CR)
	switch {
	case err != nil:
		v.incomplete = fmt.Errorf("read the custom resource: %w", err)
	case cr.GetUID() != v.CR.GetUID() || customresource.Digest(cr) != customresource.Digest(v.CR):
		v.incomplete = fmt.Errorf("%w: the custom resource has changed", release.ErrStale)
	}
	return cr, v.incomplete
}

// invalid returns the problem of invalid inputs.
func invalid(err error) *plan.Problem {
	reason := api.ReasonInvalidValues
	if source, ok := errors.AsType[*valuesfrom.Error](err); ok {
		reason = source.Reason
	}
	return &plan.Problem{Reason: reason, Message: err.Error()}
}

// observeRunning observes the running action. If none is running, it reads the
// history again: an action that ended after the first read would otherwise appear as
// interrupted.
func (r *Reconciler) observeRunning(v *snapshot) {
	v.Observation.Running = r.Pool.Running(v.Release, v.CR.GetUID())
	if v.Observation.Running == nil && len(v.History) > 0 && !v.Observation.Adoptable {
		v.History = r.Index.History(v.Release.Namespace, v.Release.Name)
	}
}

// observeFailures recalls the last failures, unless the release has reached their
// target all the same.
func (r *Reconciler) observeFailures(v *snapshot) {
	o := &v.Observation
	known := r.memory.of(v.CR.GetUID())
	v.Failure, v.interrupted = known.failure, known.interrupted
	if v.Failure != nil && plan.Reached(*o) && v.Failure.Target == plan.Target(*o) {
		v.Failure, v.reached = nil, true
	}
	if v.Failure != nil && r.guardedChanged(v.Failure) {
		// Retry now.
		v.Failure = nil
	}
	if v.Failure != nil {
		o.Failure = &v.Failure.Failure
	}
	if v.RepairFailure = known.repairFailure; v.RepairFailure != nil {
		o.RepairFailure = &v.RepairFailure.Failure
	}
}

// observeObjects observes drift and health.
func (r *Reconciler) observeObjects(v *snapshot) {
	uid := v.CR.GetUID()
	o := &v.Observation
	// Everything below depends on it.
	r.Inventory.SetReleaseNamespace(uid, v.Release.Namespace)
	if o.Deleting {
		for _, state := range r.Inventory.OwnedBy(uid) {
			o.Orphans = o.Orphans || !state.Kept && !state.Deleting
		}
		o.Unsearched = o.Newest == nil && !r.memory.of(uid).uninstalled
		return
	}
	if o.Newest == nil || o.Newest.Status != api.StatusDeployed {
		return
	}
	if changing(o) {
		// At the end of an action, the record is deployed before the inventory expects the new
		// objects and their state.
		return
	}
	defer r.observeHealth(v)
	if r.Kind.DriftMode() == watches.DriftDisabled {
		return
	}
	recorded := release.FinishedJobs(v.History[0].Inventory)
	o.Unverified = !r.Inventory.RestoreExpected(uid, inventory.Recorded{
		Digest: v.History[0].Inventory.Digest, Finished: recorded, Outside: release.OutsideObjects(v.History[0].Inventory),
	})
	o.Unrecorded = !o.Unverified && !maps.Equal(r.Inventory.JobOutcomes(uid), recorded)
	v.Drift, v.driftChecked = r.Inventory.Drift(uid), true
	if r.Kind.DriftMode() == watches.DriftWarn {
		return
	}
	v.repair.objects = map[apply.Key]bool{}
	for _, drift := range v.Drift {
		wait, fighting := r.memory.pause(uid, drift.Key, o.Now)
		if fighting != nil {
			v.Fighting = append(v.Fighting, *fighting)
		}
		if wait > 0 {
			if v.repair.after == 0 || wait < v.repair.after {
				v.repair.after = wait
			}
			continue
		}
		v.repair.objects[drift.Key] = true
	}
	o.Drifted = len(v.repair.objects) > 0
}

// changing reports whether an action changes the deployed revision now.
func changing(o *plan.Observation) bool {
	return o.Running != nil && !o.Running.Queued && plan.Changes(o.Running.Step)
}

// unwatched describes the kinds of the release's objects that cannot be watched. If a watch
// is forbidden, it requests the rules of the chart.
func (r *Reconciler) unwatched(v *snapshot) string {
	if r.Inventory.Watches == nil {
		return ""
	}
	unwatched := r.Inventory.Unwatched(v.CR.GetUID(), v.Release.Namespace)
	if len(unwatched) == 0 {
		return ""
	}
	kinds := make([]string, len(unwatched))
	for i, u := range unwatched {
		if u.Why == inventory.Forbidden && r.Permissions != nil {
			r.Permissions.Derive()
		}
		kinds[i] = fmt.Sprintf("%s: %s", u.GroupKind, u.Why)
	}
	return "Objects of these kinds cannot be watched; their drift is not detected, and they count as ready. " + strings.Join(kinds, "; ")
}

func (r *Reconciler) revision(v *snapshot) *plan.Revision {
	record := v.History[0]
	v.Untrusted = r.untrusted.of(record, "")
	revision := &plan.Revision{
		Number:      record.Revision,
		Status:      record.Status,
		Owned:       !v.Observation.Adoptable,
		WrittenByUs: record.Genuine() && record.Operator == r.Operator,
		Stripped:    record.Stripped() && record.Operator == r.Operator && v.Untrusted == "",
		Untrusted:   v.Untrusted != "",
		Began:       record.Changed,
		Timeout:     r.Kind.ActionTimeout(),
	}
	if revision.WrittenByUs {
		revision.Digest = record.InputDigest
	}
	return revision
}

// period returns how often every object is applied again; 0 means never.
func (r *Reconciler) period(v *snapshot) time.Duration {
	if v.Requests.ReconcilePeriod != nil {
		return *v.Requests.ReconcilePeriod
	}
	return r.ownPeriod()
}

// ownPeriod returns the period that the administrator has set for the kind.
func (r *Reconciler) ownPeriod() time.Duration {
	if r.Kind.ReconcilePeriod != nil {
		return r.Kind.ReconcilePeriod.Duration
	}
	return r.ReconcilePeriod
}

// periodFloor returns the shortest period that an annotation may set. The period that
// the administrator has set for the kind is always allowed.
func (r *Reconciler) periodFloor() time.Duration {
	if own := r.ownPeriod(); own > 0 {
		return min(own, r.MinReconcilePeriod)
	}
	return r.MinReconcilePeriod
}

// firstApplied returns the assumed time of the last apply after a restart: a part of
// the period ago that depends on the UID, so that custom resources are due at
// different times.
func firstApplied(uid types.UID, now time.Time, period time.Duration) time.Time {
	if period <= 0 {
		return now
	}
	hash := fnv.New64a()
	// Write of a hash never fails.
	_, _ = hash.Write([]byte(uid))
	return now.Add(-time.Duration(hash.Sum64() % uint64(period)))
}

// The time until unready objects are diagnosed. Most become ready before the first
// diagnosis. The time between later diagnoses doubles.
const (
	firstDiagnosis   = 5 * time.Second
	maxDiagnosisWait = 10 * time.Minute
	// diagnosisTimeout bounds one diagnosis of an object or a hook.
	diagnosisTimeout = 10 * time.Second
)

// observeHealth observes which objects of the deployed revision are not ready, and
// since when.
func (r *Reconciler) observeHealth(v *snapshot) {
	o := &v.Observation
	uid := v.CR.GetUID()
	v.Health = r.Inventory.Health(uid, o.Now)
	newest := v.History[0]
	v.progress = r.memory.progress(uid, newest.Revision, newest.Deployed.Time, r.Kind.ReadyWithin(), v.readiness(), o.Now)
	if len(v.Health.Unready) == 0 {
		return
	}
	v.Diagnosis = v.progress.why
	v.Overdue = v.readiness() == inProgress && !o.Now.Before(v.progress.since.Add(r.Kind.ReadyWithin()))
	o.Overdue = v.Overdue && !v.progress.wasReady && !v.progress.late
	o.NeedsDiagnosis = !o.Now.Before(v.progress.diagnoseAt)
}

// objectsReadiness sums up the readiness of a revision's objects.
type objectsReadiness int

const (
	// inProgress: some objects are not ready, and have a deadline.
	inProgress objectsReadiness = iota
	// openEnded: some objects are not ready, and none of those has a deadline.
	openEnded
	// allReady: every object is ready.
	allReady
)

// readiness sums up the readiness of the objects. Unready objects without a deadline
// are sorted last.
func (v *snapshot) readiness() objectsReadiness {
	switch {
	case len(v.Health.Unready) == 0:
		return allReady
	case v.Health.Unready[0].OpenEnded:
		return openEnded
	default:
		return inProgress
	}
}
