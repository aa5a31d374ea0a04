package health

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
)

// Kind is what is known of an object's kind beside the object.
type Kind struct {
	// Rule is the health rule of the watches entry, nil for none.
	Rule *Rule
	// NoStatus reports whether the API server serves no status of a kind, so that
	// no report is waited for; nil means that this is not known.
	NoStatus func(schema.GroupVersionKind) bool
}

// Evaluate returns the health of an object that was read whole.
func Evaluate(o *unstructured.Unstructured, k Kind) Result {
	if o.GetDeletionTimestamp() != nil {
		return cmp.Or(finishedJob(o), Result{Reason: reasonTerminating, Message: "it is being deleted"})
	}
	s := subject{o, k}
	switch entry := lookup(o.GroupVersionKind().GroupKind()); {
	case k.Rule != nil:
		return k.Rule.evaluate(s)
	case entry != nil && entry.always:
		return Result{Ready: true}
	case entry != nil:
		return entry.evaluate(s)
	case status.GetLegacyConditionsFn(o) != nil:
		return evaluateBuiltIn(o)
	default:
		return evaluateGeneric(s)
	}
}

// subject is an object with what is known of its kind.
type subject struct {
	*unstructured.Unstructured
	Kind
}

func (s subject) status() any { return s.Object["status"] }

// conditions returns the conditions of the status.
func (s subject) conditions() (conditions []condition, read bool) {
	return conditionsOf(valueAt(s.Object, "status.conditions"))
}

// notReported returns the result of an object that no controller has reported on.
// If expected is true, controllers report on the kind, whatever the API server
// says about its status.
func (s subject) notReported(expected bool) Result {
	switch {
	case reported(s.status()):
		return Result{}
	case !expected && s.NoStatus != nil && s.NoStatus(s.GroupVersionKind()):
		return Result{Ready: true, Silent: true}
	default:
		return Result{
			OpenEnded: true, Silent: true, Until: s.GetCreationTimestamp().Add(Grace).Unix(),
			Reason: ReasonNotReported, Message: "its controller has not reported on it yet",
		}
	}
}

// outdated returns the result of an object whose status is about an older spec.
func (s subject) outdated() Result {
	observed, known := integer(valueAt(s.Object, "status.observedGeneration"))
	if !known || observed >= s.GetGeneration() {
		return Result{}
	}
	return progressing(reasonOutdated, fmt.Sprintf("its controller has seen generation %d of %d", observed, s.GetGeneration()))
}

// required returns the result of an object for which a condition is not True.
func (s subject) required(conditions []condition, kind string) Result {
	c, ok := find(conditions, kind)
	switch {
	case !ok:
		return progressing(reasonInProgress, fmt.Sprintf("its controller has not reported the condition %s yet", kind))
	case c.outdated(s.GetGeneration()):
		return progressing(reasonOutdated, fmt.Sprintf("the condition %s is about generation %d of %d", kind, c.generation, s.GetGeneration()))
	case !c.holds("True"):
		return progressing(c.reason, cmp.Or(c.message, fmt.Sprintf("the condition %s is %s", kind, cmp.Or(c.status, "empty"))))
	default:
		return Result{}
	}
}

// ready is the result of an object that its controller reports as ready.
func ready() Result { return Result{Ready: true, Reported: true} }

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
// object is in progress. Checks return the zero value if they do not apply.
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

// decided reports whether a check applied.
func (r Result) decided() bool { return r != Result{} }

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
	return Result{Reported: true, Reason: cmp.Or(reason, reasonInProgress), Message: api.Truncate(cmp.Or(message, "it is in progress"), maxMessage)}
}

// failed returns the result of an object that does not become ready by itself.
func failed(reason, message string) Result {
	return Result{Failed: true, Reported: true, Reason: cmp.Or(reason, reasonFailed), Message: api.Truncate(cmp.Or(message, "it has failed"), maxMessage)}
}

// suspended returns the result of an object that is kept from progressing, and
// counts as ready: it is as its spec asks.
func suspended(message string) Result {
	return Result{Ready: true, Reason: ReasonSuspended, Message: message}
}
