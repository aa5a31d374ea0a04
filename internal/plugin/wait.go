package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/chartwright/chartwright/internal/api"
)

// reconnectDelay is the delay before a failed read or watch is retried.
const reconnectDelay = time.Second

// await watches a custom resource until the outcome of a request is known, and notes
// each change of the state, starting with the state before the request. After the
// timeout, the outcome is unknown.
func (s *session) await(ctx context.Context, t target, before api.Status, r request, timeout time.Duration) (v verdict, status api.Status, err error) {
	noted := ""
	note := func(text string) {
		if text != noted {
			noted = text
			s.note("%s  %s", time.Now().Format(time.TimeOnly), text)
		}
	}
	note(stateOf(before))
	unchanged := func() bool { return apiequality.Semantic.DeepEqual(before, status) }
	judged := func(ctx context.Context) (bool, error) {
		return t.watch(ctx, func(cr *unstructured.Unstructured) bool {
			if status = statusOf(cr); !unchanged() {
				note(stateOf(status))
			}
			v = r.judge(r.value, cr, status)
			return v.outcome != outcomeOpen
		})
	}
	timedOut, err := retryUntil(ctx, min(timeout, reactionTime), judged)
	if timedOut && unchanged() {
		// The names of the operator's pods and lease depend on the project.
		note("unchanged, no operator has reacted to the request: check that its pods run (kubectl get pods -A -l app.kubernetes.io/component=manager) and that its lease is renewed (kubectl get leases -A)")
	}
	if left := timeout - reactionTime; timedOut && left > 0 {
		timedOut, err = retryUntil(ctx, left, judged)
	}
	if timedOut {
		v = verdict{outcomeUnknown, fmt.Sprintf("timed out after %s; last state: %s", timeout, noted)}
	}
	return v, status, err
}

// reactionTime is the time after which await notes that the status has not changed. An operator
// that runs writes it within seconds after a request.
const reactionTime = 10 * time.Second

// retryUntil calls try until it is done, fails with a permanent error, or the timeout
// has passed. It retries after temporary errors, such as a broken connection.
func retryUntil(ctx context.Context, timeout time.Duration, try func(context.Context) (done bool, err error)) (timedOut bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, reconnectDelay, true, func(ctx context.Context) (bool, error) {
		done, err := try(ctx)
		if err != nil && !permanent(err) {
			return false, nil
		}
		return done, err
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return true, nil
	}
	return false, err
}

// watch calls visit for the current custom resource and after each change, until
// visit returns true or the watch ends.
func (t target) watch(ctx context.Context, visit func(*unstructured.Unstructured) (done bool)) (done bool, err error) {
	cr, err := t.read(ctx)
	if err != nil {
		return false, err
	}
	if visit(cr) {
		return true, nil
	}
	changes, err := t.client.Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", t.name).String(),
		ResourceVersion: cr.GetResourceVersion(),
	})
	if err != nil {
		return false, t.need("watch", "to wait for the outcome").explain(err)
	}
	return follow(changes, func(cr *unstructured.Unstructured, deleted bool) (bool, error) {
		if deleted {
			return false, errDeleted
		}
		return visit(cr), nil
	})
}

// follow calls visit for each change until it is done or the watch ends. The caller
// then reads the current state and watches again.
func follow(changes watch.Interface, visit func(cr *unstructured.Unstructured, deleted bool) (done bool, err error)) (bool, error) {
	defer changes.Stop()
	for event := range changes.ResultChan() {
		cr, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			return false, nil
		}
		if done, err := visit(cr, event.Type == watch.Deleted); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

var errDeleted = errors.New("the custom resource was deleted while waiting")

// permanent reports whether a retry cannot help.
func permanent(err error) bool {
	if errors.Is(err, errDeleted) || isMissingPermission(err) {
		return true
	}
	refused, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	code := refused.ErrStatus.Code
	return code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsResourceExpired(err)
}

// outcome is the outcome of a request.
type outcome string

const (
	outcomeOpen   outcome = ""
	outcomeDone   outcome = "Done"
	outcomeFailed outcome = "Failed"
	// outcomeUnknown: --wait timed out.
	outcomeUnknown outcome = "Unknown"
)

// verdict is the outcome of a request according to the status.
type verdict struct {
	outcome outcome
	message string
}

// err returns the verdict as the error with which the program exits.
func (v verdict) err(subject string) error {
	switch v.outcome {
	case outcomeDone:
		return nil
	case outcomeUnknown:
		return &pendingError{subject + ": " + v.message}
	default:
		return fmt.Errorf("%s: %s", subject, v.message)
	}
}

// judge determines the outcome of a request. value is the value of its annotation.
type judge func(value string, cr *unstructured.Unstructured, status api.Status) verdict

// stateOf returns state and message of a status in one line.
func stateOf(status api.Status) string {
	ready := meta.FindStatusCondition(status.Conditions, api.ConditionReady)
	if ready == nil {
		return noStatus
	}
	return status.State + ": " + ready.Message
}

const (
	deleting = "the custom resource is being deleted"
	noStatus = "no status reported yet"
)

// answeredThen returns a judge that waits until .status.answered repeats the value of
// the request, and then calls next.
func answeredThen(answer func(*api.AnsweredStatus) string, next func(api.Status) verdict) judge {
	return func(value string, cr *unstructured.Unstructured, status api.Status) verdict {
		switch {
		case cr.GetDeletionTimestamp() != nil:
			return verdict{outcomeFailed, deleting}
		case status.Answered != nil && answer(status.Answered) == value:
			return next(status)
		case isPaused(cr):
			return verdict{outcomeFailed, `reconciliation is paused; the request takes effect after "` + commandLine + ` resume"`}
		default:
			return verdict{}
		}
	}
}

// settled returns the verdict for the condition Ready, once the request was answered.
func settled(status api.Status) verdict {
	ready := meta.FindStatusCondition(status.Conditions, api.ConditionReady)
	switch {
	case ready == nil, ready.Status == metav1.ConditionUnknown:
		return verdict{}
	case ready.Status == metav1.ConditionTrue:
		return verdict{outcomeDone, ready.Message}
	case slices.Contains([]string{api.ReasonProgressing, api.ReasonPaused, api.ReasonUninstalling}, ready.Reason):
		return verdict{}
	default:
		return verdict{outcomeFailed, ready.Reason + ": " + ready.Message}
	}
}

// judgeRollback waits until a rollback is refused, has failed, or is ready.
var judgeRollback = answeredThen(rollbackAnswer, func(status api.Status) verdict {
	if refused := trueCondition(status, api.ConditionRollbackRefused); refused != nil {
		return verdict{outcomeFailed, "refused: " + refused.Message}
	}
	v := settled(status)
	if v.outcome == outcomeDone && status.Rollback == nil {
		return verdict{outcomeFailed, "no revision is held: the spec was edited after the request, or another request followed"}
	}
	return v
})

// judgeUnhold waits until the spec is deployed.
var judgeUnhold = answeredThen(rollbackAnswer, settled)

// judgeReconcile waits until all resources are applied and ready.
var judgeReconcile = answeredThen(func(a *api.AnsweredStatus) string { return a.ReconcileRequestedAt }, func(status api.Status) verdict {
	if drifted := meta.FindStatusCondition(status.Conditions, api.ConditionDrifted); drifted != nil && drifted.Reason == api.ReasonRepairFailed {
		return verdict{outcomeFailed, drifted.Reason + ": " + drifted.Message}
	}
	return settled(status)
})

func rollbackAnswer(a *api.AnsweredStatus) string { return a.RollbackTo }

// judgePause waits until the pause is in effect and the running action has finished.
func judgePause(_ string, cr *unstructured.Unstructured, status api.Status) verdict {
	if paused := trueCondition(status, api.ConditionPaused); paused != nil {
		return verdict{outcomeDone, paused.Message}
	}
	if !isPaused(cr) {
		return verdict{outcomeFailed, "another client ended the pause"}
	}
	return verdict{}
}

// judgeResume waits until the operator has done what the pause delayed.
func judgeResume(_ string, cr *unstructured.Unstructured, status api.Status) verdict {
	switch {
	case isPaused(cr):
		return verdict{outcomeFailed, "another client paused the custom resource again"}
	case cr.GetDeletionTimestamp() != nil:
		return verdict{outcomeFailed, deleting}
	case meta.IsStatusConditionTrue(status.Conditions, api.ConditionPaused):
		return verdict{}
	default:
		return settled(status)
	}
}
