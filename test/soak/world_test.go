package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// world is an operator, its proxy to the API server, and its custom resources.
type world struct {
	*harness.Env
	t        *testing.T
	seed     uint64
	rng      *rand.Rand
	proxy    *harness.Proxy
	operator *harness.Operator
	trap     *harness.Trap
	subjects []*subject
	// places are the namespaces; the last one is deleted and created again.
	places []*harness.Env
	// placeGone: the last namespace was deleted, and is not created again yet.
	placeGone bool

	step   int
	totals totals
	// copies counts copies of records.
	copies int
	// fewJobs returns an error for a release with more Jobs than revisions.
	fewJobs func(context.Context) error
	// errands are commands of other clients in the background.
	errands sync.WaitGroup

	mu         sync.Mutex
	violations []string
}

// actionTimeout is the timeout of hooks, and of waits for actions of other
// clients.
const actionTimeout = "8s"

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	env := harness.New(t)
	w := &world{Env: env, t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1))}
	kinds := []harness.Kind{env.NewKind("Piece"), env.NewKind("Scrap")}
	entries := make([]harness.Entry, len(kinds))
	for i, kind := range kinds {
		env.InstallCRD(kind)
		entries[i] = harness.MakeEntry(kind, harness.Chart("pieces")).Timeout(actionTimeout).With("maxHistory", 20)
	}
	w.places = []*harness.Env{env, env.In(env.NewNamespace("spare"))}
	w.proxy = env.NewProxy()
	w.operator = env.NewOperator(harness.Options{
		Watches: env.Watches(entries...), Proxy: w.proxy, AllNamespaces: true,
		Account: env.NewAccount(),
	}).Start()
	w.watchRecords()
	for i, name := range []string{"ash", "birch", "cedar", "date", "elm", "fir"} {
		s := &subject{world: w, env: w.places[i/4], kind: kinds[i%2], name: name}
		w.subjects = append(w.subjects, s)
		s.create()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to repeat this run: CHARTWRIGHT_SOAK_SEEDS=%d CHARTWRIGHT_SOAK_DECKS=… CHARTWRIGHT_SOAK_TIME=30m; failed at step %d", seed, w.step)
		}
	})
	return w
}

// notef logs an event for the analysis of failures.
func (w *world) notef(format string, args ...any) {
	w.t.Helper()
	w.t.Logf(time.Now().UTC().Format("15:04:05.000 ")+format, args...)
}

// keep restarts an operator that has exited, as a kubelet does.
func (w *world) keep() {
	w.t.Helper()
	if w.trap != nil {
		if call, sprung := w.trap.Fired(); sprung {
			w.notef("the operator was killed at %s", call)
			w.totals.inc("kill-at-write done")
			w.trap = nil
		}
	}
	if !w.operator.Running() {
		w.operator.Launch()
	}
}

// disturb starts faults.
func (w *world) disturb() {
	plan := harness.Plan{
		Seed:   w.rng.Uint64(),
		Writes: 0.2 + 0.4*w.rng.Float64(), Reads: 0.1 + 0.3*w.rng.Float64(), Watches: 0.1 * w.rng.Float64(),
	}
	w.notef("faults: %.2f of writes, %.2f of reads, %.2f of watches", plan.Writes, plan.Reads, plan.Watches)
	w.totals.inc("faults begun")
	w.proxy.Plan(plan)
	w.busy()
}

// busy makes the operator write, so that there are requests to disturb.
func (w *world) busy() {
	for _, s := range w.subjects {
		if s.alive {
			s.verify()
		}
	}
}

func (w *world) disturbances() (n int) {
	for _, count := range w.proxy.Counts() {
		n += count
	}
	return n
}

const (
	// enough is the number of faults after which a round ends, and long its
	// maximum duration.
	enough = 12
	long   = 3 * time.Second
)

// stir waits until the events have met faults, and until the operator was
// killed.
func (w *world) stir(disturbed bool, before int) {
	w.t.Helper()
	w.soon(func(context.Context) (bool, error) {
		return w.trap == nil && (!disturbed || w.disturbances()-before >= enough), nil
	})
}

// soon waits for a condition, at most for the maximum duration of a round.
func (w *world) soon(condition wait.ConditionWithContextFunc) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), long)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, long/50, false, func(ctx context.Context) (bool, error) {
		w.keep()
		return condition(ctx)
	})
	if err != nil && !wait.Interrupted(err) && ctx.Err() == nil {
		w.t.Fatal(err)
	}
}

// violatef records a violation of a rule that must always hold.
func (w *world) violatef(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

func (w *world) checkViolations() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.violations) > 0 {
		w.t.Fatalf("seed %d, step %d: %s", w.seed, w.step, strings.Join(w.violations, "\n"))
	}
}
