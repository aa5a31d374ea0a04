package health

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
)

// condition is the readable part of a condition.
type condition struct {
	kind    string
	status  string
	reason  string
	message string
	// generation is the observedGeneration of the condition, valid if known is true.
	generation int64
	known      bool
}

// holds reports whether the condition has the given status: True, False or Unknown.
func (c condition) holds(status string) bool { return strings.EqualFold(c.status, status) }

// outdated reports whether the condition is about an older spec.
func (c condition) outdated(generation int64) bool { return c.known && c.generation < generation }

// conditionsOf reads conditions from a list of maps or from a map by type, which some
// controllers write. It skips everything else. It returns false if there is content of
// which nothing can be read.
func conditionsOf(value any) (conditions []condition, read bool) {
	switch v := value.(type) {
	case nil:
		return nil, true
	case []any:
		for _, item := range v {
			fields, ok := item.(map[string]any)
			if !ok {
				continue
			}
			if kind := scalar(fields["type"]); kind != "" && !placeholder(fields) {
				conditions = append(conditions, conditionOf(kind, fields))
			}
		}
		return conditions, len(conditions) > 0 || !filled(v)
	case map[string]any:
		for kind, item := range v {
			switch fields := item.(type) {
			case map[string]any:
				conditions = append(conditions, conditionOf(kind, fields))
			case string, bool:
				conditions = append(conditions, condition{kind: kind, status: scalar(fields)})
			}
		}
		return conditions, len(conditions) > 0 || len(v) == 0
	default:
		return nil, false
	}
}

func conditionOf(kind string, fields map[string]any) condition {
	c := condition{kind: kind, status: scalar(fields["status"]), reason: scalar(fields["reason"]), message: scalar(fields["message"])}
	c.generation, c.known = integer(fields["observedGeneration"])
	return c
}

// find returns the condition of a type.
func find(conditions []condition, kind string) (condition, bool) {
	for _, c := range conditions {
		if c.kind == kind {
			return c, true
		}
	}
	return condition{}, false
}

// never is the lastTransitionTime of conditions that are defaults of the CRD, as in the
// Gateway API. No controller has written them.
const never = "1970-01-01T00:00:00Z"

// placeholder reports whether a condition is a default of the CRD.
func placeholder(fields map[string]any) bool {
	return scalar(fields["lastTransitionTime"]) == never && strings.EqualFold(scalar(fields["status"]), "Unknown")
}

// reported reports whether a controller has written a status. Defaults of the CRD do not
// count.
func reported(status any) bool {
	fields, ok := status.(map[string]any)
	if !ok {
		return filled(status)
	}
	for key, value := range fields {
		if key == "observedGeneration" {
			// Some CRDs default it to -1.
			if generation, isWhole := integer(value); isWhole && generation <= 0 {
				continue
			}
		}
		if filled(value) {
			return true
		}
	}
	return false
}

// filled reports whether a value is neither empty nor zero.
func filled(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case []any:
		return slices.ContainsFunc(v, func(item any) bool {
			fields, ok := item.(map[string]any)
			return filled(item) && (!ok || !placeholder(fields))
		})
	case map[string]any:
		for _, item := range v {
			if filled(item) {
				return true
			}
		}
		return false
	case int64:
		return v != 0
	case float64:
		return v != 0
	default:
		return true
	}
}

// scalar returns a string, boolean or number as a string, and "" for other values.
func scalar(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64, float64:
		return fmt.Sprint(v)
	default:
		return ""
	}
}

// integer returns a whole number. Some controllers write numbers as strings.
func integer(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			return 0, false
		}
		return int64(v), true
	case string:
		number, err := strconv.ParseInt(v, 10, 64)
		return number, err == nil
	default:
		return 0, false
	}
}

// valueAt returns the value of a path such as status.phase, or nil.
func valueAt(object map[string]any, path string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
	return value
}

// Types of conditions that show whether an object without the condition Ready is ready: the
// negative ones must not be True, the positive ones must be.
var (
	negative = []string{"NotReady", "Degraded"}
	positive = []string{"Available", "Healthy", "Synced", "Established", "Installed", "Programmed", "Accepted"}
)

// Values of status.phase and status.state, in lower case, of objects that have failed or
// are not ready yet.
var (
	failures = []string{"failed", "failure"}
	pending  = []string{
		"pending", "creating", "provisioning", "initializing", "installing", "starting", "updating",
		"upgrading", "progressing", "reconciling", "inprogress", "applyingchanges", "error", "degraded", "notready", "unhealthy",
	}
)

// evaluateGeneric returns the health of an object of an unknown kind by the conventions of
// Kubernetes.
func evaluateGeneric(s subject) Result {
	if r := cmp.Or(s.notReported(false), s.outdated()); r.decided() {
		return r
	}
	conditions, read := s.conditions()
	for _, kind := range []string{"Stalled", "Failed"} {
		if c, ok := find(conditions, kind); ok && c.holds("True") && !c.outdated(s.GetGeneration()) {
			return failed(cmp.Or(c.reason, kind), c.message)
		}
	}
	if c, ok := find(conditions, "Reconciling"); ok && c.holds("True") {
		return progressing(c.reason, c.message)
	}
	if _, ok := find(conditions, "Ready"); ok {
		return cmp.Or(s.required(conditions, "Ready"), ready())
	}
	r := ready()
	if !read {
		r.Message = "assumed ready: cannot read the conditions in the status"
	}
	return cmp.Or(s.unready(conditions), s.word(), r)
}

// unready returns the result of an object with a condition that shows that it is not ready.
func (s subject) unready(conditions []condition) Result {
	for _, c := range conditions {
		switch {
		case slices.Contains(negative, c.kind) && c.holds("True"):
			return progressing(cmp.Or(c.reason, c.kind), cmp.Or(c.message, fmt.Sprintf("condition %s is True", c.kind)))
		case slices.Contains(positive, c.kind):
			if r := s.required([]condition{c}, c.kind); r.decided() {
				return r
			}
		}
	}
	return Result{}
}

// word returns the result of an object whose phase or state shows that it is not ready.
func (s subject) word() Result {
	for _, field := range []string{"phase", "state"} {
		word, ok := valueAt(s.Object, "status."+field).(string)
		if !ok {
			continue
		}
		message := cmp.Or(scalar(valueAt(s.Object, "status.message")), fmt.Sprintf("status.%s is %s", field, api.Truncate(word, maxMessage)))
		switch lower := strings.ToLower(word); {
		case slices.Contains(failures, lower):
			return failed(reasonFailed, message)
		case slices.Contains(pending, lower):
			return progressing(word, message)
		}
	}
	return Result{}
}
