package harness

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chartwright/chartwright/internal/api"
)

// StatusOf decodes the status of a custom resource.
func StatusOf(cr *unstructured.Unstructured) (api.Status, error) {
	var decoded struct {
		Status api.Status `json:"status"`
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(cr.Object, &decoded)
	return decoded.Status, err
}

// Status reads the status of a custom resource.
func (e *Env) Status(cr *unstructured.Unstructured) api.Status {
	e.t.Helper()
	status, err := StatusOf(e.Get(cr))
	e.must(err)
	return status
}

// Condition returns a condition of a status, or nil.
func Condition(status api.Status, kind string) *metav1.Condition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}

// WaitStatus waits until the status has observed the current spec and check
// returns nil, and returns the status.
func (e *Env) WaitStatus(cr *unstructured.Unstructured, what string, check func(api.Status) error) api.Status {
	e.t.Helper()
	var status api.Status
	e.Wait(named(cr)+" to be "+what, func(ctx context.Context) error {
		live, err := e.in(cr.GroupVersionKind()).Get(ctx, cr.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if status, err = StatusOf(live); err != nil {
			return err
		}
		if status.ObservedGeneration != live.GetGeneration() {
			return fmt.Errorf("generation %d is not observed: %s", live.GetGeneration(), pretty(live.Object["status"]))
		}
		if err := check(status); err != nil {
			return fmt.Errorf("%w: %s", err, pretty(live.Object["status"]))
		}
		return nil
	})
	return status
}

// WaitReady waits until custom resources are Ready with their current spec. It
// returns the status of the last one.
func (e *Env) WaitReady(crs ...*unstructured.Unstructured) (status api.Status) {
	e.t.Helper()
	for _, cr := range crs {
		status = e.WaitCondition(cr, "Ready", metav1.ConditionTrue, "Deployed")
	}
	return status
}

// WaitRevision waits until a custom resource is Ready at a revision.
func (e *Env) WaitRevision(cr *unstructured.Unstructured, revision int64) api.Status {
	e.t.Helper()
	return e.WaitStatus(cr, fmt.Sprintf("at revision %d", revision), func(status api.Status) error {
		ready := Condition(status, "Ready")
		if ready == nil || ready.Status != metav1.ConditionTrue || status.Release == nil || status.Release.Revision != revision {
			return fmt.Errorf("not Ready at revision %d", revision)
		}
		return nil
	})
}

// WaitCondition waits until a condition has a status and a reason.
func (e *Env) WaitCondition(cr *unstructured.Unstructured, kind string, state metav1.ConditionStatus, reason string) api.Status {
	e.t.Helper()
	what := fmt.Sprintf("%s=%s because %s", kind, state, reason)
	return e.WaitStatus(cr, what, func(status api.Status) error {
		if c := Condition(status, kind); c == nil || c.Status != state || c.Reason != reason {
			return fmt.Errorf("not %s", what)
		}
		return nil
	})
}
