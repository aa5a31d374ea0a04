package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/rollout"
)

func member(name string, position rollout.Position) rollout.Member {
	return memberIn("apps", name, position)
}

func memberIn(namespace, name string, position rollout.Position) rollout.Member {
	return rollout.Member{Key: types.NamespacedName{Namespace: namespace, Name: name}, Position: position}
}

// limits returns limits with a maximum of concurrent upgrades and a stop in all
// namespaces after failures in two.
func limits(most int) rollout.Limits {
	return rollout.Limits{MaxConcurrent: most, StopAfterNamespaces: 2}
}

func uid(name string) types.UID { return types.UID("uid-" + name) }

// put updates the position of some custom resources, and returns the names of the
// custom resources to reconcile.
func put(q *rollout.Queue, position rollout.Position, names ...string) (woken []string) {
	for _, name := range names {
		for _, key := range q.Upsert(uid(name), member(name, position)) {
			woken = append(woken, key.Name)
		}
	}
	return woken
}

func expectTurn(t *testing.T, q *rollout.Queue, name string, want rollout.Turn) {
	t.Helper()
	if got := q.Turn(uid(name)); got != want {
		t.Errorf("turn of %s = %+v, want %+v", name, got, want)
	}
}

func expectNames(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("custom resources to reconcile (-want +got):\n%s", diff)
	}
}

// A member that waits for an approval counts as waiting, and delays no other member.
func TestQueue_PassesBlockedMembers(t *testing.T) {
	q := rollout.NewQueue(limits(1), nil)
	put(q, rollout.Waiting, "a", "b")
	expectTurn(t, q, "a", rollout.Turn{Verdict: rollout.Go})
	expectTurn(t, q, "b", rollout.Turn{Verdict: rollout.Wait, Place: 2, Of: 2})
	blocked := member("a", rollout.Waiting)
	blocked.Blocked = true
	var woken []string
	for _, key := range q.Upsert(uid("a"), blocked) {
		woken = append(woken, key.Name)
	}
	expectNames(t, woken, "b")
	expectTurn(t, q, "b", rollout.Turn{Verdict: rollout.Go})
	if counts := q.Positions(); counts[rollout.Waiting] != 1 || counts[rollout.Moving] != 1 || counts[rollout.Failed] != 0 {
		t.Errorf("positions are %v", counts)
	}

	// After the approval, it waits for its turn again.
	put(q, rollout.Waiting, "a")
	expectTurn(t, q, "a", rollout.Turn{Verdict: rollout.Wait, Place: 1, Of: 2})
	put(q, rollout.Done, "b")
	expectTurn(t, q, "a", rollout.Turn{Verdict: rollout.Go})
}

func TestQueue_AdmitsUpToMaxConcurrent(t *testing.T) {
	q := rollout.NewQueue(limits(2), nil)
	put(q, rollout.Waiting, "d", "b", "c", "a")
	put(q, rollout.Done, "done")
	put(q, rollout.Skipped, "held")
	// An unchanged member wakes no others.
	expectNames(t, put(q, rollout.Waiting, "d"))
	expectTurn(t, q, "c", rollout.Turn{Verdict: rollout.Wait, Place: 4, Of: 5})
	expectTurn(t, q, "b", rollout.Turn{Verdict: rollout.Go})
	expectTurn(t, q, "a", rollout.Turn{Verdict: rollout.Go})
	// A second call returns the same verdict and admits no other member.
	expectTurn(t, q, "a", rollout.Turn{Verdict: rollout.Go})
	expectTurn(t, q, "c", rollout.Turn{Verdict: rollout.Wait, Place: 4, Of: 5})
	expectNames(t, put(q, rollout.Moving, "b"))
	// The place does not change while others are upgraded.
	expectTurn(t, q, "d", rollout.Turn{Verdict: rollout.Wait, Place: 5, Of: 5})
	expectNames(t, put(q, rollout.Done, "b"), "c")
	expectTurn(t, q, "d", rollout.Turn{Verdict: rollout.Wait, Place: 5, Of: 5})
	expectTurn(t, q, "c", rollout.Turn{Verdict: rollout.Go})
	expectNames(t, put(q, rollout.Done, "a"), "d")
	expectTurn(t, q, "d", rollout.Turn{Verdict: rollout.Go})
	if diff := cmp.Diff(map[rollout.Position]int{rollout.Done: 3, rollout.Moving: 2, rollout.Skipped: 1, rollout.Waiting: 0}, q.Positions()); diff != "" {
		t.Error(diff)
	}
}

func TestQueue_FailureStopsItsNamespace(t *testing.T) {
	q := rollout.NewQueue(limits(1), nil)
	put(q, rollout.Waiting, "a", "b", "c")
	expectTurn(t, q, "a", rollout.Turn{Verdict: rollout.Go})
	expectNames(t, put(q, rollout.Failed, "a"), "b", "c")
	expectTurn(t, q, "b", rollout.Turn{Verdict: rollout.Stopped, Place: 2, Of: 3})
	// Members that a spec edit moves are not stopped.
	expectNames(t, put(q, rollout.Moving, "edited"))
	expectNames(t, put(q, rollout.Done, "edited"))
	expectNames(t, put(q, rollout.Done, "a"), "b", "c")
	expectTurn(t, q, "c", rollout.Turn{Verdict: rollout.Wait, Place: 4, Of: 4})
	expectTurn(t, q, "b", rollout.Turn{Verdict: rollout.Go})
	put(q, rollout.Failed, "b")
	var woken []string
	for _, key := range q.Forget(uid("b")) {
		woken = append(woken, key.Name)
	}
	expectNames(t, woken, "c")
	expectTurn(t, q, "c", rollout.Turn{Verdict: rollout.Go})
}

// One tenant must not withhold a chart from the others; a chart that fails in
// several namespaces must not reach more of them.
func TestQueue_StopsPerNamespaceFirst(t *testing.T) {
	q := rollout.NewQueue(limits(1), nil)
	woken := func(namespace, name string, position rollout.Position) (names []string) {
		for _, key := range q.Upsert(uid(name), memberIn(namespace, name, position)) {
			names = append(names, key.Name)
		}
		return names
	}
	for _, name := range []string{"a1", "a2", "b1", "b2", "c1"} {
		woken(name[:1], name, rollout.Waiting)
	}
	expectTurn(t, q, "a1", rollout.Turn{Verdict: rollout.Go})
	expectNames(t, woken("a", "a1", rollout.Failed), "a2", "b1")
	expectTurn(t, q, "a2", rollout.Turn{Verdict: rollout.Stopped, Place: 2, Of: 5})
	expectSummary(t, q, &rollout.Summary{Stopped: true, Failed: []types.NamespacedName{{Namespace: "a", Name: "a1"}}, Waiting: 1})
	// The place counts the stopped members, but they do not delay the next namespace.
	expectTurn(t, q, "b2", rollout.Turn{Verdict: rollout.Wait, Place: 4, Of: 5})
	expectTurn(t, q, "b1", rollout.Turn{Verdict: rollout.Go})
	expectSummary(t, q, nil)
	// A failure in a second namespace stops the rollout in all namespaces.
	expectNames(t, woken("b", "b1", rollout.Failed), "a2", "b2", "c1")
	expectTurn(t, q, "c1", rollout.Turn{Verdict: rollout.Stopped, Place: 5, Of: 5})
	expectSummary(t, q, &rollout.Summary{Stopped: true, Everywhere: true, Failed: []types.NamespacedName{{Namespace: "a", Name: "a1"}, {Namespace: "b", Name: "b1"}}, Waiting: 3})
	// The rollout continues when one of the failed members is done.
	expectNames(t, woken("a", "a1", rollout.Done), "a2", "b2", "c1")
	expectTurn(t, q, "b2", rollout.Turn{Verdict: rollout.Stopped, Place: 4, Of: 5})
	expectTurn(t, q, "a2", rollout.Turn{Verdict: rollout.Go})
	expectNames(t, woken("b", "b1", rollout.Done), "b2")
	expectSummary(t, q, &rollout.Summary{Waiting: 2})
}

func TestQueue_PauseAndResume(t *testing.T) {
	q := rollout.NewQueue(limits(3), nil)
	put(q, rollout.Waiting, "a", "b")
	expectTurn(t, q, "a", rollout.Turn{Verdict: rollout.Go})
	if keys := q.Pause(true); len(keys) != 1 || keys[0].Name != "b" {
		t.Errorf("the pause wakes %v, want b", keys)
	}
	expectTurn(t, q, "a", rollout.Turn{Verdict: rollout.Go})
	expectTurn(t, q, "b", rollout.Turn{Verdict: rollout.Paused, Place: 2, Of: 2})
	if keys := q.Pause(true); len(keys) != 0 {
		t.Errorf("a repeated pause wakes %v, want none", keys)
	}
	q.Pause(false)
	expectTurn(t, q, "b", rollout.Turn{Verdict: rollout.Go})
}

func expectSummary(t *testing.T, q *rollout.Queue, want *rollout.Summary) {
	t.Helper()
	var got *rollout.Summary
	if summary, changed := q.Summary(); changed {
		got = &summary
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

// TestQueue_SummaryReportsEachStopOnce: no summary is returned before all expected
// members are known or while no member waits.
func TestQueue_SummaryReportsEachStopOnce(t *testing.T) {
	q := rollout.NewQueue(limits(3), []types.UID{uid("a"), uid("b"), uid("c")})
	put(q, rollout.Failed, "b", "a")
	expectSummary(t, q, nil)
	put(q, rollout.Skipped, "c")
	expectSummary(t, q, nil)
	put(q, rollout.Waiting, "c", "d")
	failed := []types.NamespacedName{member("a", "").Key, member("b", "").Key}
	expectSummary(t, q, &rollout.Summary{Stopped: true, Failed: failed, Waiting: 2})
	expectSummary(t, q, nil)
	put(q, rollout.Done, "b")
	expectSummary(t, q, nil)
	q.Pause(true)
	put(q, rollout.Done, "a")
	expectSummary(t, q, nil)
	q.Pause(false)
	expectSummary(t, q, &rollout.Summary{Waiting: 2})
	expectSummary(t, q, nil)
	// Admitted members do not wait.
	for _, name := range []string{"c", "d"} {
		expectTurn(t, q, name, rollout.Turn{Verdict: rollout.Go})
	}
	put(q, rollout.Failed, "c")
	expectSummary(t, q, nil)
}

// An unknown member may be moving or have failed.
func TestQueue_AdmitsNoneBeforeAllMembersAreKnown(t *testing.T) {
	q := rollout.NewQueue(limits(1), []types.UID{uid("a"), uid("b"), uid("gone")})
	expectNames(t, put(q, rollout.Waiting, "b"))
	expectTurn(t, q, "b", rollout.Turn{Place: 1, Of: 1})
	expectNames(t, put(q, rollout.Moving, "a"))
	var woken []string
	for _, key := range q.Forget(uid("gone")) {
		woken = append(woken, key.Name)
	}
	expectNames(t, woken, "b")
	expectTurn(t, q, "b", rollout.Turn{Verdict: rollout.Wait, Place: 2, Of: 2})
}

// The queue also waits for the custom resources of a namespace that is added later.
func TestQueue_ExpectWaitsForMoreMembers(t *testing.T) {
	q := rollout.NewQueue(limits(1), nil)
	put(q, rollout.Waiting, "b", "c")
	expectTurn(t, q, "b", rollout.Turn{Verdict: rollout.Go})
	q.Expect([]types.UID{uid("b"), uid("late")})
	expectTurn(t, q, "c", rollout.Turn{Verdict: rollout.Unknown, Place: 2, Of: 2})
	expectTurn(t, q, "b", rollout.Turn{Verdict: rollout.Go})
	expectNames(t, put(q, rollout.Failed, "late"), "c")
	expectTurn(t, q, "c", rollout.Turn{Verdict: rollout.Stopped, Place: 3, Of: 3})
}

func TestQueue_UnhealthyMembersComeLast(t *testing.T) {
	q := rollout.NewQueue(limits(1), nil)
	unhealthy := member("a", rollout.Waiting)
	unhealthy.Unhealthy = true
	q.Upsert(uid("a"), unhealthy)
	put(q, rollout.Waiting, "z")
	expectTurn(t, q, "a", rollout.Turn{Verdict: rollout.Wait, Place: 2, Of: 2})
	expectTurn(t, q, "z", rollout.Turn{Verdict: rollout.Go})
}

// While another namespace needs them, a namespace gets at most half of the slots.
func TestQueue_SharesSlotsBetweenNamespaces(t *testing.T) {
	q := rollout.NewQueue(limits(4), nil)
	for i := range 5 {
		for _, namespace := range []string{"a", "b"} {
			name := fmt.Sprintf("%s%d", namespace, i)
			q.Upsert(uid(name), memberIn(namespace, name, rollout.Waiting))
		}
	}
	ask := func(names ...string) (admitted []string) {
		for _, name := range names {
			if q.Turn(uid(name)).Verdict == rollout.Go {
				admitted = append(admitted, name)
			}
		}
		return admitted
	}
	expectNames(t, ask("a0", "a1", "a2", "a3", "b0", "b1", "b2"), "a0", "a1", "b0", "b1")
	// All of a namespace have moved: the other one gets all slots.
	for i := range 5 {
		name := fmt.Sprintf("b%d", i)
		q.Upsert(uid(name), memberIn("b", name, rollout.Done))
	}
	expectNames(t, ask("a2", "a3", "a4"), "a2", "a3")
}

// Whatever users edit, their custom resources do not delay the others.
func TestQueue_EditsTakeNoSlot(t *testing.T) {
	q := rollout.NewQueue(limits(1), nil)
	edit := func(name string) (woken []string) {
		edited := member(name, rollout.Moving)
		edited.Edited = true
		for _, key := range q.Upsert(uid(name), edited) {
			woken = append(woken, key.Name)
		}
		return woken
	}
	put(q, rollout.Waiting, "a", "b", "c", "d")
	// Edited before its turn. When the upgrade has begun, nothing shows that an edit was the
	// reason.
	edit("a")
	put(q, rollout.Moving, "a")
	expectTurn(t, q, "b", rollout.Turn{Verdict: rollout.Go})
	put(q, rollout.Moving, "b")
	expectTurn(t, q, "c", rollout.Turn{Verdict: rollout.Wait, Place: 3, Of: 4})
	// Edited after its upgrade, before it is ready.
	expectNames(t, edit("b"), "c")
	expectTurn(t, q, "c", rollout.Turn{Verdict: rollout.Go})
	expectTurn(t, q, "d", rollout.Turn{Verdict: rollout.Wait, Place: 4, Of: 4})

	// After a restart, the Queue cannot know who moved a member.
	q = rollout.NewQueue(limits(1), []types.UID{uid("a"), uid("b"), uid("c")})
	put(q, rollout.Moving, "a", "b")
	put(q, rollout.Waiting, "c")
	expectTurn(t, q, "c", rollout.Turn{Verdict: rollout.Wait, Place: 3, Of: 3})
}

// A member that moves without a verdict and without an edit takes a slot, however late the
// Queue finds out: an upgrade of the previous process, or one that failed and moves again.
func TestQueue_UpgradesTakeSlots(t *testing.T) {
	q := rollout.NewQueue(limits(2), []types.UID{uid("a"), uid("b"), uid("c"), uid("d")})
	put(q, rollout.Waiting, "a", "b", "c")
	put(q, rollout.Moving, "a")
	expectNames(t, put(q, rollout.Waiting, "d"), "b", "c", "d")
	expectTurn(t, q, "b", rollout.Turn{Verdict: rollout.Go})
	put(q, rollout.Moving, "b")
	expectNames(t, put(q, rollout.Failed, "b"), "c", "d")
	expectNames(t, put(q, rollout.Moving, "b"), "c", "d")
	expectTurn(t, q, "c", rollout.Turn{Verdict: rollout.Wait, Place: 3, Of: 4})
	expectNames(t, put(q, rollout.Done, "a"), "c")
}

// TestQueue_Properties simulates rollouts with events in random order, where only
// the custom resources that the Queue returns are reconciled. The Queue never admits
// more than the limit, admits none after a failure, and leaves none waiting once all
// failures are fixed.
func TestQueue_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(t, "most")
		positions := map[string]rollout.Position{}
		var expected []types.UID
		for i := range rapid.IntRange(0, 12).Draw(t, "resources") {
			// The first letter is the namespace.
			name := fmt.Sprintf("%sr%02d", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace"), i)
			positions[name] = rapid.SampledFrom([]rollout.Position{rollout.Waiting, rollout.Waiting, rollout.Done, rollout.Skipped, rollout.Moving, rollout.Failed}).Draw(t, name)
			expected = append(expected, uid(name))
		}
		stopAfter := rapid.IntRange(1, 3).Draw(t, "stopAfter")
		q := rollout.NewQueue(rollout.Limits{MaxConcurrent: most, StopAfterNamespaces: stopAfter}, expected)
		// Admitted members wait for their upgrade. They hold a slot until they have moved, as
		// do those that move without a verdict.
		admitted, holds := map[string]bool{}, map[string]bool{}
		var queue []string
		reconcile := func(name string) {
			position, there := positions[name]
			if !there {
				return
			}
			for _, key := range q.Upsert(uid(name), memberIn(name[:1], name, position)) {
				queue = append(queue, key.Name)
			}
			if position == rollout.Moving {
				holds[name] = true
			}
			if position != rollout.Waiting || admitted[name] {
				return
			}
			failed := map[string]bool{}
			for other, s := range positions {
				if s == rollout.Failed {
					failed[other[:1]] = true
				}
			}
			if q.Turn(uid(name)).Verdict == rollout.Go {
				if failed[name[:1]] || len(failed) >= stopAfter || len(holds) >= most {
					t.Fatalf("%s is admitted while %v hold the %d slots, failed in namespaces %v", name, holds, most, failed)
				}
				admitted[name], holds[name] = true, true
			}
		}
		become := func(name string, position rollout.Position) {
			positions[name] = position
			delete(admitted, name)
			if position != rollout.Moving {
				delete(holds, name)
			}
			reconcile(name)
		}
		queue = append(queue, slices.Sorted(maps.Keys(positions))...)
		drain := func() {
			for len(queue) > 0 {
				name := queue[0]
				queue = queue[1:]
				reconcile(name)
			}
		}
		names := slices.Sorted(maps.Keys(positions))
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			if len(queue) > 0 && rapid.Bool().Draw(t, "reconcile") {
				reconcile(queue[0])
				queue = queue[1:]
				continue
			}
			if len(names) == 0 {
				break
			}
			name := rapid.SampledFrom(names).Draw(t, "name")
			switch position := positions[name]; {
			case admitted[name]:
				become(name, rapid.SampledFrom([]rollout.Position{rollout.Moving, rollout.Failed, rollout.Done}).Draw(t, "outcome"))
			case position == rollout.Moving, position == rollout.Failed:
				become(name, rapid.SampledFrom([]rollout.Position{rollout.Moving, rollout.Failed, rollout.Done, rollout.Skipped}).Draw(t, "outcome"))
			case position == rollout.Skipped:
				become(name, rollout.Waiting)
			case rapid.Bool().Draw(t, "was moving"):
				become(name, rollout.Moving)
			}
		}
		// Every upgrade succeeds from here on.
		for range 2*len(names) + 2 {
			drain()
			for _, name := range names {
				if admitted[name] || positions[name] == rollout.Moving || positions[name] == rollout.Failed {
					become(name, rollout.Done)
				}
			}
		}
		for name, position := range positions {
			if position == rollout.Waiting {
				t.Fatalf("%s still waits: %v", name, q.Turn(uid(name)))
			}
		}
	})
}
