package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
)

// entry is an entry in the table of well-known kinds. It describes the fields that their
// controllers set. An object is ready if all of these fields match.
type entry struct {
	// product is the name of the product in the documentation.
	product string
	// group is the API group. "*.example.com" matches every subdomain.
	group string
	// kinds are the kinds of the group; an empty list matches all.
	kinds []string

	// always means that an object is ready as soon as it is stored. Only the metadata of
	// such kinds is watched.
	always bool
	// stored is a field of the spec: an object with this value is ready as soon as it is
	// stored.
	stored *field
	// suspended are fields, and paused are conditions, of a suspended object.
	suspended []field
	paused    []conditionMatch

	// ready are conditions that must be True; notFalse are conditions that must not be
	// False.
	ready    []string
	notFalse []string
	// failed are conditions of a failed object.
	failed []conditionMatch
	// words are string fields that describe the state of the object.
	words []word
	// equal are pairs of a field of the spec and a field of the status that must have the
	// same number.
	equal [][2]string
	// set are fields that must not be empty.
	set []string
	// each is a list in the status whose items have conditions. It must have at least one
	// item, and ready must hold for all items.
	each string
}

// field is a field with a value.
type field struct{ path, value string }

// conditionMatch matches a condition by its type, its status and, if not empty, its reason.
type conditionMatch struct{ kind, status, reason string }

// word is a string field of the status. An object whose value is in no list is in progress.
type word struct {
	path string
	// ready, failed and waiting are the values of an object that is ready, has failed,
	// or waits for a user.
	ready, failed, waiting []string
	// message is the field with an explanation.
	message string
}

// lookup returns the first entry for a kind, or nil.
func lookup(gk schema.GroupKind) *entry {
	for _, i := range byGroup()[gk.Group] {
		if table[i].has(gk.Kind) {
			return &table[i]
		}
	}
	// Entries for all subdomains come last.
	for i := range table {
		if below, ok := strings.CutPrefix(table[i].group, "*"); ok && strings.HasSuffix(gk.Group, below) && table[i].has(gk.Kind) {
			return &table[i]
		}
	}
	return nil
}

func (e *entry) has(kind string) bool { return len(e.kinds) == 0 || slices.Contains(e.kinds, kind) }

// AlwaysReady reports whether objects of a kind are ready as soon as they are stored. Only
// the metadata of such kinds needs a watch.
func AlwaysReady(gk schema.GroupKind) bool {
	e := lookup(gk)
	return e != nil && e.always
}

// evaluate returns the health of an object of the kinds of the entry.
func (e *entry) evaluate(s subject) Result {
	if r := e.kept(s); r.decided() {
		r.Reported = reported(s.status())
		return r
	}
	if r := cmp.Or(s.notReported(true), s.outdated()); r.decided() {
		return r
	}
	if e.each != "" {
		return e.evaluateEach(s)
	}
	conditions, _ := s.conditions()
	waits := e.unready(s, conditions)
	// An object whose conditions are ready may have failed otherwise: a certificate is
	// still valid while its renewal fails.
	return cmp.Or(e.worse(s, conditions, waits.decided() || len(e.ready) == 0), waits, e.compare(s))
}

// kept returns the result of an object that is ready or suspended without a report.
func (e *entry) kept(s subject) Result {
	if e.stored != nil && strings.EqualFold(scalar(valueAt(s.Object, e.stored.path)), e.stored.value) {
		return Result{Ready: true}
	}
	for _, f := range e.suspended {
		if strings.EqualFold(scalar(valueAt(s.Object, f.path)), f.value) {
			return suspended(fmt.Sprintf("suspended by %s: %s", f.path, f.value))
		}
	}
	conditions, _ := s.conditions()
	if c, ok := match(s, conditions, e.paused); ok {
		return suspended(api.Truncate(cmp.Or(c.message, "paused"), maxMessage))
	}
	return Result{}
}

// worse returns the result of an object that has failed or waits for a user.
func (e *entry) worse(s subject, conditions []condition, unready bool) Result {
	if c, ok := match(s, conditions, e.failed); ok && unready {
		return failed(cmp.Or(c.reason, c.kind), c.message)
	}
	for _, w := range e.words {
		word := scalar(valueAt(s.Object, w.path))
		message := cmp.Or(scalar(valueAt(s.Object, w.message)), fmt.Sprintf("%s is %s", w.path, api.Truncate(word, maxMessage)))
		switch {
		case oneOf(word, w.failed):
			return failed(reasonFailed, message)
		case oneOf(word, w.waiting):
			return Result{OpenEnded: true, Reported: true, Reason: ReasonSuspended, Message: api.Truncate(message, maxMessage)}
		}
	}
	return Result{}
}

// unready returns the result of an object whose conditions do not match.
func (e *entry) unready(s subject, conditions []condition) Result {
	for _, kind := range e.ready {
		if r := s.required(conditions, kind); r.decided() {
			return r
		}
	}
	for _, kind := range e.notFalse {
		if c, ok := find(conditions, kind); ok && c.holds("False") {
			return progressing(c.reason, c.message)
		}
	}
	return Result{}
}

// compare returns the result of the checks of fields other than conditions.
func (e *entry) compare(s subject) Result {
	for _, w := range e.words {
		if word := scalar(valueAt(s.Object, w.path)); len(w.ready) > 0 && !oneOf(word, w.ready) {
			return progressing(reasonInProgress, cmp.Or(scalar(valueAt(s.Object, w.message)), fmt.Sprintf("%s is %s", w.path, cmp.Or(api.Truncate(word, maxMessage), "empty"))))
		}
	}
	for _, pair := range e.equal {
		want, known := integer(valueAt(s.Object, pair[0]))
		// The API server omits zero.
		if have, _ := integer(valueAt(s.Object, pair[1])); known && have != want {
			return progressing(reasonInProgress, fmt.Sprintf("%s is %d, want %d", pair[1], have, want))
		}
	}
	for _, path := range e.set {
		if !filled(valueAt(s.Object, path)) {
			return progressing(reasonInProgress, path+" is empty")
		}
	}
	return ready()
}

// evaluateEach returns the result of the conditions of all items of a list.
func (e *entry) evaluateEach(s subject) Result {
	items, _ := valueAt(s.Object, e.each).([]any)
	for _, item := range items {
		fields, _ := item.(map[string]any)
		conditions, _ := conditionsOf(fields["conditions"])
		if r := e.unready(s, conditions); r.decided() {
			return r
		}
	}
	if len(items) == 0 {
		return progressing(reasonInProgress, e.each+" is empty")
	}
	return ready()
}

// match returns the first condition that matches one of those wanted and is about the
// current spec.
func match(s subject, conditions []condition, wanted []conditionMatch) (condition, bool) {
	for _, w := range wanted {
		c, ok := find(conditions, w.kind)
		if ok && c.holds(w.status) && (w.reason == "" || w.reason == c.reason) && !c.outdated(s.GetGeneration()) {
			return c, true
		}
	}
	return condition{}, false
}

func oneOf(word string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, word) })
}
