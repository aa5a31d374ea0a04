package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
)

// reconnectDelay is the time between a broken connection and the next attempt.
const reconnectDelay = time.Second

// await watches a custom resource until there is a verdict, and notes each change
// of its state from the state before. After the timeout the verdict is unknown.
func (s *session) await(ctx context.Context, t target, before api.Status, r request, timeout time.Duration) (v verdict, status api.Status, err error) {
	told := ""
	tell := func(status api.Status) {
		if says := situation(status); says != told {
			told = says
			s.note("%s  %s", time.Now().Format(time.TimeOnly), says)
		}
	}
	tell(before)
	look := func(cr *unstructured.Unstructured) bool {
		status = statusOf(cr)
		tell(status)
		v = r.judge(r.value, cr, status)
		return v.state != endOpen
	}
	late, err := retryUntil(ctx, timeout, func(ctx context.Context) (bool, error) { return t.watch(ctx, look) })
	if late {
		v = verdict{endUnknown, fmt.Sprintf("not known after %s, when it was %s", timeout, told)}
	}
	return v, status, err
}

// retryUntil watches until there is a verdict, a lasting error, or no time left.
// It reconnects broken connections.
func retryUntil(ctx context.Context, timeout time.Duration, try func(context.Context) (enough bool, err error)) (late bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, reconnectDelay, true, func(ctx context.Context) (bool, error) {
		enough, err := try(ctx)
		if err != nil && !lasting(err) {
			return false, nil
		}
		return enough, err
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return true, nil
	}
	return false, err
}

// watch shows a custom resource as it is and each time that it changes, until
// look has seen enough or the watch ends.
func (t target) watch(ctx context.Context, look func(*unstructured.Unstructured) bool) (enough bool, err error) {
	cr, err := t.read(ctx)
	if err != nil {
		return false, err
	}
	if look(cr) {
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
			return false, errGone
		}
		return look(cr), nil
	})
}

// follow calls look for each change until it has seen enough or the watch ends. A
// watch that ends is started again from the current state.
func follow(changes watch.Interface, look func(cr *unstructured.Unstructured, deleted bool) (enough bool, err error)) (bool, error) {
	defer changes.Stop()
	for event := range changes.ResultChan() {
		cr, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			return false, nil
		}
		if enough, err := look(cr, event.Type == watch.Deleted); enough || err != nil {
			return enough, err
		}
	}
	return false, nil
}

var errGone = errors.New("the custom resource was deleted meanwhile")

// lasting reports whether an error would not go away by another attempt.
func lasting(err error) bool {
	if errors.Is(err, errGone) || isMissingPermission(err) {
		return true
	}
	answer, is := errors.AsType[*apierrors.StatusError](err)
	if !is {
		return false
	}
	code := answer.ErrStatus.Code
	return code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsResourceExpired(err)
}

// end is how something ended that was asked for.
type end string

const (
	endOpen   end = ""
	endDone   end = "Done"
	endFailed end = "Failed"
	// endUnknown: --wait timed out.
	endUnknown end = "Unknown"
)

// verdict is the outcome of a request by the status.
type verdict struct {
	state   end
	message string
}

// err is what the program ends with.
func (v verdict) err(what string) error {
	switch v.state {
	case endDone:
		return nil
	case endUnknown:
		return &timeoutError{what + ": " + v.message}
	default:
		return fmt.Errorf("%s: %s", what, v.message)
	}
}

// judge decides how a request ended. value is that of its annotation.
type judge func(value string, cr *unstructured.Unstructured, status api.Status) verdict

// situation is a status in one line.
func situation(status api.Status) string {
	ready := meta.FindStatusCondition(status.Conditions, api.ConditionReady)
	if ready == nil {
		return "nothing is reported yet"
	}
	return status.State + ": " + ready.Message
}

// answeredThen waits until the operator has answered a request, by repeating its
// value, and leaves the verdict to then.
func answeredThen(answer func(*api.AnsweredStatus) string, then func(api.Status) verdict) judge {
	return func(value string, cr *unstructured.Unstructured, status api.Status) verdict {
		switch {
		case cr.GetDeletionTimestamp() != nil:
			return verdict{endFailed, "it is being deleted"}
		case status.Answered != nil && answer(status.Answered) == value:
			return then(status)
		case annotations.Parse(cr.GetAnnotations()).Pause != annotations.PauseNot:
			return verdict{endFailed, `it is paused, and nothing is changed until "kubectl chartwright unpause"; what you asked for is done then`}
		default:
			return verdict{}
		}
	}
}

// settled is the verdict once the operator has done its part: whether what runs
// is ready.
func settled(status api.Status) verdict {
	ready := meta.FindStatusCondition(status.Conditions, api.ConditionReady)
	switch {
	case ready == nil, ready.Status == metav1.ConditionUnknown:
		return verdict{}
	case ready.Status == metav1.ConditionTrue:
		return verdict{endDone, ready.Message}
	case slices.Contains([]string{api.ReasonProgressing, api.ReasonPaused}, ready.Reason):
		return verdict{}
	default:
		return verdict{endFailed, ready.Reason + ": " + ready.Message}
	}
}

// judgeRollback waits for a rollback to be refused, to fail, or to be ready.
var judgeRollback = answeredThen(rollbackAnswer, func(status api.Status) verdict {
	if refused := trueCondition(status, api.ConditionRollbackRefused); refused != nil {
		return verdict{endFailed, "refused: " + refused.Message}
	}
	v := settled(status)
	if v.state == endDone && status.Rollback == nil {
		return verdict{endFailed, "nothing is held: the spec was edited after the request and is followed, or somebody asked for something else"}
	}
	return v
})

// judgeResume waits for what the spec asks for to run.
var judgeResume = answeredThen(rollbackAnswer, settled)

// judgeReconcile waits for everything to be verified.
var judgeReconcile = answeredThen(func(a *api.AnsweredStatus) string { return a.ReconcileRequestedAt }, func(status api.Status) verdict {
	if drifted := meta.FindStatusCondition(status.Conditions, api.ConditionDrifted); drifted != nil && drifted.Reason == api.ReasonRepairFailed {
		return verdict{endFailed, drifted.Reason + ": " + drifted.Message}
	}
	return settled(status)
})

func rollbackAnswer(a *api.AnsweredStatus) string { return a.RollbackTo }

// judgePause waits until nothing is changed any more: what was under way goes
// on to its end.
func judgePause(_ string, cr *unstructured.Unstructured, status api.Status) verdict {
	if paused := trueCondition(status, api.ConditionPaused); paused != nil {
		return verdict{endDone, paused.Message}
	}
	if annotations.Parse(cr.GetAnnotations()).Pause == annotations.PauseNot {
		return verdict{endFailed, "somebody has ended the pause meanwhile"}
	}
	return verdict{}
}

// judgeUnpause waits for what the pause kept from being done.
func judgeUnpause(_ string, cr *unstructured.Unstructured, status api.Status) verdict {
	switch {
	case annotations.Parse(cr.GetAnnotations()).Pause != annotations.PauseNot:
		return verdict{endFailed, "somebody has paused it again"}
	case cr.GetDeletionTimestamp() != nil:
		return verdict{endFailed, "it is being deleted"}
	case meta.IsStatusConditionTrue(status.Conditions, api.ConditionPaused):
		return verdict{}
	default:
		return settled(status)
	}
}
