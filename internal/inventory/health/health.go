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

// Kind is the information about a kind on which the health of its objects depends.
type Kind struct {
	// Rule is the health rule in watches.yaml, or nil.
	Rule *Rule
	// NoStatus reports whether the API server serves no status for a kind, so that no
	// controller can report one. Nil means that this is not known.
	NoStatus func(schema.GroupVersionKind) bool
}

// Evaluate returns the health of an object, which must be complete. The texts of the result
// are limited, because the index keeps them and the object may contain any text.
func Evaluate(o *unstructured.Unstructured, k Kind) Result {
	result := evaluate(o, k)
	result.Reason, result.Message = api.Truncate(result.Reason, maxReason), api.Truncate(result.Message, maxMessage)
	return result
}

func evaluate(o *unstructured.Unstructured, k Kind) Result {
	if o.GetDeletionTimestamp() != nil {
		return cmp.Or(finishedJob(o), Result{Reason: reasonTerminating, Message: "being deleted"})
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

// subject is an object with the information about its kind.
type subject struct {
	*unstructured.Unstructured
	Kind
}

func (s subject) status() any { return s.Object["status"] }

// conditions returns the conditions of the status.
func (s subject) conditions() (conditions []condition, read bool) {
	return conditionsOf(valueAt(s.Object, "status.conditions"))
}

// notReported returns the result of an object on which no controller has reported. If
// expected is true, controllers are known to report on the kind, even if the API server
// serves no status for it.
func (s subject) notReported(expected bool) Result {
	switch {
	case reported(s.status()):
		return Result{}
	case !expected && s.NoStatus != nil && s.NoStatus(s.GroupVersionKind()):
		return Result{Ready: true, Silent: true}
	default:
		return Result{
			OpenEnded: true, Silent: true, Until: s.GetCreationTimestamp().Add(Grace).Unix(),
			Reason: ReasonNotReported, Message: "no status reported by the controller yet",
		}
	}
}

// outdated returns the result of an object whose status is about an older spec.
func (s subject) outdated() Result {
	observed, known := integer(valueAt(s.Object, "status.observedGeneration"))
	if !known || observed >= s.GetGeneration() {
		return Result{}
	}
	return progressing(reasonOutdated, fmt.Sprintf("controller has observed generation %d, want %d", observed, s.GetGeneration()))
}

// required returns the result of an object unless the given condition is True.
func (s subject) required(conditions []condition, kind string) Result {
	c, ok := find(conditions, kind)
	switch {
	case !ok:
		return progressing(reasonInProgress, fmt.Sprintf("condition %s not reported by the controller yet", kind))
	case c.outdated(s.GetGeneration()):
		return progressing(reasonOutdated, fmt.Sprintf("condition %s is for generation %d, want %d", kind, c.generation, s.GetGeneration()))
	case !c.holds("True"):
		return progressing(c.reason, cmp.Or(c.message, fmt.Sprintf("condition %s is %s", kind, cmp.Or(c.status, "empty"))))
	default:
		return Result{}
	}
}

// ready returns the result of an object whose controller reports it as ready.
func ready() Result { return Result{Ready: true, Reported: true} }

// Grace is how long after its creation an object waits for a report. The object may be of a
// kind without a controller.
const Grace = 60 * time.Second

// Reasons that this package sets. Other reasons are copied from the objects.
const (
	// ReasonNotReported means that no controller has written a status yet.
	ReasonNotReported = "NotReported"
	// ReasonSuspended means that the spec or a user has suspended the object.
	ReasonSuspended = "Suspended"
	// ReasonFirstConsumer means that a claim gets its volume when a pod uses it.
	ReasonFirstConsumer = "WaitForFirstConsumer"
	// ReasonOnDelete means that pods are replaced only when a user deletes them.
	ReasonOnDelete = "OnDelete"
	// ReasonRuleNotReady means that the expression ready of a health rule is false,
	// ReasonRuleFailed that failed is true, and ReasonRuleNotEvaluated that ready
	// cannot be evaluated.
	ReasonRuleNotReady     = "RuleNotReady"
	ReasonRuleFailed       = "RuleFailed"
	ReasonRuleNotEvaluated = "RuleNotEvaluated"

	reasonUnreadable  = "Unreadable"
	reasonTerminating = "Terminating"
	reasonOutdated    = "LatestGenerationNotObserved"
	reasonInProgress  = "InProgress"
	reasonFailed      = "Failed"
)

// Result is the health of one object. If neither Ready nor Failed is set, the object is in
// progress. Checks return the zero value if they do not apply.
type Result struct {
	Ready bool
	// Failed means that the object does not become ready without intervention.
	Failed bool
	// OpenEnded means that the object is not ready, but never fails by a timeout: it
	// waits for a user, or its state is not known.
	OpenEnded bool
	// Silent means that no controller has reported on the object. See At.
	Silent bool
	// Reported means that a controller has reported, and is therefore expected to
	// report on other objects of the kind.
	Reported bool
	// Until is the Unix time when an object that is not ready begins to count as ready;
	// 0 means never.
	Until int64
	// Reason is one word, and Message a short text. Both may be empty if the object is
	// ready.
	Reason  string
	Message string
}

// decided reports whether a check applied.
func (r Result) decided() bool { return r != Result{} }

// assumed are the messages of objects that count as ready after Grace, by reason.
var assumed = map[string]string{
	ReasonNotReported:   "assumed ready: no controller reported a status within 60 seconds",
	ReasonFirstConsumer: "assumed ready: the claim gets its volume when a pod uses it",
}

// At resolves the part of a result that depends on the time and on other objects of the
// kind: othersReport is true if a controller has reported on one of them. Next is the time
// at which the result changes by itself, or the zero time.
func (r Result) At(now time.Time, othersReport bool) (at Result, next time.Time) {
	switch until := time.Unix(r.Until, 0); {
	case r.Silent && othersReport:
		return Result{
			OpenEnded: true, Silent: true, Reason: ReasonNotReported,
			Message: "no status reported by the controller yet, although it reports on other objects of this kind",
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

// maxMessage and maxReason limit the texts of one object.
const (
	maxMessage = 512
	maxReason  = 128
)

// progressing returns the result of an object that is not ready yet.
func progressing(reason, message string) Result {
	return Result{Reported: true, Reason: cmp.Or(reason, reasonInProgress), Message: api.Truncate(cmp.Or(message, "in progress"), maxMessage)}
}

// failed returns the result of an object that does not become ready by itself.
func failed(reason, message string) Result {
	return Result{Failed: true, Reported: true, Reason: cmp.Or(reason, reasonFailed), Message: api.Truncate(cmp.Or(message, "failed"), maxMessage)}
}

// suspended returns the result of a suspended object, which counts as ready because its
// spec asks for it.
func suspended(message string) Result {
	return Result{Ready: true, Reason: ReasonSuspended, Message: message}
}
