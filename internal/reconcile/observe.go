package reconcile

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// snapshot is a custom resource with its release as one reconciliation sees them.
type snapshot struct {
	status.Snapshot
	key types.NamespacedName

	inputs
	progress progress
	repair   repair

	// unclear: the rollback request counts, although the spec may have been edited
	// after it.
	unclear bool
	// undecided: the rollout does not know yet whether the custom resource is next.
	undecided bool
	// signIn is how long the newest record waits to be signed.
	signIn time.Duration

	// reached reports that the release has reached the target of the last failure.
	reached bool
	// driftChecked reports that Drift is known.
	driftChecked bool
}

// inputs are what the release is to be rendered from.
type inputs struct {
	// facts is what follows from the spec, nil if the spec is invalid. values are
	// those of the release; see valuesOf where they are nil.
	facts          *specFacts
	values         map[string]any
	digests        release.Digests
	serviceAccount string
	// accountUnknown: the template of the account's name failed.
	accountUnknown bool
	// createNamespace: an install is to create the namespace.
	createNamespace bool
}

// repair is the drift to correct now, and when the next objects may be corrected
// that drift again and again.
type repair struct {
	objects map[apply.Key]bool
	after   time.Duration
}

// load returns a custom resource as this process last wrote it or the cache holds
// it, nil if it is gone.
func (r *Reconciler) load(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(r.Kind.GVK())
	if err := r.Reader.Get(ctx, key, cr); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read %s %s from the cache: %w", r.Kind.Kind, key, err)
	}
	return r.latest.newest(key, cr), nil
}

// observe reads what the decision depends on. It changes nothing but the memory of
// this process: caches, and when a state was first observed.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName, cr *unstructured.Unstructured) (*snapshot, error) {
	v := &snapshot{key: key, Snapshot: status.Snapshot{
		CR: cr, Requests: annotations.ParseWithFloor(cr.GetAnnotations(), r.periodFloor()),
	}}
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
	switch err := r.observeInputs(ctx, v); {
	case isTransient(err):
		return nil, err
	case err != nil && o.Invalid == nil:
		o.Invalid = invalid(err)
	}
	o.Desired = v.digests.Input
	r.observeRequests(v)
	r.observeRefusal(v)
	r.observeChange(v)
	r.observeObjects(v)
	r.observeFailures(v)
	if r.Rights != nil {
		v.MissingRules, v.RulesKnown = r.Rights.Missing(v.Release.Namespace)
	}
	return v, nil
}

// isTransient reports whether inputs could not be read for now, which says nothing
// about the values.
func isTransient(err error) bool {
	return errors.Is(err, errSourceUnread) || errors.Is(err, errUndiscovered)
}

// invalid returns the problem of inputs that cannot be used.
func invalid(err error) *plan.Problem {
	reason := api.ReasonInvalidValues
	if source, ok := errors.AsType[*valuesfrom.Error](err); ok {
		reason = source.Reason
	}
	return &plan.Problem{Reason: reason, Message: err.Error()}
}

// observeRunning finds out which action is under way. One that has ended since the
// history was read has changed it: what was pending would be taken for cut short.
func (r *Reconciler) observeRunning(v *snapshot) {
	v.Observation.Running = r.Pool.Running(v.Release, v.CR.GetUID())
	if v.Observation.Running == nil && len(v.History) > 0 && !v.Observation.Adoptable {
		v.History = r.Index.History(v.Release.Namespace, v.Release.Name)
	}
}

// observeFailures recalls what failed last. What it was to bring about may be
// there all the same.
func (r *Reconciler) observeFailures(v *snapshot) {
	o := &v.Observation
	known := r.memory.of(v.CR.GetUID())
	v.Failure = known.failure
	if v.Failure != nil && plan.Reached(*o) && v.Failure.Target == plan.Target(*o) {
		v.Failure, v.reached = nil, true
	}
	if v.Failure != nil {
		o.Failure = &v.Failure.Failure
	}
	if v.RepairFailure = known.repairFailure; v.RepairFailure != nil {
		o.RepairFailure = &v.RepairFailure.Failure
	}
}

// observeObjects finds out what is damaged.
func (r *Reconciler) observeObjects(v *snapshot) {
	uid := v.CR.GetUID()
	o := &v.Observation
	// What the inventory knows of the objects depends on it.
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
		if fighting {
			v.Fighting = append(v.Fighting, drift.Key)
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

// unwatched describes the kinds of the release's objects that cannot be watched.
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

// period returns how often every object is applied again, 0 for never.
func (r *Reconciler) period(v *snapshot) time.Duration {
	if v.Requests.ReconcilePeriod != nil {
		return *v.Requests.ReconcilePeriod
	}
	return r.ownPeriod()
}

// ownPeriod is the period that the administrator has set for the kind.
func (r *Reconciler) ownPeriod() time.Duration {
	if r.Kind.ReconcilePeriod != nil {
		return r.Kind.ReconcilePeriod.Duration
	}
	return r.ReconcilePeriod
}

// periodFloor is the shortest period that an annotation may set: what the
// administrator has set for the kind is never too short.
func (r *Reconciler) periodFloor() time.Duration {
	if own := r.ownPeriod(); own > 0 {
		return min(own, r.MinReconcilePeriod)
	}
	return r.MinReconcilePeriod
}

// firstApplied returns when every object counts as applied where that is unknown,
// after a restart: some part of a period ago, by the UID, so that the custom
// resources are not all due at the same moment.
func firstApplied(uid types.UID, now time.Time, period time.Duration) time.Time {
	if period <= 0 {
		return now
	}
	hash := fnv.New64a()
	// It never fails.
	_, _ = hash.Write([]byte(uid))
	return now.Add(-time.Duration(hash.Sum64() % uint64(period)))
}

// When to find out why objects are not ready: most become ready sooner. Later
// the answer may be another, and is asked for ever more seldom.
const (
	firstLook = 5 * time.Second
	lastLook  = 10 * time.Minute
	// visit bounds one look.
	visit = 10 * time.Second
)

// observeHealth finds out which objects of the deployed revision are not ready,
// and since when.
func (r *Reconciler) observeHealth(v *snapshot) {
	o := &v.Observation
	uid := v.CR.GetUID()
	v.Health = r.Inventory.Health(uid, o.Now)
	newest := v.History[0]
	v.progress = r.memory.progress(uid, newest.Revision, newest.Deployed.Time, r.Kind.ReadyWithin(), v.standing(), o.Now)
	if len(v.Health.Unready) == 0 {
		return
	}
	v.Diagnosis = v.progress.why
	v.Overdue = v.standing() == inProgress && !o.Now.Before(v.progress.since.Add(r.Kind.ReadyWithin()))
	o.Overdue = v.Overdue && !v.progress.wasReady && !v.progress.late
	o.NeedsDiagnosis = !o.Now.Before(v.progress.lookAt)
}

// objectsStanding is how the objects of a revision are together.
type objectsStanding int

const (
	// inProgress: some are not ready, and should be before the deadline.
	inProgress objectsStanding = iota
	// openEnded: some are not ready, and for none of them there is a deadline.
	openEnded
	// allReady: every object is ready.
	allReady
)

// standing sums up the objects. Those without a deadline are sorted last.
func (v *snapshot) standing() objectsStanding {
	switch {
	case len(v.Health.Unready) == 0:
		return allReady
	case v.Health.Unready[0].OpenEnded:
		return openEnded
	default:
		return inProgress
	}
}
