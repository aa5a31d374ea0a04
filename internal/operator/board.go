package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/metrics"
)

// state is how far a kind has got, by the word that metrics have for it.
type state string

const (
	// stateWaiting: the API server has no such kind, not yet or not any more.
	stateWaiting state = "Waiting"
	// stateStarting: its custom resources are being listed.
	stateStarting state = "Starting"
	// stateServing: they are watched.
	stateServing state = "Serving"
	// stateForbidden: the operator may not watch them.
	stateForbidden state = "Forbidden"
	// stateFailed: its custom resources cannot be listed or watched for another
	// reason, and the operator tries again.
	stateFailed state = "Failed"
	// stateBroken: there is no kind to serve, see catalog.Broken.
	stateBroken state = metrics.KindBroken
)

// board holds how every kind is, for the readiness probe and the metrics.
type board struct {
	mu sync.Mutex
	// held is why nothing is served yet, empty once something can be.
	held string
	// signingKey says why the signing key in the cluster cannot be used, empty if
	// it can.
	signingKey string
	rows       []row
	// details returns more lines for the report; nil returns none.
	details func() []string
}

// row is one kind, or one that was to be.
type row struct {
	kind   schema.GroupKind
	folder string
	state  state
	// why is what is said of the state.
	why string
	// gone says that the API server has the kind no more, which is being served
	// or about to be.
	gone string
	// crd is what is said of its definition, where that is not as it should be.
	crd string
	// lacks are the rules that the operator lacks, and unknown why that is not
	// known.
	lacks   []lack
	unknown string
}

// newBoard returns a board on which no kind has begun.
func newBoard(kinds []catalog.Kind, broken []catalog.Broken) *board {
	b := &board{held: "the operator is starting"}
	for _, k := range kinds {
		b.rows = append(b.rows, row{kind: k.GVK().GroupKind(), state: stateWaiting, why: crdWaited(k)})
	}
	for _, w := range broken {
		b.rows = append(b.rows, row{kind: w.Kind, folder: w.Folder, state: stateBroken, why: w.Err.Error()})
	}
	return b
}

// crdWaited says what a kind waits for.
func crdWaited(k catalog.Kind) string {
	return fmt.Sprintf("the API server does not serve %s yet: its CustomResourceDefinition is missing, or has no such version", k.GVK().GroupVersion())
}

// hold says why nothing is served, empty for the end of it.
func (b *board) hold(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = why
}

// setSigningKey says why the signing key in the cluster cannot be used.
func (b *board) setSigningKey(problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signingKey = problem
}

// change changes what is known of a kind.
func (b *board) change(kind schema.GroupKind, change func(*row)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.IndexFunc(b.rows, func(r row) bool { return r.kind == kind && r.state != stateBroken }); at >= 0 {
		change(&b.rows[at])
	}
}

// set says how far a kind has got.
func (b *board) set(kind schema.GroupKind, to state, why string) {
	b.change(kind, func(r *row) { r.state, r.why = to, why })
}

// metrics returns what is counted of the kinds.
func (b *board) metrics() []metrics.Kind {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]metrics.Kind, 0, len(b.rows))
	for i := range b.rows {
		r := &b.rows[i]
		name := ""
		if r.kind.Kind != "" {
			name = r.kind.String()
		}
		list = append(list, metrics.Kind{Kind: name, Folder: r.folder, State: string(r.now()), RulesMissing: len(r.lacks)})
	}
	return list
}

// report tells whether the operator is ready, and how every kind is. It is ready
// when every kind that it can serve is watched, and it can serve one: a kind
// that is broken or cannot be watched must not keep the operator from being
// rolled out for the others.
func (b *board) report() (ready bool, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := map[state]int{}
	for i := range b.rows {
		counts[b.rows[i].now()]++
	}
	var verdict string
	switch {
	case b.held != "":
		verdict = "not ready: " + b.held
	case counts[stateStarting] > 0:
		verdict = fmt.Sprintf("not ready: %d of %d kinds are starting", counts[stateStarting], len(b.rows))
	case counts[stateServing]+counts[stateWaiting] == 0:
		verdict = "not ready: no kind can be served"
	default:
		ready, verdict = true, "ready"
	}
	lines := []string{verdict}
	if b.signingKey != "" {
		lines = append(lines, b.signingKey)
	}
	for i := range b.rows {
		lines = append(lines, b.rows[i].lines()...)
	}
	if b.details != nil {
		lines = append(lines, b.details()...)
	}
	return ready, strings.Join(lines, "\n") + "\n"
}

// now returns the state, as it is with a kind that may have gone.
func (r *row) now() state {
	if r.gone != "" && (r.state == stateServing || r.state == stateStarting) {
		return stateWaiting
	}
	return r.state
}

// lines says how a kind is, one thing a line.
func (r *row) lines() []string {
	name := r.folder
	if r.kind.Kind != "" {
		name = r.kind.String()
	}
	state, why := r.now(), r.why
	if state != r.state {
		why = r.gone
	}
	first := name + ": " + cmp.Or(stateWords[state], string(state))
	if r.state == stateBroken && r.kind.Kind != "" {
		first += ", of " + r.folder
	}
	lines := []string{first}
	for _, text := range []string{why, r.crd} {
		if text != "" {
			lines = append(lines, "  "+strings.ReplaceAll(text, "\n", "\n  "))
		}
	}
	if r.unknown != "" {
		lines = append(lines, "  whether rights are missing is not known: "+r.unknown)
	}
	return append(lines, lackLines(r.lacks)...)
}

var stateWords = map[state]string{
	stateWaiting:   "waiting for its CustomResourceDefinition",
	stateStarting:  "starting",
	stateServing:   "serving",
	stateForbidden: "may not be watched, for lack of rights",
	stateFailed:    "cannot be watched, and is tried again",
	stateBroken:    "broken",
}
