package dependencies

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/inventory/health"
)

// maxMessage limits the message about one dependency, in bytes.
const maxMessage = 200

// result is the health of an object without what depends on the time.
type result struct {
	health.Result
	// message is the object's own message, "" if it has none.
	message string
}

// readiness returns why an object is not ready, in one line, and when that changes by
// itself. The message is empty if the object is ready.
func (s *Store) readiness(o *object, f *Feed, rule *health.Rule, now time.Time) (message string, next time.Time) {
	if o.GetDeletionTimestamp() != nil {
		return "it is being deleted", time.Time{}
	}
	if f.serves {
		if held := s.heldBecause(o); held != "" {
			return held, time.Time{}
		}
	}
	if refused, is := o.Object.(*refused); is {
		return refused.message, time.Time{}
	}
	whole, ok := o.Object.(*unstructured.Unstructured)
	if !ok {
		// Only the metadata is watched, as of Secrets.
		return "", time.Time{}
	}
	found, known := o.health[rule]
	if !known {
		found = evaluate(whole, rule, f.serves)
		if o.health == nil {
			o.health = map[*health.Rule]result{}
		}
		o.health[rule] = found
	}
	at, next := found.At(now, f.serves)
	if at.Ready {
		return "", time.Time{}
	}
	return oneLine(cmp.Or(found.message, at.Message, at.Reason, "not ready")), next
}

// evaluate returns the health of an object.
func evaluate(o *unstructured.Unstructured, rule *health.Rule, served bool) result {
	notReady := func(message string) result { return result{Result: health.Result{Message: message}} }
	status, err := statusOf(o)
	if err != nil {
		return notReady(fmt.Sprintf("cannot read the status: %v", err))
	}
	if observed, found, err := unstructured.NestedInt64(status, "observedGeneration"); err == nil && found && observed < o.GetGeneration() {
		return notReady(fmt.Sprintf("the status is about generation %d, want %d", observed, o.GetGeneration()))
	}
	isReady, message := readyCondition(status)
	if served && rule == nil {
		// The status has the conditions of this operator, whatever controller the group and
		// kind belong to in package health.
		return result{Result: health.Result{Ready: isReady, Message: "no condition Ready yet"}, message: message}
	}
	object := o.Object
	if customresource.Packed(o) {
		content, err := customresource.Expand(o)
		switch {
		case errors.Is(err, customresource.ErrPartial):
			content = customresource.Metadata(o)
		case err != nil:
			return notReady(err.Error())
		}
		object = maps.Clone(content)
		if status != nil {
			object["status"] = status
		}
	}
	return result{health.Evaluate(&unstructured.Unstructured{Object: object}, health.Kind{Rule: rule}), message}
}

// statusOf returns the status of an object, which may be packed.
func statusOf(o *unstructured.Unstructured) (map[string]any, error) {
	if !customresource.Packed(o) {
		status, _ := o.Object["status"].(map[string]any)
		return status, nil
	}
	text, _ := o.Object["status"].(string)
	if text == "" {
		return nil, nil
	}
	var status map[string]any
	err := utiljson.Unmarshal([]byte(text), &status)
	return status, err
}

// readyCondition reports whether the condition Ready is True, and returns its message if it
// is not.
func readyCondition(status map[string]any) (isReady bool, message string) {
	conditions, _ := status["conditions"].([]any)
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["type"] != api.ConditionReady {
			continue
		}
		if condition["status"] == "True" {
			return true, ""
		}
		message, _ = condition["message"].(string)
		return false, message
	}
	return false, ""
}

// oneLine returns a message in one line of limited length.
func oneLine(message string) string {
	return api.Truncate(strings.Join(strings.Fields(message), " "), maxMessage)
}
