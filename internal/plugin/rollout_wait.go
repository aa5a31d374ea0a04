package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
)

// rolloutJudge determines the outcome of a rollout.
type rolloutJudge func(rolloutOutput) verdict

// rolloutFinished returns the verdict on a rollout that has finished, stopped or is
// paused.
func rolloutFinished(r rolloutOutput) verdict {
	if r.Phases.Progressing == 0 && r.Phases.Waiting > 0 && r.waitsFor(api.ReasonRolloutPaused) {
		return verdict{outcomeFailed, fmt.Sprintf(`paused, %d waiting; "%s rollout resume" continues it`, r.Phases.Waiting, commandLine)}
	}
	return resumedRollout(r)
}

// resumedRollout is rolloutFinished, except that it ignores the pause, which waiting
// custom resources can still report after it has ended.
func resumedRollout(r rolloutOutput) verdict {
	switch {
	case r.Phases.Progressing > 0:
		return verdict{}
	case r.Phases.Waiting > 0 && r.waitsFor(api.ReasonRolloutStopped) && !r.waitsFor(api.ReasonWaiting):
		// All have reported the stop, so the failed ones are counted, too.
		return verdict{outcomeFailed, fmt.Sprintf("stopped, %d failed, %d waiting", r.Phases.Failed, r.Phases.Waiting)}
	case r.Phases.Waiting > 0:
		return verdict{}
	case r.Phases.Failed > 0:
		return verdict{outcomeFailed, fmt.Sprintf("%d failed, none waiting", r.Phases.Failed)}
	default:
		return verdict{outcomeDone, "none waiting"}
	}
}

// reached returns a judge that also waits until all custom resources have a chart
// version, except held and paused ones. A rollout that begins later would otherwise look
// like a finished one.
func reached(version string, judge rolloutJudge) rolloutJudge {
	return func(r rolloutOutput) verdict {
		v := judge(r)
		if v.outcome != outcomeDone {
			return v
		}
		for _, m := range r.Resources {
			if m.Version != version && m.Phase != phaseHeld && m.Phase != phasePaused {
				return verdict{}
			}
		}
		return verdict{outcomeDone, "all have version " + version}
	}
}

// pauseInEffect waits until no upgrade is running and all waiting custom resources
// report the pause.
func pauseInEffect(r rolloutOutput) verdict {
	if r.Phases.Progressing > 0 || r.waitsFor(api.ReasonWaiting) {
		return verdict{}
	}
	return verdict{outcomeDone, "paused, none progressing"}
}

// watchRollout calls visit with the current state of a rollout and after each change,
// until visit returns true or the watch ends.
func (t target) watchRollout(ctx context.Context, visit func(rolloutOutput) (done bool)) (done bool, err error) {
	list, err := t.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, t.need("list", "to show the rollout").explain(err)
	}
	members := map[types.UID]rolloutMember{}
	for i := range list.Items {
		members[list.Items[i].GetUID()] = memberOf(&list.Items[i])
	}
	if visit(t.rollout(members)) {
		return true, nil
	}
	changes, err := t.client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return false, t.need("watch", "to follow the rollout").explain(err)
	}
	return follow(changes, func(cr *unstructured.Unstructured, deleted bool) (bool, error) {
		if deleted {
			delete(members, cr.GetUID())
		} else {
			members[cr.GetUID()] = memberOf(cr)
		}
		return visit(t.rollout(members)), nil
	})
}

func (t target) rollout(members map[types.UID]rolloutMember) rolloutOutput {
	r := summarize(slices.Collect(maps.Values(members)))
	r.Kind, r.Namespace = t.resource().String(), t.namespace
	return r
}

// showRollout prints the rollout of a kind. With --wait, it first waits for the
// verdict.
func (s *session) showRollout(ctx context.Context, t target, w waiting, judge rolloutJudge) (err error) {
	var r rolloutOutput
	var v verdict
	if w.wait {
		r, v, err = s.followRollout(ctx, t, judge, w.timeout)
	} else {
		_, err = t.watchRollout(ctx, func(current rolloutOutput) bool {
			r = current
			return true
		})
	}
	if err != nil {
		return err
	}
	r.Paused = s.pausedOnCRD(ctx, t)
	if err := s.print(r, func() string { return r.table(s.painter()) }); err != nil || !w.wait {
		return err
	}
	return v.err("rollout of " + r.Kind)
}

func (s *session) followRollout(ctx context.Context, t target, judge rolloutJudge, timeout time.Duration) (r rolloutOutput, v verdict, err error) {
	var noted phases
	timedOut, err := retryUntil(ctx, timeout, func(ctx context.Context) (bool, error) {
		return t.watchRollout(ctx, func(current rolloutOutput) bool {
			r = current
			if p := r.Phases; p != noted {
				noted = p
				s.note("%s  %d of %d ready, %d progressing, %d failed, %d waiting, %d held, %d paused",
					time.Now().Format(time.TimeOnly), p.Ready, r.Total, p.Progressing, p.Failed, p.Waiting, p.Held, p.Paused)
			}
			v = judge(r)
			return v.outcome != outcomeOpen
		})
	})
	if timedOut {
		v = verdict{outcomeUnknown, fmt.Sprintf("not finished after %s", timeout)}
	}
	return r, v, err
}
