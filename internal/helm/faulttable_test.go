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

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/testenv"
)

// knownFaults are the rows that do not hold, with the reason. A row is described by row.String.
var knownFaults = []struct {
	rows   *regexp.Regexp
	reason string
}{
	{
		regexp.MustCompile(`(500|503|504|time limit) before (GET|DRYRUN) |cut before DRYRUN `),
		"a read or a dry run that fails is not repeated: the attempt fails, and the next one runs the hooks again",
	},
	{
		regexp.MustCompile(`(500|503|504|time limit|cut) (before|after) ((PATCH|DELETE) (/api/v1/namespaces/NS/(configmaps|services|persistentv)|/apis/NS|/apis/apiext))`),
		"a write of an object that fails is not repeated: the attempt fails, and the next one runs the hooks again",
	},
	{
		regexp.MustCompile(`(500|503|504|time limit|cut) (before|after) (DELETE|POST) \S+/jobs`),
		"a write of a hook that fails is not repeated. Helm turns its error into text, so that it counts as a failure of the chart",
	},
	{
		regexp.MustCompile(`(500|503|504|time limit|cut) (before|after) (DELETE|PATCH) \S+/secrets/`),
		"the deletion of a record, or the change of its marks, is not repeated: the attempt fails, and the next one runs the delete hooks again",
	},
	{
		regexp.MustCompile(`429 after (POST|PUT) |^install, 429 after PATCH /apis/apiext`),
		"client-go repeats the request because of Retry-After, and the conflict with its own write counts as one with another client",
	},
	{
		regexp.MustCompile(`404 page before DELETE (/api/v1/namespaces/NS/(configmaps|services|persistentv)|/apis/NS)`),
		"the object counts as deleted, and stays for good",
	},
	{
		regexp.MustCompile(`^uninstall, 404 page before GET /apis/batch/v1 `),
		"the kind of the delete hook counts as removed, and the hook does not run",
	},
	{
		regexp.MustCompile(`^adoption, (404 page|403) before DRYRUN |^adoption, 404 page before GET /\S+/namespaces/NS/(configmaps|services|persistentv|gauges)`),
		"the object counts as missing or different: without an event, the adoption is followed by an upgrade with its hooks",
	},
	{
		regexp.MustCompile(`^verification, 404 page (before|after) PATCH \S+/secrets/`),
		"the record counts as deleted for good: each following attempt installs the release and fails without an event",
	},
	{
		regexp.MustCompile(`409 (before|after) (POST|PUT|DELETE) \S+/secrets`),
		"the attempt ends with ErrStale, which no event reports",
	},
}

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
			_, err = w.helm.Repair(t.Context(), r, drift)
		} else if _, err = w.take(d, r); d.Step == plan.StepUnlock && err == nil {
			continue
		}
		text := ""
		if err != nil {
			text = fmt.Sprintf("%s: %v", d.Step, err)
			if errors.Is(err, release.ErrStale) || errors.Is(err, ErrOrphaned) {
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

// broken returns what a row has changed, compared to the outcome without the fault, that it
// must not change.
func (r row) broken(want, got outcome) []string {
	var broken []string
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
// By default, a sample of the rows runs. In a long run, all rows run once, and each known fault
// must still occur.
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
	known := make([]atomic.Int64, len(knownFaults))
	var ran atomic.Int64
	if !testenv.Long() || allFaultsRan.Swap(true) {
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.known() >= 0 })
		rand.New(rand.NewPCG(1, 0)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		rows = rows[:40]
	}
	t.Logf("%d of %d rows", len(rows), all)
	t.Run("rows", func(t *testing.T) {
		for _, r := range rows {
			t.Run(r.String(), func(t *testing.T) {
				t.Parallel()
				ran.Add(1)
				got := verbs[r.verb].run(t, &r)
				broken, at := r.broken(wants[r.verb], got), r.known()
				switch {
				case !got.injected:
					t.Log("the action has not sent the request")
				case len(broken) > 0 && at >= 0:
					known[at].Add(1)
				case len(broken) > 0:
					t.Error(strings.Join(broken, "\n"))
				}
			})
		}
	})
	if ran.Load() < int64(all) {
		return
	}
	for i := range known {
		t.Logf("%d rows: %s", known[i].Load(), knownFaults[i].reason)
		if known[i].Load() == 0 {
			t.Errorf("remove from knownFaults: %s", knownFaults[i].reason)
		}
	}
}

// known returns the index of the row in knownFaults, or -1.
func (r row) known() int {
	for i := range knownFaults {
		if knownFaults[i].rows.MatchString(r.String()) {
			return i
		}
	}
	return -1
}
