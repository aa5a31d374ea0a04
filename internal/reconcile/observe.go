package reconcile

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/customresource"

	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// view is a custom resource with its release as this pass sees them.
type view struct {
	key types.NamespacedName
	cr  *unstructured.Unstructured
	// release is where the release is, or is to be, stored.
	release types.NamespacedName
	// history is of that release, newest first.
	history []release.Record

	// asks is what people ask for by annotations, and marks what of it was
	// answered and what is held.
	asks  annotations.Annotations
	marks release.Marks

	// unclear: the rollback request counts, although the spec may have been edited
	// after it. scaling is the scaling that waits for the end of the hold, if any.
	unclear bool
	scaling string

	// specFacts is what follows from the spec, nil if the spec is invalid. values are
	// those of the release; see valuesOf where they are nil.
	facts          *specFacts
	values         map[string]any
	digests        release.Digests
	serviceAccount string
	// accountUnknown: the template of the account's name failed.
	accountUnknown bool
	// createNamespace: an install is to make the namespace.
	createNamespace bool
	// secrets are what of the values nobody may read elsewhere.
	secrets valuesfrom.Secrets
	// invalidReason is why the values cannot be had, where it is not the spec.
	invalidReason string

	// damage is what is to be repaired now; drift is all that is damaged.
	damage map[apply.Key]bool
	drift  []inventory.Drift
	// fighting are the damaged objects that somebody damages again and again.
	fighting []apply.Key
	// repairIn is when the next of them may be repaired.
	repairIn time.Duration

	// health is that of the release's objects; overdue tells that those which are
	// not ready should be.
	health   inventory.Summary
	progress progress
	overdue  bool
	// update is the chart that is to come and why it has not, if any; undecided
	// tells that nobody knows yet whether it is this one's turn.
	update       *api.UpdateStatus
	updateReason string
	undecided    bool
	// fields are the kind's own in the status.
	fields fields
	// rightsMissing are the rules that the operator lacks, once that is known.
	rightsMissing string
	rightsKnown   bool
	// unwatched lists the kinds of the release's objects that cannot be watched.
	unwatched string

	// signIn is how long the newest record waits to be signed; untrusted is why
	// nothing from it is applied, and untrustedTarget why the revision that a
	// request names is not rolled back to.
	signIn          time.Duration
	untrusted       string
	untrustedTarget string

	failure       *failure
	repairFailure *failure
	observation   plan.Observation
}

// observe returns nil where the custom resource is gone.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (*view, error) {
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(r.Kind.GVK())
	if err := r.Reader.Get(ctx, key, cr); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read %s %s from the cache: %w", r.Kind.Kind, key, err)
	}
	cr = r.latest.newest(key, cr)
	r.keys.put(cr.GetUID(), key)

	v := &view{key: key, cr: cr, asks: annotations.ParseWithFloor(cr.GetAnnotations(), r.periodFloor())}
	v.observation = plan.Observation{
		Now:       r.Now(),
		Deleting:  !cr.GetDeletionTimestamp().IsZero(),
		Finalizer: hasFinalizer(cr, api.Finalizer),
		Former:    hasFinalizer(cr, api.FinalizersOperatorSDK...),
		Period:    r.period(v),
		Earliest:  r.memory.earliest(cr.GetUID()),
	}
	v.observation.Applied = r.memory.appliedAt(cr.GetUID(), firstApplied(cr.GetUID(), r.Now(), v.observation.Period))
	v.observation.Conflict = !r.findRelease(v)
	if err := customresource.TooLarge(cr); err != nil {
		v.observation.Invalid = err.Error()
	}
	if !r.watches(v.release.Namespace) && v.observation.Invalid == "" {
		v.observation.Invalid = fmt.Sprintf("the release is to go to namespace %s, which the operator does not watch: add it to $WATCH_NAMESPACE", v.release.Namespace)
	}
	r.observeRunning(v)
	if len(v.history) > 0 {
		v.observation.Newest = r.revision(v)
	}
	switch err := r.observeInputs(ctx, v); {
	case errors.Is(err, errSourceUnread), errors.Is(err, errUndiscovered):
		// Nobody is to wait for it.
		r.leaveLine(cr.GetUID())
		return nil, err
	case err != nil && v.observation.Invalid == "":
		v.observation.Invalid = err.Error()
	}
	v.observation.Desired = v.digests.Input
	r.observeRequests(v)
	r.observeRefusal(v)
	r.observeSignature(v)
	r.observeChange(v)
	r.observeRights(v)
	r.observeObjects(v)
	r.observeUnwatched(v)
	r.observeFailures(v)
	return v, r.observeRollout(ctx, v)
}

// observeRunning finds out which action is under way. One that has ended since the
// history was read has changed it: what was pending would be taken for cut short.
func (r *Reconciler) observeRunning(v *view) {
	v.observation.Running = r.Pool.Running(v.release, v.cr.GetUID())
	if v.observation.Running == nil && len(v.history) > 0 && !v.observation.Adoptable {
		v.history = r.Index.History(v.release.Namespace, v.release.Name)
	}
}

// observeFailures recalls what failed last. What it was to bring about may be
// there all the same.
func (r *Reconciler) observeFailures(v *view) {
	o := &v.observation
	uid := v.cr.GetUID()
	if plan.Reached(*o) {
		r.memory.reached(uid, plan.Aim(*o))
	}
	if v.failure = r.memory.get(uid, false); v.failure != nil {
		o.Failure = &v.failure.Failure
	}
	if v.repairFailure = r.memory.get(uid, true); v.repairFailure != nil {
		o.RepairFailure = &v.repairFailure.Failure
	}
}

// observeObjects finds out what is damaged.
func (r *Reconciler) observeObjects(v *view) {
	uid := v.cr.GetUID()
	o := &v.observation
	r.Inventory.SetReleaseNamespace(uid, v.release.Namespace)
	if o.Deleting {
		for _, state := range r.Inventory.OwnedBy(uid) {
			o.Orphans = o.Orphans || !state.Kept && !state.Deleting
		}
		o.Unsearched = o.Newest == nil && !r.memory.isUninstalled(uid)
		return
	}
	if o.Newest == nil || o.Newest.Status != api.StatusDeployed {
		return
	}
	defer r.observeHealth(v)
	if r.Kind.DriftMode() == watches.DriftDisabled {
		return
	}
	recorded := release.FinishedJobs(v.history[0].Inventory)
	o.Unverified = !r.Inventory.RestoreExpected(uid, inventory.Recorded{
		Digest: v.history[0].Inventory.Digest, Finished: recorded, Outside: release.OutsideObjects(v.history[0].Inventory),
	})
	o.Unrecorded = !o.Unverified && !maps.Equal(r.Inventory.JobOutcomes(uid), recorded)
	v.drift = r.Inventory.Drift(uid)
	for _, key := range r.memory.found(uid, v.drift) {
		r.Metrics.DriftDetected(r.kindName(), key.GroupKind().String())
	}
	if r.Kind.DriftMode() == watches.DriftWarn {
		return
	}
	v.damage = map[apply.Key]bool{}
	for _, drift := range v.drift {
		wait, fighting := r.fights.wait(uid, drift.Key, o.Now)
		if fighting {
			v.fighting = append(v.fighting, drift.Key)
		}
		if wait > 0 {
			if v.repairIn == 0 || wait < v.repairIn {
				v.repairIn = wait
			}
			continue
		}
		v.damage[drift.Key] = true
	}
	o.Drifted = len(v.damage) > 0
}

func (r *Reconciler) revision(v *view) *plan.Revision {
	record := v.history[0]
	v.untrusted = r.untrusted.of(record, "")
	revision := &plan.Revision{
		Number:    record.Revision,
		Status:    record.Status,
		Ours:      !v.observation.Adoptable,
		Genuine:   record.Genuine() && record.Operator == r.Operator,
		Stripped:  record.Stripped() && record.Operator == r.Operator && v.untrusted == "",
		Untrusted: v.untrusted != "",
		Began:     record.Changed,
		Timeout:   r.Kind.ActionTimeout(),
	}
	if revision.Genuine {
		revision.Digest = record.InputDigest
	}
	return revision
}

// period returns how often every object is applied again, 0 for never.
func (r *Reconciler) period(v *view) time.Duration {
	if v.asks.ReconcilePeriod != nil {
		return *v.asks.ReconcilePeriod
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

// observeInputs computes what the release is to be rendered from. A resource
// that is being deleted needs none of it.
func (r *Reconciler) observeInputs(ctx context.Context, v *view) error {
	if r.Kind.ServiceAccount != nil {
		account, err := evaluate(r, v, "serviceAccountName", r.Kind.ServiceAccount.For)
		switch {
		case err == nil:
			v.serviceAccount = account
		case v.observation.Deleting:
			// The account is unknown. Nothing that the release names may run in the
			// operator's own name, and only what is in the inventory is deleted.
			v.asks.Uninstall.DisableHooks, v.accountUnknown = true, true
		default:
			return err
		}
	}
	if v.observation.Deleting {
		r.recallSecrets(ctx, v)
		v.digests.Chart = r.chartDigest()
		return nil
	}
	if r.Kind.CreateNamespace != nil {
		var err error
		if v.createNamespace, err = evaluate(r, v, "createNamespace", r.Kind.CreateNamespace.For); err != nil {
			return err
		}
	}
	if err := r.observeSpec(ctx, v); err != nil {
		return err
	}
	capabilities, err := r.Helm.Capabilities().Digest(v.facts.features)
	if err != nil {
		return fmt.Errorf("%w: %w", errUndiscovered, err)
	}
	v.digests = release.Digests{Chart: r.chartDigest(), Values: v.facts.values}
	v.digests.Input = values.DigestOf(inputFormat, v.digests.Chart, v.digests.Values, v.release.Namespace, v.release.Name, capabilities)
	return nil
}

// errUndiscovered marks what a chart sees as .Capabilities and the API server did
// not give, for now. It is no verdict on the values.
var errUndiscovered = errors.New("what the API server offers could not be read")

// chartDigest is the digest of what the operator brings.
func (r *Reconciler) chartDigest() string {
	if len(r.Kind.Overrides) == 0 {
		return r.Kind.Chart.Digest
	}
	return values.DigestOf(r.Kind.Chart.Digest, values.Digest(r.Kind.Overrides))
}

// inputFormat is part of every input digest. It changes when what we make of
// the same inputs does, for then every release must be upgraded.
const inputFormat = api.Domain + "/1"

// owner returns what marks the release's objects and records.
func (r *Reconciler) owner(v *view) apply.Owner {
	return apply.Owner{
		GVK:       r.Kind.GVK(),
		Namespace: v.cr.GetNamespace(),
		Name:      v.cr.GetName(),
		UID:       v.cr.GetUID(),
		Operator:  r.Operator,
	}
}
