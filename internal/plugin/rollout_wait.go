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

// rolloutJudge decides how a rollout ended.
type rolloutJudge func(rollout) verdict

// rolledOut waits for a rollout to come to its end, or to a stop.
func rolledOut(r rollout) verdict {
	if r.Phases.Progressing == 0 && r.Phases.Waiting > 0 && r.because(api.ReasonRolloutPaused) {
		return verdict{endFailed, fmt.Sprintf(`it is paused, and %d wait; "%s rollout resume" lets them go on`, r.Phases.Waiting, shown)}
	}
	return resumed(r)
}

// resumed is rolledOut while some may not have observed the end of the pause.
func resumed(r rollout) verdict {
	switch {
	case r.Phases.Progressing > 0:
		return verdict{}
	case r.Phases.Waiting > 0 && r.because(api.ReasonRolloutStopped) && !r.because(api.ReasonWaiting):
		// By then all have reported, including the one that failed.
		return verdict{endFailed, fmt.Sprintf("it has stopped: %d failed, and %d wait", r.Phases.Failed, r.Phases.Waiting)}
	case r.Phases.Waiting > 0:
		return verdict{}
	case r.Phases.Failed > 0:
		return verdict{endFailed, fmt.Sprintf("none waits, and %d failed", r.Phases.Failed)}
	default:
		return verdict{endDone, "none waits for a chart"}
	}
}

// reached is a judge that does not take for the end what may be the time before
// an operator with a new chart begins: all that may have it run that version.
func reached(version string, judge rolloutJudge) rolloutJudge {
	return func(r rollout) verdict {
		v := judge(r)
		if v.state != endDone {
			return v
		}
		for _, m := range r.Resources {
			if m.Version != version && m.Phase != phaseHeld && m.Phase != phasePaused {
				return verdict{}
			}
		}
		return verdict{endDone, "all run " + version}
	}
}

// pauseInEffect waits until nothing is under way, and all that wait report the
// pause.
func pauseInEffect(r rollout) verdict {
	if r.Phases.Progressing > 0 || r.because(api.ReasonWaiting) {
		return verdict{}
	}
	return verdict{endDone, "paused, and nothing is under way"}
}

// watchRollout calls look with the rollout as it is and after each change, until look has
// seen enough or the watch ends.
func (t target) watchRollout(ctx context.Context, look func(rollout) bool) (enough bool, err error) {
	list, err := t.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, t.need("list", "to see the rollout").explain(err)
	}
	members := map[types.UID]rolloutMember{}
	for i := range list.Items {
		members[list.Items[i].GetUID()] = member(&list.Items[i])
	}
	if look(t.rollout(members)) {
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
			members[cr.GetUID()] = member(cr)
		}
		return look(t.rollout(members)), nil
	})
}

func (t target) rollout(members map[types.UID]rolloutMember) rollout {
	r := count(slices.Collect(maps.Values(members)))
	r.Kind, r.Namespace = t.resource().String(), t.namespace
	return r
}

// showRollout prints the rollout of a kind, with --wait after the verdict.
func (s *session) showRollout(ctx context.Context, t target, w waiting, judge rolloutJudge) (err error) {
	var r rollout
	var v verdict
	if w.wait {
		r, v, err = s.followRollout(ctx, t, judge, w.timeout)
	} else {
		_, err = t.watchRollout(ctx, func(now rollout) bool {
			r = now
			return true
		})
	}
	if err != nil {
		return err
	}
	r.Paused = s.pausedKind(ctx, t)
	if err := s.print(r, func() string { return r.table(s.painter()) }); err != nil || !w.wait {
		return err
	}
	return v.err("the rollout of " + r.Kind)
}

func (s *session) followRollout(ctx context.Context, t target, judge rolloutJudge, timeout time.Duration) (r rollout, v verdict, err error) {
	var noted phases
	look := func(now rollout) bool {
		r = now
		if p := r.Phases; p != noted {
			noted = p
			s.note("%s  %d of %d ready, %d progressing, %d failed, %d waiting, %d held, %d paused",
				time.Now().Format(time.TimeOnly), p.Ready, r.Total, p.Progressing, p.Failed, p.Waiting, p.Held, p.Paused)
		}
		v = judge(r)
		return v.state != endOpen
	}
	late, err := retryUntil(ctx, timeout, func(ctx context.Context) (bool, error) { return t.watchRollout(ctx, look) })
	if late {
		v = verdict{endUnknown, fmt.Sprintf("not at its end after %s", timeout)}
	}
	return r, v, err
}
