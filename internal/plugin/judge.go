package plugin

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
)

// end is how something ended that was asked for.
type end string

const (
	endOpen   end = ""
	endDone   end = "Done"
	endFailed end = "Failed"
	// endUnknown: nobody waits any longer.
	endUnknown end = "Unknown"
)

// verdict is what a status says of something that was asked for.
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

// judge looks at a custom resource for how it ended.
type judge func(cr *unstructured.Unstructured, status api.Status) verdict

// situation is a status in one line.
func situation(status api.Status) string {
	ready := meta.FindStatusCondition(status.Conditions, api.ConditionReady)
	if ready == nil {
		return "nothing is reported yet"
	}
	return status.State + ": " + ready.Message
}

// answeredThen waits until the operator has answered, by the value that it
// repeats, and leaves the verdict to then.
func answeredThen(answer func(*api.AnsweredStatus) string, value string, then func(api.Status) verdict) judge {
	return func(cr *unstructured.Unstructured, status api.Status) verdict {
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
func judgeRollback(value string) judge {
	return answeredThen(rollbackAnswer, value, func(status api.Status) verdict {
		if refused := meta.FindStatusCondition(status.Conditions, api.ConditionRollbackRefused); refused != nil && refused.Status == metav1.ConditionTrue {
			return verdict{endFailed, "refused: " + refused.Message}
		}
		v := settled(status)
		if v.state == endDone && status.Rollback == nil {
			return verdict{endFailed, "nothing is held: the spec was edited after the request and is followed, or somebody asked for something else"}
		}
		return v
	})
}

// judgeResume waits for what the spec asks for to run.
func judgeResume(value string) judge { return answeredThen(rollbackAnswer, value, settled) }

// judgeReconcile waits for everything to be verified.
func judgeReconcile(value string) judge {
	return answeredThen(func(a *api.AnsweredStatus) string { return a.ReconcileRequestedAt }, value, func(status api.Status) verdict {
		if drifted := meta.FindStatusCondition(status.Conditions, api.ConditionDrifted); drifted != nil && drifted.Reason == api.ReasonRepairFailed {
			return verdict{endFailed, drifted.Reason + ": " + drifted.Message}
		}
		return settled(status)
	})
}

func rollbackAnswer(a *api.AnsweredStatus) string { return a.RollbackTo }

// judgePause waits until nothing is changed any more: what was under way goes
// on to its end.
func judgePause(cr *unstructured.Unstructured, status api.Status) verdict {
	if paused := meta.FindStatusCondition(status.Conditions, api.ConditionPaused); paused != nil && paused.Status == metav1.ConditionTrue {
		return verdict{endDone, paused.Message}
	}
	if annotations.Parse(cr.GetAnnotations()).Pause == annotations.PauseNot {
		return verdict{endFailed, "somebody has ended the pause meanwhile"}
	}
	return verdict{}
}

// judgeUnpause waits for what the pause kept from being done.
func judgeUnpause(cr *unstructured.Unstructured, status api.Status) verdict {
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
