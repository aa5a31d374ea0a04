package reconcile

import (
	"fmt"
	"time"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// rollback describes the hold, nil where there is none.
func rollback(v *view) *api.RollbackStatus {
	held := v.marks.Held
	if held == nil || v.observation.Held == nil || v.observation.Held.Over {
		return nil
	}
	s := &api.RollbackStatus{To: int64(held.Revision), From: int64(held.From)}
	for _, record := range v.history {
		if record.Written() {
			s.Since = deployedAt(record)
			break
		}
	}
	return s
}

// holds says what the condition Held tells, with an empty message where it is
// not True.
func holds(v *view) (reason, message string) {
	r := rollback(v)
	if r == nil {
		return "", ""
	}
	reason, who := api.ReasonRolledBack, "as the annotation rollback-to asked"
	if v.marks.Held.ByFailure {
		reason, who = api.ReasonRolledBackAfterFailure, "since its upgrade failed again and again"
	}
	since := ""
	if r.Since != nil {
		since = " since " + r.Since.UTC().Format(time.RFC3339)
	}
	message = fmt.Sprintf("Revision %d runs again%s in place of revision %d, %s. It stays until the spec is edited, or %s is set to %q",
		r.To, since, r.From, who, api.AnnotationRollbackTo, "none")
	if v.scaling != "" {
		message += ". " + v.scaling
	}
	return reason, message
}

// pausing says what the condition Paused tells, empty where it is not True.
func pausing(d plan.Decision) string {
	switch {
	case d.State != plan.StatePaused:
		return ""
	case d.Pending == plan.StepWait, d.Pending == "":
		return fmt.Sprintf("Nothing is changed while %s is set; nothing waits to be", api.AnnotationPause)
	default:
		return fmt.Sprintf("Nothing is changed while %s is set; the next step is %s", api.AnnotationPause, d.Pending)
	}
}

// refusalReason tells apart what cannot be understood from what cannot be had.
func refusalReason(v *view) string {
	if v.asks.Rollback != nil && v.asks.Rollback.Malformed() {
		return api.ReasonInvalidValue
	}
	if v.marks.Refused && v.marks.Untrusted {
		return api.ReasonRecordUntrusted
	}
	return api.ReasonNoSuchRevision
}

// tested tells how the tests of the newest revision went, nil where they were
// not run.
func tested(v *view) *release.Tested {
	if len(v.history) == 0 {
		return nil
	}
	return v.history[0].Tested
}
