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

// rollout returns the queue, which expects to see what the cache holds.
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
	r.queue.queue = rollout.NewQueue(rollout.Limits{
		MaxConcurrent: r.Kind.Rollout.ConcurrencyLimit(), StopAfterNamespaces: r.Kind.Rollout.StopAfter(),
	}, expected)
	r.queue.queue.Pause(r.queue.paused || r.Kind.Rollout.Paused)
	r.Metrics.AddRollout(r.kindName(), r.queue.queue.Positions)
	return r.queue.queue, nil
}

// listUIDs lists the custom resources in a cache.
func (r *Reconciler) listUIDs(ctx context.Context, from client.Reader) ([]types.UID, error) {
	list := &unstructured.UnstructuredList{}
	gvk := r.Kind.GVK()
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	if err := from.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list %s from the cache: %w", r.Kind.Kind, err)
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
		if reason := asideReason(v); reason != "" {
			r.offer(v, turn, reason)
			// Nothing that a person asks for waits for the pause to end.
			v.Observation.Postponed = reason == api.ReasonPaused
		}
	}
	uid := v.CR.GetUID()
	r.wakeAll(queue.Upsert(uid, rollout.Member{Key: v.key, Position: position, Unhealthy: position == rollout.Waiting && !healthy(v)}))
	if summary, changed := queue.Summary(); changed {
		r.reportRollout(ctx, summary)
	}
	if position != rollout.Waiting {
		return nil
	}
	turn = queue.Turn(uid)
	v.Observation.Postponed = turn.Verdict != rollout.Go
	v.undecided = turn.Verdict == rollout.Unknown
	if reason := turnReasons[turn.Verdict]; reason != "" {
		r.offer(v, turn, reason)
	}
	return nil
}

// turnReasons are those of the condition UpdateAvailable for who waits in line.
var turnReasons = map[rollout.Verdict]string{
	rollout.Wait: api.ReasonWaiting, rollout.Stopped: api.ReasonRolloutStopped, rollout.Paused: api.ReasonRolloutPaused,
}

// offer notes for the status that there is another chart than the one that runs.
func (r *Reconciler) offer(v *snapshot, turn rollout.Turn, reason string) {
	chart := r.Kind.Chart
	v.UpdateReason = reason
	v.Update = &api.UpdateStatus{
		Chart: chart.Name() + "-" + chart.Version(), ChartVersion: chart.Version(), Place: int64(turn.Place), Of: int64(turn.Of),
	}
}

// reportRollout tells that the rollout of the kind's chart has stopped, or goes
// on: in the log and, where it has stopped, by an event on those that did it.
// Of those that wait each has a condition; a thousand events would say no more.
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
			// It goes, and the rollout goes on.
			continue
		}
		r.Recorder.Event(cr, corev1.EventTypeWarning, api.EventRolloutStopped, fmt.Sprintf(
			"The rollout of chart %s has stopped in %s, because this upgrade failed: fix, hold, pause or delete the custom resource to continue; %d others wait", chart, scope, summary.Waiting))
	}
}

// names are those of custom resources, as kubectl's -n and NAME.
func names(keys []types.NamespacedName) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = key.String()
	}
	return list
}

// positionOf returns the position of a custom resource in the rollout of its kind's
// chart. All of it is read from its records and objects, but for a failure that
// came before there was a record: after a restart one is tried once more.
func positionOf(v *snapshot) rollout.Position {
	o := v.Observation
	fails := v.Failure != nil && v.Failure.Target == plan.Target(o)
	switch {
	case !concerned(v), o.Paused:
		return rollout.Skipped
	case o.Holding():
		if v.Marks.Held.ByFailure && chartOf(v.History, v.Marks.Held.From) == v.digests.Chart {
			return rollout.Failed
		}
		return rollout.Skipped
	case !outdated(v):
		return arrived(v, fails)
	case fails && (asked(v) || o.Request != nil):
		// It is what the person asks for that fails.
		return rollout.Skipped
	case fails:
		return rollout.Failed
	case asked(v), o.Running != nil && o.Running.Step == plan.StepUpgrade:
		return rollout.Moving
	default:
		return rollout.Waiting
	}
}

// concerned tells whether there is a release that a chart can upgrade.
func concerned(v *snapshot) bool {
	o := v.Observation
	return !o.Deleting && !o.Conflict && o.Invalid == nil && o.Newest != nil && o.Newest.Owned && o.Newest.WrittenByUs && !api.Uninstalled(o.Newest.Status)
}

// outdated tells whether the newest revision is of another chart than the kind's.
func outdated(v *snapshot) bool { return concerned(v) && v.History[0].ChartDigest != v.digests.Chart }

// arrived tells how one does whose newest revision is of the kind's chart. One
// that never had another is new, and what was deployed by it once has arrived:
// their troubles are their own. One that failed has failed while it is tried again,
// too: each try would else let others go.
func arrived(v *snapshot, fails bool) rollout.Position {
	o := v.Observation
	runs, _ := status.Deployed(v.History)
	upgraded := slices.ContainsFunc(v.History, func(r release.Record) bool {
		return r.ChartDigest != "" && r.ChartDigest != v.digests.Chart
	})
	failed := o.Newest.Status == api.StatusFailed || fails && api.Pending(o.Newest.Status)
	switch {
	case !upgraded, failed && runs.ChartDigest == v.digests.Chart:
		return rollout.Done
	case failed:
		return rollout.Failed
	case healthy(v), v.progress.wasReady:
		return rollout.Done
	case v.standing() == openEnded:
		return rollout.Moving
	case v.Overdue, v.progress.late, len(v.Health.Unready) > 0 && v.Health.Unready[0].Failed:
		// One whose time was up before this process began may be why the rollout
		// had stopped: it does not go on until that one is ready.
		return rollout.Failed
	default:
		return rollout.Moving
	}
}

// asideReason says why one is passed over, empty where it would be told
// otherwise.
func asideReason(v *snapshot) string {
	o := v.Observation
	switch {
	case o.Holding():
		return api.ReasonHeld
	case o.Paused && !asked(v) && healthy(v):
		return api.ReasonPaused
	default:
		return ""
	}
}

// healthy tells whether what runs is ready.
func healthy(v *snapshot) bool {
	return v.Observation.Newest.Status == api.StatusDeployed && len(v.Health.Unready) == 0
}

// asked tells whether a person wants it to be upgraded now: the spec was edited,
// a hold was ended, or everything is to be verified. The end of a hold asks for
// the chart that was there at the time, and for none that comes later.
func asked(v *snapshot) bool {
	o := v.Observation
	ends := o.Held != nil && o.Held.Expired
	resumed := v.Marks.ResumedChart != "" && v.Marks.ResumedChart == v.digests.Chart
	return v.History[0].ValuesDigest != v.digests.Values || ends || resumed || o.VerifyRequested
}

// chartOf returns the digest of the chart that a revision was made of.
func chartOf(history []release.Record, revision int) string {
	for _, record := range history {
		if record.Revision == revision {
			return record.ChartDigest
		}
	}
	return ""
}

// downgrade says why the kind's chart is not to take the place of the one that
// is deployed, empty where it may.
func (r *Reconciler) downgrade(v *snapshot) string {
	runs, ok := status.Deployed(v.History)
	if !ok || r.Kind.Rollout.Downgrades() || !concerned(v) || runs.ChartDigest == v.digests.Chart {
		return ""
	}
	chart := r.Kind.Chart
	// A version that cannot be read compares with nothing.
	from, err := semver.NewVersion(runs.ChartVersion)
	to, err2 := semver.NewVersion(chart.Version())
	if err != nil || err2 != nil || !to.LessThan(from) {
		return ""
	}
	return fmt.Sprintf("the operator has chart %s-%s, which is older than the deployed %s, and rollout.allowDowngrade is false in the watches file: run an operator that has the newer chart, or allow it",
		chart.Name(), chart.Version(), runs.ChartVersion)
}

// refuseDowngrade keeps what is deployed. Where the spec asks for something else
// there is no chart to follow it with.
func (r *Reconciler) refuseDowngrade(v *snapshot, why string) {
	o := &v.Observation
	held := o.Holding()
	if !held && (asked(v) || o.Newest.Status != api.StatusDeployed) {
		o.Invalid = &plan.Problem{Reason: api.ReasonDowngradeRefused, Message: why}
		return
	}
	o.Postponed = !held
	r.offer(v, rollout.Turn{}, api.ReasonDowngradeRefused)
}
