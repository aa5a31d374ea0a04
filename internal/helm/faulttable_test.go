package helm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/testenv"
)

// outcome is the result of an action and its retries.
type outcome struct {
	// attempts are the errors of the attempts, empty for a success.
	attempts []string
	// silent are the errors that no event reports.
	silent []string
	// jobs is the number of hooks that were created.
	jobs int
	// state describes the end: the revisions, the objects and what happened to them.
	state    []string
	warnings []string
	injected bool
	points   []point
}

// maxFaultyAttempts is more than any action may need.
const maxFaultyAttempts = 5

// run runs a verb, with the fault of a row if it is not nil, and what the operator does until
// the release is in sync.
func (v faultyVerb) run(t *testing.T, at *row) outcome {
	w := newFaultyWorld(t)
	stranger := w.make("stranger")
	w.net.armed.Store(&disturbance{answer: (&counter{faultyWorld: w, seen: map[string]int{}, claims: sets.Set[string]{}}).answer})
	v.before(w)
	w.warnings = nil
	w.newMapper()
	uids := w.uids()
	c := &counter{faultyWorld: w, row: at, seen: map[string]int{}, claims: sets.Set[string]{}}
	w.net.armed.Store(&disturbance{answer: c.answer})
	var out outcome
	for len(out.attempts) < maxFaultyAttempts {
		r := v.request(w)
		o := w.observe(r, v.deleting)
		drift := map[apply.Key]bool{}
		for _, one := range w.objects.Drift(w.owner.UID) {
			drift[one.Key] = true
		}
		o.Drifted = v.name == "repair" && len(drift) > 0
		o.VerifyRequested = v.name == "verification" && release.MarksOf(w.index.History(w.namespace, r.Release)).Reconcile != r.Marks.Reconcile
		o.Adoptable = o.Newest != nil && !o.Newest.Owned
		d := plan.Next(o)
		if d.Step == plan.StepWait || d.Step == plan.StepRemoveFinalizer {
			out.state = append(out.state, "at the end "+string(d.State))
			break
		}
		var err error
		if d.Step == plan.StepRepair {
			_, err = w.helm.Repair(w.Context(), r, drift)
		} else if _, err = w.take(d, r); d.Step == plan.StepUnlock && err == nil {
			continue
		}
		text := ""
		if err != nil {
			text = fmt.Sprintf("%s: %v", d.Step, err)
			// An event reports what the API server says.
			if errors.Is(err, release.ErrStale) && apply.AnswerOf(err) == apply.None || errors.Is(err, ErrOrphaned) {
				out.silent = append(out.silent, text)
			}
		}
		out.attempts = append(out.attempts, text)
	}
	w.net.armed.Store(nil)
	out.jobs, out.injected, out.points, out.warnings = c.jobs, c.injected, c.points, w.warnings
	out.state = append(out.state, w.statuses()...)
	out.state = append(out.state, w.configMaps()...)
	out.state = append(out.state, w.describe(uids)...)
	out.state = append(out.state, fmt.Sprintf("deleted claims %v", sets.List(c.claims)))
	if live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "stranger", metav1.GetOptions{}); err != nil || live.ResourceVersion != stranger.ResourceVersion {
		out.state = append(out.state, "the object of a stranger was changed")
	}
	return out
}

// unlabeled matches the rows that forbid the operator to change the claim that an uninstall
// leaves: a missing permission does not block the deletion of a custom resource. An event reports
// it.
var unlabeled = regexp.MustCompile(`^uninstall, 403 (before|after) (GET|PATCH) /api/v1/namespaces/NS/persistentvolumeclaims/`)

// broken returns what a row has changed, compared to the outcome without the fault, that it
// must not change.
func (r row) broken(want, got outcome) []string {
	var broken []string
	if unlabeled.MatchString(r.String()) && slices.Contains(got.warnings, api.EventObjectLeft) {
		for i, state := range got.state {
			if strings.HasPrefix(state, "persistentvolumeclaims/data the same") {
				got.state[i] = strings.Replace(state, "owned true", "owned false", 1)
			}
		}
	}
	report := func(format string, a ...any) { broken = append(broken, fmt.Sprintf(format, a...)) }
	if !slices.Equal(want.state, got.state) {
		report("the end is %s, want %s", strings.Join(got.state, "; "), strings.Join(want.state, "; "))
	}
	allowed := len(want.attempts)
	if !r.outage {
		allowed++
	}
	if len(got.attempts) > allowed || r.outage && !slices.Equal(want.attempts, got.attempts) {
		report("the attempts are %q", got.attempts)
	}
	// Each attempt runs the hook.
	if got.jobs > want.jobs*(1+len(got.attempts)-len(want.attempts)) || got.jobs < want.jobs || r.outage && got.jobs != want.jobs {
		report("%d Jobs, want %d", got.jobs, want.jobs)
	}
	if len(got.silent) > 0 {
		report("no event reports %q", got.silent)
	}
	if r.outage && !slices.Equal(want.warnings, got.warnings) {
		report("the warnings are %v, want %v", got.warnings, want.warnings)
	}
	return broken
}

// allFaultsRan reports that all rows have run in this process.
var allFaultsRan atomic.Bool

// TestFaults_EachRequestFailsOnce is a table: each request of each action fails once, in each
// way, before the API server has processed it and after. An outage changes nothing: neither the
// objects, nor the revisions, nor the number of hook runs, nor the number of attempts. After
// another fault one more attempt is enough, and an event reports the first one.
//
// By default, a sample of the rows runs. In a long run, all rows run once.
func TestFaults_EachRequestFailsOnce(t *testing.T) {
	startAPIServer(t)
	wants, verbs := map[string]outcome{}, map[string]faultyVerb{}
	var rows []row
	for _, v := range faultyVerbs {
		want := v.run(t, nil)
		if len(want.attempts) != 1 || want.attempts[0] != "" {
			t.Fatalf("%s without a fault: %q", v.name, want.attempts)
		}
		wants[v.name], verbs[v.name] = want, v
		rows = append(rows, rowsOf(v.name, want.points)...)
	}
	all := len(rows)
	if !testenv.Long() || allFaultsRan.Swap(true) {
		rand.New(rand.NewPCG(1, 0)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		rows = rows[:40]
	}
	t.Logf("%d of %d rows", len(rows), all)
	t.Run("rows", func(t *testing.T) {
		for _, r := range rows {
			t.Run(r.String(), func(t *testing.T) {
				t.Parallel()
				got := verbs[r.verb].run(t, &r)
				broken := r.broken(wants[r.verb], got)
				switch {
				case !got.injected:
					t.Log("the action did not send the request")
				case len(broken) > 0:
					t.Error(strings.Join(broken, "\n"))
				}
			})
		}
	})
}
