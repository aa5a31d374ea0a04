package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
)

// An operator costs more than most tests, so tests that do not need their own
// operator share three operators:
//   - one serves the kinds of Share in all namespaces,
//   - one serves the installed kinds in the namespaces of NewInstalled,
//   - one serves shippedKinds in the namespaces of NewShipped.

// sharedKind is a kind that tests share.
type sharedKind struct {
	Kind
	// entry is nil if no operator serves the kind.
	entry Entry
	crd   *unstructured.Unstructured
}

// sharedKinds are the kinds that tests share.
var sharedKinds []sharedKind

// Share declares a kind that tests share, with additional keys of its entry. It
// must be called before Main.
func Share(name, chart string, keys ...Entry) Kind {
	return ShareEntry(ShareCRD(name, keys...), chart, keys...)
}

// ShareCRD declares a kind that no operator serves. Its CRD has the scope and the
// subresources of the keys.
func ShareCRD(name string, keys ...Entry) Kind {
	kind := Kind{schema.GroupVersionKind{Group: fmt.Sprintf("shared%d.test", len(sharedKinds)), Version: "v1", Kind: name}}
	sharedKinds = append(sharedKinds, sharedKind{Kind: kind, crd: kind.crd(keys...)})
	return kind
}

// ShareEntry makes the operator serve a kind of ShareCRD. It is for keys that
// contain the group of the kind.
func ShareEntry(kind Kind, chart string, keys ...Entry) Kind {
	entry := MakeEntry(kind, Chart(chart))
	for _, more := range keys {
		maps.Copy(entry, more)
	}
	sharedKinds[sharedIndex(kind)].entry = entry
	return kind
}

func sharedIndex(kind Kind) int {
	return slices.IndexFunc(sharedKinds, func(s sharedKind) bool { return s.Kind == kind })
}

// wholeRun replaces the test of operators that tests share. Its cleanups run
// after the last test, see sharedOperator.end.
type wholeRun struct {
	testing.TB
	cleanups []func()
	failed   bool
}

// Helper does nothing: failures are reported without a line of a test.
func (r *wholeRun) Helper() {}

// Context returns a context that is never canceled.
func (r *wholeRun) Context() context.Context { return context.Background() }

// Cleanup adds a cleanup.
func (r *wholeRun) Cleanup(do func()) { r.cleanups = append(r.cleanups, do) }

// Failed reports whether a cleanup failed.
func (r *wholeRun) Failed() bool { return r.failed }

// Fatal ends the run: no test can continue without the operator.
func (r *wholeRun) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf is Fatal with a format.
func (r *wholeRun) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// Logf prints a message.
func (r *wholeRun) Logf(f string, args ...any) { fmt.Fprintf(os.Stderr, f+"\n", args...) }

// Errorf makes the run fail.
func (r *wholeRun) Errorf(f string, args ...any) {
	r.failed = true
	r.Logf(f, args...)
}

// TempDir returns a folder that the guard deletes.
func (r *wholeRun) TempDir() string {
	dir, err := os.MkdirTemp(shared.scratch, "shared-")
	if err != nil {
		r.Fatal(err)
	}
	return dir
}

// sharedOperator is started for the first test that uses it.
type sharedOperator struct {
	start func(*Env) Options
	name  string
	// kinds are the kinds that the tests of newEnv use in addition to the
	// installed kinds, and namespaces are the namespaces of these tests. next is
	// the index of the first namespace without a test.
	kinds      []Kind
	namespaces []string
	next       atomic.Int32

	once sync.Once
	run  wholeRun
	*Operator
}

// sharedArgs are flags for more than one worker per parallel test, because a test
// that waits for a hook must not delay others, and for short periods.
var sharedArgs = []string{"--max-concurrent-reconciles=16", "--min-reconcile-period=200ms"}

var (
	ofSharedKinds = &sharedOperator{name: "shared", start: func(e *Env) Options {
		var entries []Entry
		for _, kind := range sharedKinds {
			e.createCRD(kind.Kind, kind.crd)
			if kind.entry != nil {
				entries = append(entries, kind.entry)
			}
		}
		for _, kind := range sharedKinds {
			e.WaitServed(kind.Kind)
		}
		return Options{Watches: e.Watches(entries...), AllNamespaces: true, Args: sharedArgs}
	}}
	// Operators of other tests serve the kinds of the other two in other
	// namespaces.
	ofInstalledKinds = &sharedOperator{name: "installed", namespaces: namespaces("installed", 40), start: func(*Env) Options {
		return Options{}
	}}
	ofShippedKinds = &sharedOperator{
		name: "shipped", namespaces: namespaces("shipped", 30), kinds: shippedKinds,
		start: func(e *Env) Options {
			entries := make([]Entry, 0, len(shippedKinds))
			for _, kind := range shippedKinds {
				entries = append(entries, e.Shipped(kind))
			}
			watches := e.Watches(entries...)
			e.InstallDerivedCRDs(watches, shippedKinds...)
			// The tests use all permissions for the optional objects of a Database.
			return Options{Watches: watches, Args: sharedArgs, Env: []string{NoStreamingLists}}
		},
	}
)

var shippedKinds = []Kind{Experimental, VMGroup, Addon, Database}

// NoStreamingLists is the environment of an operator that lists objects as if
// the API server did not support streaming lists.
const NoStreamingLists = "KUBE_FEATURE_WatchListClient=false"

// namespaces returns n names that are different in each run.
func namespaces(of string, n int) (names []string) {
	run := rand.String(5)
	for i := range n {
		names = append(names, fmt.Sprintf("e2e-%s-%s-%d", of, run, i))
	}
	return names
}

// use starts the operator for the first test that uses it. If the test fails,
// use prints the lines of the log that contain the test's namespace.
func (s *sharedOperator) use(e *Env) {
	e.t.Helper()
	s.once.Do(func() {
		run := newEnv(&s.run, namespaceFor(s.name))
		options := s.start(run)
		options.Namespaces = s.namespaces
		// A larger heap needs less processor time.
		options.Env = append(options.Env, "GOGC=400", "GOMEMLIMIT=1GiB")
		s.Operator = run.NewOperator(options).Start()
	})
	if s.Operator == nil {
		e.t.Fatalf("the operator %s did not start", s.name)
	}
	e.cleanup(func(context.Context) error {
		if e.t.Failed() {
			for line := range strings.Lines(s.Log()) {
				if strings.Contains(line, e.Namespace) {
					e.t.Log(strings.TrimSpace(line))
				}
			}
		}
		return nil
	})
}

// end stops the operator and runs its cleanups, and reports whether this failed.
// If this run booted the cluster, end only stops the operator: see endNamespace.
func (s *sharedOperator) end() (failed bool) {
	if shared.booted && s.Operator != nil {
		if err := s.Operator.end(syscall.SIGTERM); err != nil {
			s.run.Errorf("%v\n%s", err, s.Log())
		}
		return s.run.failed
	}
	for len(s.run.cleanups) > 0 {
		last := len(s.run.cleanups) - 1
		do := s.run.cleanups[last]
		s.run.cleanups = s.run.cleanups[:last]
		do()
	}
	return s.run.failed
}

// Use returns a kind of Share, which an operator serves from now on. The
// operator of all these kinds must not be restarted.
func (e *Env) Use(kind Kind) Kind {
	e.t.Helper()
	ofSharedKinds.use(e)
	e.kinds = append(e.kinds, kind)
	return kind
}

// SharedUser returns the user name of the operator of the kinds of Share.
func SharedUser() string { return ofSharedKinds.User() }

// ShippedUser returns the user name of the operator of NewShipped.
func ShippedUser() string { return ofShippedKinds.User() }

// SharedLog returns the log of the operator of the kinds of Share. It contains
// the log of other tests.
func SharedLog() string { return ofSharedKinds.Log() }

// InstalledName returns the name of the operator of NewInstalled.
func InstalledName() string { return ofInstalledKinds.options.Name }

// SharedEntry returns the entry of a kind of Share.
func (e *Env) SharedEntry(kind Kind) Entry {
	e.t.Helper()
	i := sharedIndex(kind)
	if i < 0 {
		e.t.Fatalf("%s is not shared", kind.Kind)
	}
	data, err := json.Marshal(sharedKinds[i].entry)
	e.must(err)
	var entry Entry
	e.must(json.Unmarshal(data, &entry))
	return entry
}

// NewInstalled is New with a namespace whose installed kinds a shared operator
// serves.
func NewInstalled(t *testing.T) *Env {
	t.Helper()
	return ofInstalledKinds.newEnv(t)
}

// NewShipped is New with a namespace whose Experimentals, VmGroups, Addons and
// Databases a shared operator serves.
func NewShipped(t *testing.T) *Env {
	t.Helper()
	return ofShippedKinds.newEnv(t)
}

func (s *sharedOperator) newEnv(t *testing.T) *Env {
	t.Helper()
	next := int(s.next.Add(1)) - 1
	if next >= len(s.namespaces) {
		t.Fatalf("too many tests use the operator %s: raise the number of its namespaces", s.name)
	}
	e := newEnv(t, s.namespaces[next])
	e.kinds = slices.Clone(s.kinds)
	s.use(e)
	return e
}

// newEnv creates a namespace, see deleteNamespace for its end.
func newEnv(t testing.TB, name string) *Env {
	t.Helper()
	e := &Env{t: t, Namespace: name, Typed: shared.typed, Dynamic: shared.dynamic}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   e.Namespace,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	_, err := e.Typed.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(e.deleteNamespace)
	return e
}
