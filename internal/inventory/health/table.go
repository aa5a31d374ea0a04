package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
)

// entry is one line of the table of well-known kinds: where their controllers
// write how an object is. Everything that it names must hold for an object to be
// ready.
type entry struct {
	// product is what the documentation calls the kinds.
	product string
	// group is the API group. "*.example.com" stands for every group below it.
	group string
	// kinds are those of the group; none stands for all.
	kinds []string

	// always: an object is ready as soon as it is stored. Such kinds are watched
	// as metadata alone.
	always bool
	// stored names a field of the spec and a value with which an object is ready
	// as soon as it is stored.
	stored *field
	// suspended are fields, and paused conditions, that keep an object as it is.
	suspended []field
	paused    []conditionMatch

	// ready are conditions that must be True, and notFalse those that must not be
	// False.
	ready    []string
	notFalse []string
	// failed are conditions that say that the object has failed.
	failed []conditionMatch
	// words are fields that hold a word for the object's state.
	words []word
	// equal are pairs of fields, one of the spec and one of the status, that must
	// have one number.
	equal [][2]string
	// set are fields that must not be empty.
	set []string
	// each is a list under the status whose items have conditions: at least one
	// item, and ready holds for all of them.
	each string
}

// field is a field with a value.
type field struct{ path, value string }

// An is describes a condition: its type, its status, and its reason where that
// counts.
type conditionMatch struct{ kind, status, reason string }

// word is a field of the status with a vocabulary. A word that is in no list
// means progress.
type word struct {
	path string
	// ready are the words of an object that is ready, failed those of one that
	// has failed, and waiting those of one that a person has to continue.
	ready, failed, waiting []string
	// message is the field that explains it.
	message string
}

// lookup returns the first entry for a kind, nil where there is none.
func lookup(gk schema.GroupKind) *entry {
	for _, i := range byGroup()[gk.Group] {
		if table[i].has(gk.Kind) {
			return &table[i]
		}
	}
	// Of few groups every subdomain counts.
	for i := range table {
		if below, ok := strings.CutPrefix(table[i].group, "*"); ok && strings.HasSuffix(gk.Group, below) && table[i].has(gk.Kind) {
			return &table[i]
		}
	}
	return nil
}

func (e *entry) has(kind string) bool { return len(e.kinds) == 0 || slices.Contains(e.kinds, kind) }

// AlwaysReady reports whether objects of a kind are ready as soon as they are
// stored, so that only their metadata has to be watched.
func AlwaysReady(gk schema.GroupKind) bool {
	e := lookup(gk)
	return e != nil && e.always
}

// evaluate returns the health of an object of the entry's kinds.
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
	// An object that is ready by its conditions may have failed at something else: a
	// certificate stays valid while its renewal fails.
	return cmp.Or(e.worse(s, conditions, waits.decided() || len(e.ready) == 0), waits, e.compare(s))
}

// kept recognizes objects that are as they are meant to be without progress.
func (e *entry) kept(s subject) Result {
	if e.stored != nil && strings.EqualFold(scalar(valueAt(s.Object, e.stored.path)), e.stored.value) {
		return Result{Ready: true}
	}
	for _, f := range e.suspended {
		if strings.EqualFold(scalar(valueAt(s.Object, f.path)), f.value) {
			return suspended(fmt.Sprintf("it is suspended by %s: %s", f.path, f.value))
		}
	}
	conditions, _ := s.conditions()
	if c, ok := match(s, conditions, e.paused); ok {
		return suspended(api.Truncate(cmp.Or(c.message, "it is paused"), maxMessage))
	}
	return Result{}
}

// worse recognizes objects that have failed, or wait for a person.
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

// unready recognizes objects whose conditions are not as they must be.
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

// compare looks at what is not in conditions.
func (e *entry) compare(s subject) Result {
	for _, w := range e.words {
		if word := scalar(valueAt(s.Object, w.path)); len(w.ready) > 0 && !oneOf(word, w.ready) {
			return progressing(reasonInProgress, cmp.Or(scalar(valueAt(s.Object, w.message)), fmt.Sprintf("%s is %s", w.path, cmp.Or(api.Truncate(word, maxMessage), "empty"))))
		}
	}
	for _, pair := range e.equal {
		want, known := integer(valueAt(s.Object, pair[0]))
		// Kubernetes omits zero.
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

// evaluateEach looks at the conditions of every item of a list.
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

// match returns the first condition that is one of those wanted and about the
// present spec.
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
