package reconcile

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

const wanted = "digest-of-the-spec"

// viewOf returns the snapshot of a custom resource at generation 4 with these
// revisions, newest first, after the changes.
func viewOf(statuses []string, changes ...func(*snapshot)) *snapshot {
	v := &snapshot{Snapshot: status.Snapshot{CR: &unstructured.Unstructured{Object: map[string]any{"kind": "PodSet"}}, Release: releaseOf("web")}}
	v.CR.SetName("web")
	v.CR.SetGeneration(4)
	v.Observation = plan.Observation{Finalizer: true, Desired: wanted}
	for i, status := range statuses {
		v.History = append(v.History, release.Record{
			Namespace: "apps", Release: "web", Revision: len(statuses) - i, Status: status,
			Description: release.Description{
				Chart: "podset", ChartVersion: "1.0.0", AppVersion: "9", Description: "done",
				Deployed: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)),
			},
		})
	}
	if len(statuses) > 0 {
		v.Observation.Newest = &plan.Revision{Number: len(statuses), Status: statuses[0], Digest: wanted, Owned: true, WrittenByUs: true}
	}
	for _, change := range changes {
		change(v)
	}
	return v
}

func withFailure(target plan.TargetKey, reason string, stalled bool) func(*snapshot) {
	return func(v *snapshot) {
		f := status.Failure{Failure: plan.Failure{Target: target}, Reason: reason, Message: "because", Stalled: stalled}
		v.Failure, v.Observation.Failure = &f, &f.Failure
	}
}

// specOf returns the digest of the spec of a custom resource.
func specOf(r *Reconciler, v *snapshot) string {
	spec, _ := r.specAndScale(v)
	return spec
}

func beingDeleted(v *snapshot) { v.Observation.Deleting = true }

func runningStep(step plan.Step) func(*snapshot) {
	return func(v *snapshot) { v.Observation.Running = &plan.Running{Step: step} }
}

// observed changes the observation.
func observed(change func(*plan.Observation)) func(*snapshot) {
	return func(v *snapshot) { change(&v.Observation) }
}

func isHeld(o *plan.Observation) { o.Held = &plan.Held{Revision: 1, Token: "held"} }

func holdExpired(o *plan.Observation) { isHeld(o); o.Held.Expired = true }

func isPaused(o *plan.Observation) { o.Paused = true }

func releaseOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "apps", Name: name}
}

// ofSpec is the target of a release that follows the spec.
var ofSpec = plan.TargetKey{Goal: plan.GoalSpec, Digest: wanted}

// conditionsOf describes each condition of a status.
func conditionsOf(s api.Status) []string {
	all := make([]string, len(s.Conditions))
	for i, c := range s.Conditions {
		all[i] = c.Type + "=" + string(c.Status) + " " + c.Reason
	}
	return all
}
