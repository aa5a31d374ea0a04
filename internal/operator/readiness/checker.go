package readiness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/operator/permissions"
)

// State is the state of a kind, as the metrics report it.
type State string

const (
	// Waiting means that the API server does not serve the kind, not yet or no longer.
	Waiting State = "Waiting"
	// Starting means that the custom resources are being listed.
	Starting State = "Starting"
	// Serving means that the custom resources are watched.
	Serving State = "Serving"
	// Forbidden means that the operator lacks the permission to watch the custom resources.
	Forbidden State = "Forbidden"
	// Failed means that the custom resources cannot be listed or watched for another
	// reason, and the operator retries.
	Failed State = "Failed"
	// Removed means that no source defines the kind any longer. Only deletions of custom
	// resources are carried out.
	Removed State = "Removed"
	// Broken means that the kind cannot be served, see catalog.Broken.
	Broken State = metrics.KindBroken
)

// Checker holds the state of every kind, for the readiness probe and the metrics.
type Checker struct {
	// details returns more lines for the report.
	details func() []string

	mu sync.Mutex
	// notReady is why no kind is served yet, empty once kinds can be served.
	notReady string
	// signingKey is the problem with the signing key in the cluster, empty without a
	// problem.
	signingKey string
	kinds      []Kind
	// broken are the folders and entries that cannot be served.
	broken []Kind
	// onChange is called after a change of a kind; nil calls nothing.
	onChange func(schema.GroupKind)
}

// OnChange sets a function that is called after each change of a kind. It must be called
// before the first change.
func (c *Checker) OnChange(do func(schema.GroupKind)) { c.onChange = do }

// changed calls the function of OnChange. The lock must not be held.
func (c *Checker) changed(kind schema.GroupKind) {
	if c.onChange != nil {
		c.onChange(kind)
	}
}

// Kind is the state of one kind.
type Kind struct {
	kind schema.GroupKind
	// folder is the source of a broken kind, and entry is set if it is the watches file.
	folder string
	entry  bool
	state  State
	// reason explains the state.
	reason string
	// added: the kind was added or replaced while the operator was running. While it starts,
	// the operator stays ready.
	added bool
	// removed: the kind was removed. Whether its deletions can be carried out does not
	// affect whether the operator is ready.
	removed bool

	// Unserved is why the API server no longer serves the kind, although the operator
	// serves it or starts to.
	Unserved string
	// CRD is the problem with the kind's CustomResourceDefinition.
	CRD string
	// Missing are the rules that the operator lacks, and Unknown is why they are unknown.
	Missing []permissions.Rule
	Unknown string
}

// NewChecker returns a Checker of an operator that is starting. details returns more lines
// for the report.
func NewChecker(kinds []catalog.Kind, broken []catalog.Broken, details func() []string) *Checker {
	c := &Checker{notReady: "the operator is starting", details: details}
	for _, k := range kinds {
		c.kinds = append(c.kinds, Kind{kind: k.GVK().GroupKind(), state: Waiting, reason: WaitsForCRD(k)})
	}
	c.SetBroken(broken)
	return c
}

// Add adds a kind, or replaces the kind with the same group and name.
func (c *Checker) Add(kind catalog.Kind) {
	defer c.changed(kind.GVK().GroupKind())
	c.mu.Lock()
	defer c.mu.Unlock()
	added := Kind{kind: kind.GVK().GroupKind(), state: Waiting, reason: WaitsForCRD(kind), added: true}
	if at := c.index(added.kind); at >= 0 {
		c.kinds[at] = added
	} else {
		c.kinds = append(c.kinds, added)
	}
}

// Remove removes a kind.
func (c *Checker) Remove(kind schema.GroupKind) {
	defer c.changed(kind)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds = slices.DeleteFunc(c.kinds, func(k Kind) bool { return k.kind == kind })
}

// SetBroken replaces the folders and entries that cannot be served.
func (c *Checker) SetBroken(broken []catalog.Broken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = make([]Kind, len(broken))
	for i, b := range broken {
		c.broken[i] = Kind{kind: b.Kind, folder: b.Folder, entry: b.Entry, state: Broken, reason: b.Err.Error()}
	}
}

// Get returns the state of a kind, and whether the Checker knows the kind.
func (c *Checker) Get(kind schema.GroupKind) (Kind, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.index(kind); at >= 0 {
		return c.kinds[at], true
	}
	return Kind{}, false
}

// IsRemoved reports whether the kind was removed, whatever its state is now.
func (k *Kind) IsRemoved() bool { return k.removed }

// State returns the state of the kind and its reason, which may be empty.
func (k *Kind) State() (State, string) {
	if state := k.current(); state != k.state {
		return state, k.Unserved
	}
	return k.state, k.reason
}

// index requires the lock.
func (c *Checker) index(kind schema.GroupKind) int {
	return slices.IndexFunc(c.kinds, func(k Kind) bool { return k.kind == kind })
}

// WaitsForCRD returns the reason for the state Waiting.
func WaitsForCRD(k catalog.Kind) string {
	return fmt.Sprintf("the API server does not serve %s yet: its CustomResourceDefinition is missing or lacks the version", k.GVK().GroupVersion())
}

// SetNotReady sets why no kind is served yet, empty if kinds can be served.
func (c *Checker) SetNotReady(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notReady = reason
}

// SetSigningKey sets the problem with the signing key, empty without a problem.
func (c *Checker) SetSigningKey(problem string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signingKey = problem
}

// Update changes the state of a kind.
func (c *Checker) Update(kind schema.GroupKind, update func(*Kind)) {
	defer c.changed(kind)
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.index(kind); at >= 0 {
		update(&c.kinds[at])
	}
}

// SetState sets the state of a kind.
func (c *Checker) SetState(kind schema.GroupKind, to State, reason string) {
	c.Update(kind, func(k *Kind) {
		k.state, k.reason = to, reason
		k.removed = k.removed || to == Removed
	})
}

// Metrics returns the kinds and states for the metrics.
func (c *Checker) Metrics() []metrics.Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]metrics.Kind, 0, len(c.kinds)+len(c.broken))
	for _, k := range slices.Concat(c.kinds, c.broken) {
		list = append(list, metrics.Kind{Kind: k.name(), Folder: k.folder, State: string(k.current()), RulesMissing: len(k.Missing)})
	}
	return list
}

// Report reports whether the operator is ready, and describes the state of every kind. The
// operator is ready when it watches all kinds that it can serve, and can serve at least
// one, or has no kinds yet. A folder that is broken or a kind that cannot be watched must not
// block a rollout of the operator, which serves other kinds. A broken entry of the watches file
// must: it is part of the image or of its configuration.
func (c *Checker) Report() (ready bool, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts, starting := map[State]int{}, 0
	for _, k := range c.kinds {
		if k.removed {
			continue
		}
		counts[k.current()]++
		if k.current() == Starting && !k.added {
			starting++
		}
	}
	unserved := len(c.broken) + counts[Forbidden] + counts[Failed]
	var verdict string
	switch {
	case c.notReady != "":
		verdict = "not ready: " + c.notReady
	case starting > 0:
		verdict = fmt.Sprintf("not ready: %d of %d kinds are starting", starting, len(c.kinds)+len(c.broken))
	case slices.ContainsFunc(c.broken, func(k Kind) bool { return k.entry }):
		// The previous image keeps running.
		verdict = "not ready: the watches file has entries that cannot be served. All other kinds are served"
	case counts[Serving]+counts[Waiting]+counts[Starting] == 0 && unserved > 0:
		verdict = "not ready: no kind can be served"
	default:
		ready, verdict = true, "ready"
	}
	lines := []string{verdict}
	if c.signingKey != "" {
		lines = append(lines, c.signingKey)
	}
	for _, k := range slices.Concat(c.kinds, c.broken) {
		lines = append(lines, k.lines()...)
	}
	return ready, strings.Join(append(lines, c.details()...), "\n") + "\n"
}

// current returns the state, which is Waiting for a kind that the API server no longer
// serves.
func (k *Kind) current() State {
	if k.Unserved != "" && (k.state == Serving || k.state == Starting) {
		return Waiting
	}
	return k.state
}

// name returns the name of the kind, empty for a folder with an unknown kind.
func (k *Kind) name() string {
	if k.kind.Kind == "" {
		return ""
	}
	return k.kind.String()
}

// lines describes the kind.
func (k *Kind) lines() []string {
	state, reason := k.State()
	first := cmp.Or(k.name(), k.folder) + ": " + cmp.Or(stateTexts[state], string(state))
	if k.state == Broken && k.kind.Kind != "" {
		first += ", of " + k.folder
	}
	lines := []string{first}
	for _, text := range []string{reason, k.CRD} {
		if text != "" {
			lines = append(lines, "  "+strings.ReplaceAll(text, "\n", "\n  "))
		}
	}
	if k.Unknown != "" {
		lines = append(lines, "  missing rules unknown: "+k.Unknown)
	}
	return append(lines, permissions.Lines(k.Missing)...)
}

// stateTexts are the texts of states that need more than their name.
var stateTexts = map[State]string{
	Waiting:   "Waiting for its CustomResourceDefinition",
	Forbidden: "Forbidden; the operator lacks the permission to watch",
	Failed:    "Failed; the operator retries",
	Removed:   "Removed; only deletions are carried out",
}
