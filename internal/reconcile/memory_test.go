package reconcile

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/queue"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

func failedWith(target, reason, message string) status.Failure {
	return status.Failure{Failure: plan.Failure{Target: plan.TargetKey{Digest: target}}, Reason: reason, Message: message}
}

func TestMemory_CountsFailuresByTarget(t *testing.T) {
	var m memory
	if m.of("one").failure != nil {
		t.Error("a failure is known before any action")
	}
	for i, step := range []struct {
		f        status.Failure
		news     bool
		attempts int
	}{
		{failedWith("a", "R", "m"), true, 1},
		{failedWith("a", "R", "m"), false, 2},
		{failedWith("a", "R", "another"), true, 3},
		{failedWith("a", "S", "another"), true, 4},
		{failedWith("b", "S", "another"), true, 1},
		{failedWith("b", "S", "another"), false, 2},
	} {
		if news := m.put("one", false, step.f); news != step.news {
			t.Errorf("failure %d is news: %v", i, news)
		}
		if got := m.of("one").failure; got == nil || got.Attempts != step.attempts {
			t.Errorf("failure %d: %+v, want %d attempts", i, got, step.attempts)
		}
	}
	if m.of("two").failure != nil || m.of("one").repairFailure != nil {
		t.Error("the failure is known for another custom resource or repair")
	}
	m.put("one", true, failedWith("b", "S", "another"))
	m.ifKnown("one", func(r *remembered) { r.failure = nil })
	if m.of("one").failure != nil || m.of("one").repairFailure == nil {
		t.Error("a success must forget only its own failure")
	}
	m.forget("one")
	if m.of("one").repairFailure != nil {
		t.Error("a deleted custom resource is remembered")
	}
}

// TestMemory_NewDriftEndsBackoff: an object that drifts is corrected at once, although the
// correction of another object has failed.
func TestMemory_NewDriftEndsBackoff(t *testing.T) {
	v := viewOf([]string{dep}, written)
	uid := v.CR.GetUID()
	var woken int
	r := &Reconciler{Shared: Shared{Metrics: metrics.New(nil, metrics.Sources{})}, Wake: func(types.NamespacedName, time.Duration) { woken++ }}
	r.Pool = queue.NewPool(1, false, time.Now, r.Metrics)
	at := func(names ...string) {
		v.driftChecked, v.Drift = true, nil
		for _, name := range names {
			v.Drift = append(v.Drift, inventory.Drift{Key: apply.Key{Kind: "ConfigMap", Name: name}})
		}
		r.applyEffects(v)
	}
	at("a")
	if woken > 0 {
		t.Error("woken without a failure")
	}
	failure := failedWith("a", "R", "m")
	failure.At = time.Now()
	r.memory.put(uid, true, failure)
	at("a")
	if woken > 0 || r.memory.of(uid).repairFailure.At.IsZero() {
		t.Error("the same drift ends the backoff")
	}
	at("a", "b")
	if woken != 1 || !r.memory.of(uid).repairFailure.At.IsZero() || r.memory.of(uid).repairFailure.Attempts != 1 {
		t.Errorf("woken %d times, want once, and the failure is %+v", woken, r.memory.of(uid).repairFailure)
	}
}

// TestConclude_JoinedErrorsKeepTheirCauses: replicas that are not corrected hide no other cause.
func TestConclude_JoinedErrorsKeepTheirCauses(t *testing.T) {
	err := fmt.Errorf("%w\n%w", fmt.Errorf("%w: Service", apply.ErrForeign), fmt.Errorf("%w: replicas", helm.ErrApprovalRequired))
	if waitsForUser(err) {
		t.Error("an error without a plan waits for an approval")
	}
	if !waitsForUser(fmt.Errorf("upgrade: %w", &helm.ApprovalError{})) || !waitsForUser(&helm.ProtectedError{}) {
		t.Error("a plan, or a protected object, waits for no user")
	}
}

// TestMemory_ReachedForgetsOneFailure: only the failure to reach the reached target is
// forgotten.
func TestMemory_ReachedForgetsOneFailure(t *testing.T) {
	var m memory
	m.reached("one", plan.TargetKey{Digest: "a"})
	m.put("one", false, failedWith("a", "R", "m"))
	m.put("one", true, failedWith("a", "R", "m"))
	m.put("two", false, failedWith("a", "R", "m"))
	m.reached("one", plan.TargetKey{Digest: "b"})
	if m.of("one").failure == nil {
		t.Error("the failure with another target is forgotten")
	}
	m.reached("one", plan.TargetKey{Digest: "a"})
	if m.of("one").failure != nil {
		t.Error("the failure with the reached target is remembered")
	}
	if m.of("one").repairFailure == nil || m.of("two").failure == nil {
		t.Error("a repair failure or that of another custom resource is forgotten")
	}
	if !m.put("one", false, failedWith("a", "R", "m")) || m.of("one").failure.Attempts != 1 {
		t.Error("the next failure counts the forgotten one")
	}
}

func TestMemory_AppliedAtKeepsTheFirstTime(t *testing.T) {
	var m memory
	start := time.Unix(1000, 0)
	if at := m.appliedAt("one", start); !at.Equal(start) {
		t.Errorf("first call: %s", at)
	}
	if at := m.appliedAt("one", start.Add(time.Hour)); !at.Equal(start) {
		t.Errorf("second call: %s", at)
	}
	m.with("one", func(r *remembered) { r.applied = start.Add(2 * time.Hour) })
	if at := m.appliedAt("one", start.Add(3*time.Hour)); !at.Equal(start.Add(2 * time.Hour)) {
		t.Errorf("after an apply: %s", at)
	}
	m.forget("one")
	if at := m.appliedAt("one", start.Add(4*time.Hour)); !at.Equal(start.Add(4 * time.Hour)) {
		t.Errorf("after forget: %s", at)
	}
}

func TestLatest_NewestReturnsTheNewerVersion(t *testing.T) {
	key := types.NamespacedName{Namespace: "apps", Name: "web"}
	cr := func(uid, resourceVersion string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetUID(types.UID(uid))
		u.SetResourceVersion(resourceVersion)
		return u
	}
	for _, test := range []struct {
		name            string
		written, cached *unstructured.Unstructured
		want            string
		kept            bool
	}{
		{"the cache lags", cr("a", "10"), cr("a", "9"), "10", true},
		{"the cache has caught up", cr("a", "10"), cr("a", "10"), "10", false},
		{"a later write by another client", cr("a", "10"), cr("a", "11"), "11", false},
		{"deleted and created again", cr("a", "10"), cr("b", "9"), "9", false},
		{"versions that are not numbers", cr("a", "x"), cr("a", "9"), "9", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var l latest
			if got := l.newest(key, test.cached); got != test.cached {
				t.Error("without a write, newest does not return the cached object")
			}
			l.put(key, test.written)
			if got := l.newest(key, test.cached).GetResourceVersion(); got != test.want {
				t.Errorf("version %s, want %s", got, test.want)
			}
			if got := l.newest(key, cr("a", "1")).GetResourceVersion() != "1"; got != test.kept {
				t.Errorf("the written object is kept: %v, want %v", got, test.kept)
			}
			l.put(key, test.written)
			l.forget(key)
			if got := l.newest(key, test.cached); got != test.cached {
				t.Error("a forgotten object is returned")
			}
		})
	}
}
