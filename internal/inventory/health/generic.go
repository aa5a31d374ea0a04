package health

import (
	"fmt"
	"slices"
	"strings"
)

// conditions that say, of a kind without the condition Ready, that it is not
// ready.
var (
	negative = []string{"NotReady", "Degraded"}
	positive = []string{"Available", "Healthy", "Synced", "Established", "Installed", "Programmed", "Accepted"}
)

// words that a phase or a state has while an object is not ready. They are
// compared without regard to case.
var (
	failures = []string{"failed", "failure"}
	pending  = []string{
		"pending", "creating", "provisioning", "initializing", "installing", "starting", "updating",
		"upgrading", "progressing", "reconciling", "inprogress", "applyingchanges", "error", "degraded", "notready", "unhealthy",
	}
)

// genericOf returns the health of an object of a kind of which nothing is known
// beside the conventions of Kubernetes.
func genericOf(s subject) Result {
	if r, silent := s.silence(false); silent {
		return r
	}
	if r, behind := s.behind(); behind {
		return r
	}
	conditions, read := s.conditions()
	for _, kind := range []string{"Stalled", "Failed"} {
		if c, ok := find(conditions, kind); ok && c.holds("True") && !c.outdated(s.generation) {
			return failed(either(c.reason, kind), c.message)
		}
	}
	if c, ok := find(conditions, "Reconciling"); ok && c.holds("True") {
		return progressing(c.reason, c.message)
	}
	if _, ok := find(conditions, "Ready"); ok {
		if r, not := s.required(conditions, "Ready"); not {
			return r
		}
		return ready()
	}
	if r, not := s.unready(conditions); not {
		return r
	}
	if r, known := s.word(); known {
		return r
	}
	r := ready()
	if !read {
		r.Message = "it counts as ready: its status has conditions that cannot be read"
	}
	return r
}

// unready looks for conditions by which kinds without a condition Ready report.
func (s subject) unready(conditions []condition) (Result, bool) {
	for _, c := range conditions {
		switch {
		case slices.Contains(negative, c.kind) && c.holds("True"):
			return progressing(either(c.reason, c.kind), either(c.message, fmt.Sprintf("the condition %s is True", c.kind))), true
		case slices.Contains(positive, c.kind):
			if r, not := s.required([]condition{c}, c.kind); not {
				return r, true
			}
		}
	}
	return Result{}, false
}

// word looks for a phase or a state that says that the object is not ready.
func (s subject) word() (Result, bool) {
	for _, field := range []string{"phase", "state"} {
		word, ok := at(s.object, "status."+field).(string)
		if !ok {
			continue
		}
		message := either(text(at(s.object, "status.message")), fmt.Sprintf("its %s is %s", field, bounded(word)))
		switch lower := strings.ToLower(word); {
		case slices.Contains(failures, lower):
			return failed(reasonFailed, message), true
		case slices.Contains(pending, lower):
			return progressing(word, message), true
		}
	}
	return Result{}, false
}
