package health

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is what is known of an object's kind beside the object.
type Kind struct {
	// Rule is the health rule of the watches entry, nil for none.
	Rule *Rule
	// NoStatus reports whether the API server serves no status of a kind, so that
	// no report is waited for; nil means that this is not known.
	NoStatus func(schema.GroupVersionKind) bool
}

// Of returns the health of an object that was read whole.
func Of(o *unstructured.Unstructured, k Kind) Result {
	if o.GetDeletionTimestamp() != nil {
		if expired, ok := expiring(o); ok {
			return expired
		}
		return Result{Reason: reasonTerminating, Message: "it is being deleted"}
	}
	s := subject{object: o.Object, created: o.GetCreationTimestamp().Time, generation: o.GetGeneration()}
	gvk := o.GroupVersionKind()
	gk := gvk.GroupKind()
	s.noStatus = func() bool { return k.NoStatus != nil && k.NoStatus(gvk) }
	switch entry := lookup(gk); {
	case k.Rule != nil:
		return k.Rule.of(s)
	case entry != nil && entry.always:
		return Result{Ready: true}
	case entry != nil:
		return entry.of(s)
	case builtIn(gk):
		return builtInOf(o)
	default:
		return genericOf(s)
	}
}

// subject is an object as the evaluations see it.
type subject struct {
	object     map[string]any
	created    time.Time
	generation int64
	noStatus   func() bool
}

func (s subject) status() any { return s.object["status"] }

// conditions returns the conditions of the status.
func (s subject) conditions() (conditions []condition, read bool) {
	return conditionsOf(at(s.object, "status.conditions"))
}

// silence returns the result of an object that no controller has reported on.
// Expected tells that the kind is known to get reports, whatever the API server
// says of it.
func (s subject) silence(expected bool) (Result, bool) {
	switch {
	case reported(s.status()):
		return Result{}, false
	case !expected && s.noStatus():
		return Result{Ready: true, Silent: true}, true
	default:
		return Result{
			OpenEnded: true, Silent: true, Until: s.created.Add(Grace).Unix(),
			Reason: ReasonNotReported, Message: "its controller has not reported on it yet",
		}, true
	}
}

// behind returns the result of an object whose status is about an older spec.
func (s subject) behind() (Result, bool) {
	observed, known := whole(at(s.object, "status.observedGeneration"))
	if !known || observed >= s.generation {
		return Result{}, false
	}
	return progressing(reasonOutdated, fmt.Sprintf("its controller has seen generation %d of %d", observed, s.generation)), true
}

// required returns why a condition is not True, and false where it is.
func (s subject) required(conditions []condition, kind string) (Result, bool) {
	c, ok := find(conditions, kind)
	switch {
	case !ok:
		return progressing(reasonInProgress, fmt.Sprintf("its controller has not reported the condition %s yet", kind)), true
	case c.outdated(s.generation):
		return progressing(reasonOutdated, fmt.Sprintf("the condition %s is about generation %d of %d", kind, c.generation, s.generation)), true
	case !c.holds("True"):
		return progressing(c.reason, either(c.message, fmt.Sprintf("the condition %s is %s", kind, either(c.status, "empty")))), true
	default:
		return Result{}, false
	}
}

// ready is the result of an object that its controller reports as ready.
func ready() Result { return Result{Ready: true, Reported: true} }
