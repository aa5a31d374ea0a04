package reconcile

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/rollout"
)

// line is the kind's rollout.Line, which begins when the first pass asks for it:
// the cache is full by then. The zero value is ready.
type line struct {
	mu     sync.Mutex
	line   *rollout.Line
	paused bool
}

// rollout returns the line, which expects to see what the cache holds.
func (r *Reconciler) rollout(ctx context.Context) (*rollout.Line, error) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.line.line != nil {
		return r.line.line, nil
	}
	list := &unstructured.UnstructuredList{}
	gvk := r.Kind.GVK()
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	if err := r.Reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list %s from the cache: %w", r.Kind.Kind, err)
	}
	expected := make([]types.UID, len(list.Items))
	for i := range list.Items {
		expected[i] = list.Items[i].GetUID()
	}
	r.line.line = rollout.NewLine(rollout.Limits{
		MaxConcurrent: r.Kind.Rollout.ConcurrencyLimit(), StopAfterNamespaces: r.Kind.Rollout.StopAfter(),
	}, expected)
	r.line.line.Pause(r.line.paused || r.Kind.Rollout.Paused)
	r.Metrics.AddRollout(r.kindName(), r.line.line.Standings)
	return r.line.line, nil
}

// Grown tells that the cache holds another namespace, with these custom
// resources in it, before any pass over them: the rollout waits for them, too.
func (r *Reconciler) Grown(others []types.UID) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.line.line != nil {
		r.line.line.Expect(others)
	}
}

// PauseRollout stops the rollout of the kind's chart, or lets it go on where the
// watches entry does.
func (r *Reconciler) PauseRollout(paused bool) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.line.paused = paused
	if r.line.line != nil {
		r.wakeLine(r.line.line.Pause(paused || r.Kind.Rollout.Paused))
	}
}

// leaveLine drops a custom resource that is gone, or is another operator's.
func (r *Reconciler) leaveLine(uid types.UID) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.line.line != nil {
		r.wakeLine(r.line.line.Forget(uid))
	}
}

// wakeLine calls for a pass over those that are to be told something else.
func (r *Reconciler) wakeLine(keys []types.NamespacedName) {
	for _, key := range keys {
		r.Wake(key, 0)
	}
}

// observeRollout finds out where the custom resource stands in the rollout of
// the kind's chart, and whether its turn has come.
func (r *Reconciler) observeRollout(ctx context.Context, v *view) error {
	line, err := r.rollout(ctx)
	if err != nil {
		return err
	}
	standing := standingOf(v)
	var turn rollout.Turn
	switch refusal := r.downgrade(v); {
	case refusal != "":
		r.refuseDowngrade(v, refusal)
		standing = rollout.Aside
	case standing == rollout.Aside && outdated(v):
		if reason := asideReason(v); reason != "" {
			r.offer(v, turn, reason)
			// Nothing that a person asks for waits for the pause to end.
			v.observation.Postponed = reason == api.ReasonPaused
		}
	}
	uid := v.cr.GetUID()
	r.wakeLine(line.Put(uid, rollout.Member{Key: v.key, Standing: standing, Ailing: standing == rollout.Waiting && !healthy(v)}))
	if news, is := line.News(); is {
		r.tellRollout(ctx, news)
	}
	if standing != rollout.Waiting {
		return nil
	}
	turn = line.Turn(uid)
	v.observation.Postponed = turn.Verdict != rollout.Go
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
func (r *Reconciler) offer(v *view, turn rollout.Turn, reason string) {
	chart := r.Kind.Chart
	v.updateReason = reason
	v.update = &api.UpdateStatus{
		Chart: chart.Name() + "-" + chart.Version(), ChartVersion: chart.Version(), Place: int64(turn.Place), Of: int64(turn.Of),
	}
}

// updateMessage says what the condition UpdateAvailable tells.
func updateMessage(v *view) string {
	to := v.update
	if to == nil {
		return ""
	}
	from := "one of the same version with other files or overrideValues"
	if r := v.history[0]; r.ChartVersion != to.ChartVersion {
		from = r.ChartVersion
	}
	what := fmt.Sprintf("Chart %s is to take the place of %s", to.Chart, from)
	place := fmt.Sprintf("place %d of %d", to.Place, to.Of)
	switch v.updateReason {
	case api.ReasonRolloutStopped:
		return fmt.Sprintf("%s, at %s. The rollout has stopped here because upgrades failed, in this namespace or in several: it continues when the failed ones are fixed, held, paused or deleted", what, place)
	case api.ReasonRolloutPaused:
		return fmt.Sprintf("%s, at %s, when the rollout is no longer paused", what, place)
	case api.ReasonPaused:
		return what + " when the pause ends"
	case api.ReasonHeld:
		return what + " when the hold ends"
	case api.ReasonDowngradeRefused:
		return fmt.Sprintf("The operator has chart %s, which is older than %s, and rollout.allowDowngrade is false", to.Chart, from)
	default:
		return fmt.Sprintf("%s, at %s; an edit of the spec goes at once", what, place)
	}
}
