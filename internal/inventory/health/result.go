package health

import "time"

// Grace is how long after its creation an object waits for a controller that
// may not exist.
const Grace = 60 * time.Second

// Reasons that this package gives; others come from the objects.
const (
	// ReasonNotReported: no controller has written a status yet.
	ReasonNotReported = "NotReported"
	// ReasonSuspended: the spec, or a person, keeps the object from progressing.
	ReasonSuspended = "Suspended"
	// ReasonFirstConsumer: a claim gets its volume when a pod uses it.
	ReasonFirstConsumer = "WaitForFirstConsumer"
	// ReasonOnDelete: pods are replaced when a person deletes them.
	ReasonOnDelete = "OnDelete"
	// The reasons of health rules: ready is false, failed is true, or ready cannot
	// be evaluated.
	ReasonRuleNotReady     = "RuleNotReady"
	ReasonRuleFailed       = "RuleFailed"
	ReasonRuleNotEvaluated = "RuleNotEvaluated"

	reasonUnreadable  = "Unreadable"
	reasonTerminating = "Terminating"
	reasonOutdated    = "LatestGenerationNotObserved"
	reasonInProgress  = "InProgress"
	reasonFailed      = "Failed"
)

// Result is the health of one object. Neither Ready nor Failed means that the
// object is in progress.
type Result struct {
	Ready bool
	// Failed: the object does not become ready without intervention.
	Failed bool
	// OpenEnded: the object is not ready, and that is no failure however long it
	// lasts: a person is waited for, or its state is not known.
	OpenEnded bool
	// Silent: no controller has reported on the object. See At.
	Silent bool
	// Reported: a controller has reported, so that other objects of the kind
	// can be expected to get a report, too.
	Reported bool
	// Until is when an object that is not ready counts as ready all the same, in
	// Unix seconds; 0 means never.
	Until int64
	// Reason is one word and Message a sentence. Both are empty where there is
	// nothing to add to Ready.
	Reason  string
	Message string
}

// assumed are the messages of objects that count as ready after their grace
// period, by reason.
var assumed = map[string]string{
	ReasonNotReported:   "it counts as ready: no controller has reported on it within 60 seconds",
	ReasonFirstConsumer: "it counts as ready: it gets its volume when the first pod uses it",
}

// At resolves what depends on the time and on other objects of the kind.
// OthersReport tells that a controller has reported on one of them. Next is when
// the answer changes by itself, the zero time for never.
func (r Result) At(now time.Time, othersReport bool) (at Result, next time.Time) {
	switch until := time.Unix(r.Until, 0); {
	case r.Silent && othersReport:
		return Result{
			OpenEnded: true, Silent: true, Reason: ReasonNotReported,
			Message: "its controller has not reported on it yet, and does so on other objects of the kind",
		}, time.Time{}
	case r.Ready || r.Until == 0:
		return r, time.Time{}
	case now.Before(until):
		return r, until
	default:
		r.Ready, r.OpenEnded, r.Message = true, false, assumed[r.Reason]
		return r, time.Time{}
	}
}

// maxMessage bounds the message of one object, which is kept in memory.
const maxMessage = 512

// progressing returns the result of an object that is not ready yet.
func progressing(reason, message string) Result {
	return Result{Reported: true, Reason: either(reason, reasonInProgress), Message: bounded(either(message, "it is in progress"))}
}

// failed returns the result of an object that does not become ready by itself.
func failed(reason, message string) Result {
	return Result{Failed: true, Reported: true, Reason: either(reason, reasonFailed), Message: bounded(either(message, "it has failed"))}
}

// suspended returns the result of an object that is kept from progressing, and
// counts as ready: it is as its spec asks.
func suspended(message string) Result {
	return Result{Ready: true, Reason: ReasonSuspended, Message: message}
}

func either(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// bounded cuts a message, and copies it so that the object it comes from can be
// freed.
func bounded(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	cut := maxMessage
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return string([]byte(text[:cut])) + "…"
}
