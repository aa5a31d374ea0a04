package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/rollout"
)

// rolloutQueue holds the rollout.Queue of the kind. The first reconciliation creates
// the queue, because the cache is full by then. The zero value is ready.
type rolloutQueue struct {
	mu     sync.Mutex
	queue  *rollout.Queue
	paused bool
}

// updateQueue calls do with the queue, if there is one, and reconciles the custom
// resources that do returns.
func (r *Reconciler) updateQueue(do func(*rollout.Queue) []types.NamespacedName) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	if r.queue.queue != nil {
		r.wakeAll(do(r.queue.queue))
	}
}

// rollout returns the queue. A new queue expects all custom resources in the cache.
func (r *Reconciler) rollout(ctx context.Context) (*rollout.Queue, error) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	if r.queue.queue != nil {
		return r.queue.queue, nil
	}
	expected, err := r.listUIDs(ctx, r.Reader)
	if err != nil {
		return nil, err
	}
	if r.DeletionOnly {
		// No custom resource is upgraded, and others are not reconciled at all.
		expected = nil
	}
	r.queue.queue = rollout.NewQueue(rollout.Limits{
		MaxConcurrent: r.Kind.Rollout.ConcurrencyLimit(), StopAfterNamespaces: r.Kind.Rollout.StopAfter(),
	}, expected)
	r.queue.queue.Pause(r.queue.paused || r.Kind.Rollout.Paused)
	r.Metrics.AddRollout(r.kindName(), r.queue.queue.Positions)
	return r.queue.queue, nil
}

// list lists the custom resources in a cache.
func (r *Reconciler) list(ctx context.Context, from client.Reader) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	gvk := r.Kind.GVK()
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	if err := from.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list %s from the cache: %w", r.Kind.Kind, err)
	}
	return list, nil
}

// listUIDs lists the UIDs of the custom resources in a cache.
func (r *Reconciler) listUIDs(ctx context.Context, from client.Reader) ([]types.UID, error) {
	list, err := r.list(ctx, from)
	if err != nil {
		return nil, err
	}
	uids := make([]types.UID, len(list.Items))
	for i := range list.Items {
		uids[i] = list.Items[i].GetUID()
	}
	return uids, nil
}

// Grown makes the rollout wait for the custom resources in the cache of another
// namespace. It is called before any of them is reconciled.
func (r *Reconciler) Grown(ctx context.Context, from client.Reader) error {
	uids, err := r.listUIDs(ctx, from)
	if err != nil {
		return err
	}
	r.updateQueue(func(queue *rollout.Queue) []types.NamespacedName {
		queue.Expect(uids)
		return nil
	})
	return nil
}

// PauseRollout pauses the rollout of the kind's chart, or resumes it unless the
// watches entry pauses it.
func (r *Reconciler) PauseRollout(paused bool) {
	r.queue.mu.Lock()
	r.queue.paused = paused
	r.queue.mu.Unlock()
	r.updateQueue(func(queue *rollout.Queue) []types.NamespacedName {
		return queue.Pause(r.queue.paused || r.Kind.Rollout.Paused)
	})
}

// leaveRollout removes a custom resource that is gone or that another operator
// manages.
func (r *Reconciler) leaveRollout(uid types.UID) {
	r.updateQueue(func(queue *rollout.Queue) []types.NamespacedName { return queue.Forget(uid) })
}

// claimPosition updates the position of the custom resource in the rollout of the
// kind's chart, and finds out whether it may be upgraded now.
func (r *Reconciler) claimPosition(ctx context.Context, v *snapshot) error {
	queue, err := r.rollout(ctx)
	if err != nil {
		return err
	}
	position := positionOf(v)
	var turn rollout.Turn
	switch refusal := r.downgrade(v); {
	case refusal != "":
		r.refuseDowngrade(v, refusal)
		position = rollout.Skipped
	case position == rollout.Skipped && outdated(v):
		if reason := skipReason(v); reason != "" {
			r.offer(v, turn, reason)
			// A pending request of a user is not postponed.
			v.Observation.Postponed = reason == api.ReasonPaused
		}
	}
	uid := v.CR.GetUID()
	obstacle := ""
	switch {
	case position != rollout.Waiting:
	case v.Observation.Dependency != nil:
		obstacle = api.ReasonDependencyNotReady
	case waitsForApproval(v):
		obstacle = api.ReasonApprovalRequired
	}
	blocked := obstacle != ""
	r.wakeAll(queue.Upsert(uid, rollout.Member{
		Key: v.key, Position: position, Unhealthy: position == rollout.Waiting && !healthy(v), Blocked: blocked, Edited: movedByEdit(v),
	}))
	if summary, changed := queue.Summary(); changed {
		r.reportRollout(ctx, summary)
	}
	if blocked {
		r.offer(v, turn, obstacle)
	}
	if position != rollout.Waiting || blocked {
		return nil
	}
	turn = queue.Turn(uid)
	v.Observation.Postponed = turn.Verdict != rollout.Go
	v.queued = v.Observation.Postponed
	v.undecided = turn.Verdict == rollout.Unknown
	if reason := turnReasons[turn.Verdict]; reason != "" {
		r.offer(v, turn, reason)
	}
	return nil
}

// turnReasons are the reasons of the condition UpdateAvailable by verdict.
var turnReasons = map[rollout.Verdict]string{
	rollout.Wait: api.ReasonWaiting, rollout.Stopped: api.ReasonRolloutStopped, rollout.Paused: api.ReasonRolloutPaused,
}

// offer adds the newer chart to the status.
func (r *Reconciler) offer(v *snapshot, turn rollout.Turn, reason string) {
	chart := r.Kind.Chart
	v.UpdateReason = reason
	v.Update = &api.UpdateStatus{
		Chart: chart.Name() + "-" + chart.Version(), ChartVersion: chart.Version(), Place: int64(turn.Place), Of: int64(turn.Of),
	}
}

// reportRollout logs that the rollout of the kind's chart has stopped or continues. If
// it has stopped, it emits an event for each failed custom resource. The waiting ones
// have a condition instead, because there may be thousands of them.
func (r *Reconciler) reportRollout(ctx context.Context, summary rollout.Summary) {
	chart := r.Kind.Chart.Name() + "-" + r.Kind.Chart.Version()
	logger := log.Log.WithValues("kind", r.Kind.Kind, "group", r.Kind.Group, "chart", chart)
	if !summary.Stopped {
		logger.Info("rollout continues", "waiting", summary.Waiting)
		return
	}
	scope := "this namespace"
	if summary.Everywhere {
		scope = "all namespaces"
	}
	logger.Info("rollout stopped by failed upgrades", "everywhere", summary.Everywhere, "failed", names(summary.Failed), "waiting", summary.Waiting)
	for _, key := range summary.Failed {
		cr := &unstructured.Unstructured{}
		cr.SetGroupVersionKind(r.Kind.GVK())
		if err := r.Reader.Get(ctx, key, cr); err != nil {
			// It is being deleted, so the rollout continues soon.
			continue
		}
		r.Recorder.Event(cr, corev1.EventTypeWarning, api.EventRolloutStopped, fmt.Sprintf(
			"The rollout of chart %s has stopped in %s, because this upgrade failed: fix, hold, pause or delete the custom resource to continue; %d others wait", chart, scope, summary.Waiting))
	}
}

// names returns the namespaces and names of custom resources.
func names(keys []types.NamespacedName) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = key.String()
	}
	return list
}

// positionOf returns the position of a custom resource in the rollout of its kind's
// chart. It depends on the records and objects only, except for a failure before a
// record was written: after a restart, such an upgrade is retried once.
func positionOf(v *snapshot) rollout.Position {
	o := v.Observation
	fails := v.Failure != nil && v.Failure.Target == plan.Target(o)
	switch {
	case !upgradable(v), o.Paused:
		return rollout.Skipped
	case o.Holding():
		if v.Marks.Held.ByFailure && chartOf(v.History, v.Marks.Held.From) == v.digests.Chart {
			return rollout.Failed
		}
		return rollout.Skipped
	case !outdated(v):
		return positionAfterUpgrade(v, fails)
	case fails && (requested(v) || o.Request != nil):
		// The user's edit or request fails, and not the new chart.
		return rollout.Skipped
	case fails && v.Failure.Waits:
		return rollout.Waiting
	case fails:
		return rollout.Failed
	case o.Dependency != nil && o.Running == nil:
		return rollout.Waiting
	case requested(v), o.Running != nil && o.Running.Step == plan.StepUpgrade:
		return rollout.Moving
	default:
		return rollout.Waiting
	}
}

// waitsForApproval reports whether the action that follows the spec waits for an approval.
func waitsForApproval(v *snapshot) bool {
	return v.Failure != nil && v.Failure.Waits && v.Failure.Target == plan.Target(v.Observation)
}

// upgradable reports whether there is a release that a chart can upgrade. A release that
// moves to another namespace is not upgraded.
func upgradable(v *snapshot) bool {
	o := v.Observation
	return !o.Deleting && !o.Conflict && o.Invalid == nil && o.MoveTo == "" && o.Newest != nil && o.Newest.Owned && o.Newest.WrittenByUs && !api.Uninstalled(o.Newest.Status)
}

// outdated reports whether the newest revision has another chart than the kind.
func outdated(v *snapshot) bool { return upgradable(v) && v.History[0].ChartDigest != v.digests.Chart }

// positionAfterUpgrade returns the position of a custom resource whose newest revision
// has the kind's chart. It is Done if it never had another chart or if the chart was
// deployed before, because then a failure has other causes. A failed upgrade stays
// Failed while it is retried, or each retry would admit others. An interrupted one is Moving.
func positionAfterUpgrade(v *snapshot, fails bool) rollout.Position {
	o := v.Observation
	runs, _ := status.Deployed(v.History)
	upgraded := slices.ContainsFunc(v.History, func(r release.Record) bool {
		return r.ChartDigest != "" && r.ChartDigest != v.digests.Chart
	})
	failed := o.Newest.Status == api.StatusFailed && o.Newest.Number != v.interrupted || fails && api.Pending(o.Newest.Status)
	switch {
	case !upgraded, failed && runs.ChartDigest == v.digests.Chart:
		return rollout.Done
	case failed:
		return rollout.Failed
	case changing(&v.Observation):
		return rollout.Moving
	case healthy(v), v.progress.wasReady:
		return rollout.Done
	case v.readiness() == openEnded:
		return rollout.Moving
	case v.Overdue, v.progress.late, len(v.Health.Unready) > 0 && v.Health.Unready[0].Failed:
		// If the deadline passed before this process started, the rollout may have stopped
		// because of it, so the rollout does not continue until the objects are ready.
		return rollout.Failed
	default:
		return rollout.Moving
	}
}

// movedByEdit reports whether a user's edit requests the newest revision, or another one after it,
// and not only the kind's chart. Each edit starts a new deadline.
func movedByEdit(v *snapshot) bool {
	again := len(v.History) > 1 && v.History[1].ChartDigest == v.digests.Chart &&
		(v.History[1].Status == api.StatusDeployed || v.History[1].Status == api.StatusSuperseded)
	return upgradable(v) && (again || requested(v))
}

// skipReason returns the reason of the condition UpdateAvailable for a skipped custom
// resource, empty if other conditions report it.
func skipReason(v *snapshot) string {
	o := v.Observation
	switch {
	case o.Holding():
		return api.ReasonHeld
	case o.Paused && !requested(v) && healthy(v):
		return api.ReasonPaused
	default:
		return ""
	}
}

// healthy reports whether the deployed revision is ready.
func healthy(v *snapshot) bool {
	return v.Observation.Newest.Status == api.StatusDeployed && len(v.Health.Unready) == 0
}

// requested reports whether a user requests an upgrade now: the spec was edited, a
// hold has ended, or a verification is requested. The end of a hold requests the chart
// of that time, not a later one.
func requested(v *snapshot) bool {
	o := v.Observation
	ends := o.Held != nil && o.Held.Expired
	resumed := v.Marks.ResumedChart != "" && v.Marks.ResumedChart == v.digests.Chart
	return v.History[0].ValuesDigest != v.digests.Values || ends || resumed || o.VerifyRequested
}

// chartOf returns the digest of the chart of a revision.
func chartOf(history []release.Record, revision int) string {
	for _, record := range history {
		if record.Revision == revision {
			return record.ChartDigest
		}
	}
	return ""
}

// downgrade returns why the kind's chart must not replace the deployed chart, empty if
// it may.
func (r *Reconciler) downgrade(v *snapshot) string {
	runs, ok := status.Deployed(v.History)
	if !ok || r.Kind.Rollout.Downgrades() || !upgradable(v) || runs.ChartDigest == v.digests.Chart {
		return ""
	}
	chart := r.Kind.Chart
	// Invalid versions cannot be compared.
	from, err := semver.NewVersion(runs.ChartVersion)
	to, err2 := semver.NewVersion(chart.Version())
	if err != nil || err2 != nil || !to.LessThan(from) {
		return ""
	}
	return fmt.Sprintf("the operator has chart %s-%s, which is older than the deployed %s, and rollout.allowDowngrade is false in the watches file: run an operator that has the newer chart, or allow it",
		chart.Name(), chart.Version(), runs.ChartVersion)
}

// refuseDowngrade postpones the upgrade. If the spec was edited or the release is not
// deployed, the release cannot follow the spec, because the chart is refused.
func (r *Reconciler) refuseDowngrade(v *snapshot, why string) {
	o := &v.Observation
	held := o.Holding()
	if !held && (requested(v) || o.Newest.Status != api.StatusDeployed) {
		o.Invalid = &plan.Problem{Reason: api.ReasonDowngradeRefused, Message: why}
		return
	}
	o.Postponed = !held
	r.offer(v, rollout.Turn{}, api.ReasonDowngradeRefused)
}
