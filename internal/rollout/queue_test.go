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

func member(name string, standing rollout.Position) rollout.Member {
	return memberIn("apps", name, standing)
}

func memberIn(namespace, name string, standing rollout.Position) rollout.Member {
	return rollout.Member{Key: types.NamespacedName{Namespace: namespace, Name: name}, Position: standing}
}

// limits let so many go at a time, and stop everywhere at two namespaces.
func limits(most int) rollout.Limits {
	return rollout.Limits{MaxConcurrent: most, StopAfterNamespaces: 2}
}

func uid(name string) types.UID { return types.UID("uid-" + name) }

// put notes how some stand, and returns the names of who is to be looked at.
func put(l *rollout.Queue, standing rollout.Position, names ...string) (woken []string) {
	for _, name := range names {
		for _, key := range l.Upsert(uid(name), member(name, standing)) {
			woken = append(woken, key.Name)
		}
	}
	return woken
}

func expectTurn(t *testing.T, l *rollout.Queue, name string, want rollout.Turn) {
	t.Helper()
	if got := l.Turn(uid(name)); got != want {
		t.Errorf("the turn of %s is %+v, expected %+v", name, got, want)
	}
}

func expectNames(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("to be looked at (-want +got):\n%s", diff)
	}
}

func TestLineLetsSomeGoAtATime(t *testing.T) {
	l := rollout.NewQueue(limits(2), nil)
	put(l, rollout.Waiting, "d", "b", "c", "a")
	put(l, rollout.Done, "done")
	put(l, rollout.Skipped, "held")
	// What is no news calls for nothing.
	expectNames(t, put(l, rollout.Waiting, "d"))
	expectTurn(t, l, "c", rollout.Turn{Verdict: rollout.Wait, Place: 4, Of: 5})
	expectTurn(t, l, "b", rollout.Turn{Verdict: rollout.Go})
	expectTurn(t, l, "a", rollout.Turn{Verdict: rollout.Go})
	// What was said is said again, and counts.
	expectTurn(t, l, "a", rollout.Turn{Verdict: rollout.Go})
	expectTurn(t, l, "c", rollout.Turn{Verdict: rollout.Wait, Place: 4, Of: 5})
	expectNames(t, put(l, rollout.Moving, "b"))
	// A place stays what it is while others go.
	expectTurn(t, l, "d", rollout.Turn{Verdict: rollout.Wait, Place: 5, Of: 5})
	expectNames(t, put(l, rollout.Done, "b"), "c")
	expectTurn(t, l, "d", rollout.Turn{Verdict: rollout.Wait, Place: 5, Of: 5})
	expectTurn(t, l, "c", rollout.Turn{Verdict: rollout.Go})
	expectNames(t, put(l, rollout.Done, "a"), "d")
	expectTurn(t, l, "d", rollout.Turn{Verdict: rollout.Go})
	if diff := cmp.Diff(map[rollout.Position]int{rollout.Done: 3, rollout.Moving: 2, rollout.Skipped: 1, rollout.Waiting: 0}, l.Positions()); diff != "" {
		t.Error(diff)
	}
}

func TestLineStops(t *testing.T) {
	l := rollout.NewQueue(limits(1), nil)
	put(l, rollout.Waiting, "a", "b", "c")
	expectTurn(t, l, "a", rollout.Turn{Verdict: rollout.Go})
	expectNames(t, put(l, rollout.Failed, "a"), "b", "c")
	expectTurn(t, l, "b", rollout.Turn{Verdict: rollout.Stopped, Place: 2, Of: 3})
	// Another try changes nothing as long as it fails; an edit goes all the same.
	expectNames(t, put(l, rollout.Moving, "edited"))
	expectNames(t, put(l, rollout.Done, "edited"))
	expectNames(t, put(l, rollout.Done, "a"), "b", "c")
	expectTurn(t, l, "c", rollout.Turn{Verdict: rollout.Wait, Place: 4, Of: 4})
	expectTurn(t, l, "b", rollout.Turn{Verdict: rollout.Go})
	put(l, rollout.Failed, "b")
	var woken []string
	for _, key := range l.Forget(uid("b")) {
		woken = append(woken, key.Name)
	}
	expectNames(t, woken, "c")
	expectTurn(t, l, "c", rollout.Turn{Verdict: rollout.Go})
}

// One tenant must not withhold a chart from the others; a chart that fails in
// several namespaces must not reach more of them.
func TestLine_StopsPerNamespaceFirst(t *testing.T) {
	l := rollout.NewQueue(limits(1), nil)
	woken := func(namespace, name string, standing rollout.Position) (names []string) {
		for _, key := range l.Upsert(uid(name), memberIn(namespace, name, standing)) {
			names = append(names, key.Name)
		}
		return names
	}
	for _, name := range []string{"a1", "a2", "b1", "b2", "c1"} {
		woken(name[:1], name, rollout.Waiting)
	}
	expectTurn(t, l, "a1", rollout.Turn{Verdict: rollout.Go})
	expectNames(t, woken("a", "a1", rollout.Failed), "a2", "b1")
	expectTurn(t, l, "a2", rollout.Turn{Verdict: rollout.Stopped, Place: 2, Of: 5})
	expectSummary(t, l, &rollout.Summary{Stopped: true, Failed: []types.NamespacedName{{Namespace: "a", Name: "a1"}}, Waiting: 1})
	// The place in the queue is that among all; what is stopped does not keep the next one waiting.
	expectTurn(t, l, "b2", rollout.Turn{Verdict: rollout.Wait, Place: 4, Of: 5})
	expectTurn(t, l, "b1", rollout.Turn{Verdict: rollout.Go})
	expectSummary(t, l, nil)
	// The second namespace stops all.
	expectNames(t, woken("b", "b1", rollout.Failed), "a2", "b2", "c1")
	expectTurn(t, l, "c1", rollout.Turn{Verdict: rollout.Stopped, Place: 5, Of: 5})
	expectSummary(t, l, &rollout.Summary{Stopped: true, Everywhere: true, Failed: []types.NamespacedName{{Namespace: "a", Name: "a1"}, {Namespace: "b", Name: "b1"}}, Waiting: 3})
	// One of them repaired, the others go on.
	expectNames(t, woken("a", "a1", rollout.Done), "a2", "b2", "c1")
	expectTurn(t, l, "b2", rollout.Turn{Verdict: rollout.Stopped, Place: 4, Of: 5})
	expectTurn(t, l, "a2", rollout.Turn{Verdict: rollout.Go})
	expectNames(t, woken("b", "b1", rollout.Done), "b2")
	expectSummary(t, l, &rollout.Summary{Waiting: 2})
}

func TestLineIsPaused(t *testing.T) {
	l := rollout.NewQueue(limits(3), nil)
	put(l, rollout.Waiting, "a", "b")
	expectTurn(t, l, "a", rollout.Turn{Verdict: rollout.Go})
	if keys := l.Pause(true); len(keys) != 1 || keys[0].Name != "b" {
		t.Errorf("the pause is told to %v", keys)
	}
	expectTurn(t, l, "a", rollout.Turn{Verdict: rollout.Go})
	expectTurn(t, l, "b", rollout.Turn{Verdict: rollout.Paused, Place: 2, Of: 2})
	if keys := l.Pause(true); len(keys) != 0 {
		t.Errorf("the same pause is told to %v", keys)
	}
	l.Pause(false)
	expectTurn(t, l, "b", rollout.Turn{Verdict: rollout.Go})
}

func expectSummary(t *testing.T, l *rollout.Queue, want *rollout.Summary) {
	t.Helper()
	var got *rollout.Summary
	if news, is := l.Summary(); is {
		got = &news
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the news (-want +got):\n%s", diff)
	}
}

// A Summary is returned once, and neither before all were seen nor where nobody waits.
func TestLineTellsThatItStops(t *testing.T) {
	l := rollout.NewQueue(limits(3), []types.UID{uid("a"), uid("b"), uid("c")})
	put(l, rollout.Failed, "b", "a")
	expectSummary(t, l, nil)
	put(l, rollout.Skipped, "c")
	expectSummary(t, l, nil)
	put(l, rollout.Waiting, "c", "d")
	failed := []types.NamespacedName{member("a", "").Key, member("b", "").Key}
	expectSummary(t, l, &rollout.Summary{Stopped: true, Failed: failed, Waiting: 2})
	expectSummary(t, l, nil)
	put(l, rollout.Done, "b")
	expectSummary(t, l, nil)
	l.Pause(true)
	put(l, rollout.Done, "a")
	expectSummary(t, l, nil)
	l.Pause(false)
	expectSummary(t, l, &rollout.Summary{Waiting: 2})
	expectSummary(t, l, nil)
	// One that was let go does not wait.
	for _, name := range []string{"c", "d"} {
		expectTurn(t, l, name, rollout.Turn{Verdict: rollout.Go})
	}
	put(l, rollout.Failed, "c")
	expectSummary(t, l, nil)
}

// Nobody goes before all have been seen: one of them may be on its way, or have
// failed.
func TestLineWaitsUntilAllAreSeen(t *testing.T) {
	l := rollout.NewQueue(limits(1), []types.UID{uid("a"), uid("b"), uid("gone")})
	expectNames(t, put(l, rollout.Waiting, "b"))
	expectTurn(t, l, "b", rollout.Turn{Place: 1, Of: 1})
	expectNames(t, put(l, rollout.Moving, "a"))
	var woken []string
	for _, key := range l.Forget(uid("gone")) {
		woken = append(woken, key.Name)
	}
	expectNames(t, woken, "b")
	expectTurn(t, l, "b", rollout.Turn{Verdict: rollout.Wait, Place: 2, Of: 2})
}

// Those who come with another namespace are waited for, too.
func TestLineExpectsOthers(t *testing.T) {
	l := rollout.NewQueue(limits(1), nil)
	put(l, rollout.Waiting, "b", "c")
	expectTurn(t, l, "b", rollout.Turn{Verdict: rollout.Go})
	l.Expect([]types.UID{uid("b"), uid("late")})
	expectTurn(t, l, "c", rollout.Turn{Verdict: rollout.Unknown, Place: 2, Of: 2})
	expectTurn(t, l, "b", rollout.Turn{Verdict: rollout.Go})
	expectNames(t, put(l, rollout.Failed, "late"), "c")
	expectTurn(t, l, "c", rollout.Turn{Verdict: rollout.Stopped, Place: 3, Of: 3})
}

func TestAilingComeLast(t *testing.T) {
	l := rollout.NewQueue(limits(1), nil)
	ailing := member("a", rollout.Waiting)
	ailing.Unhealthy = true
	l.Upsert(uid("a"), ailing)
	put(l, rollout.Waiting, "z")
	expectTurn(t, l, "a", rollout.Turn{Verdict: rollout.Wait, Place: 2, Of: 2})
	expectTurn(t, l, "z", rollout.Turn{Verdict: rollout.Go})
}

// TestLineProperties plays rollouts in which anything may happen in any order,
// and in which only those are looked at again that the Queue names: never are
// more let go than may, none while one has failed, and in the end, when what
// fails is mended, nobody is left behind.
func TestLineProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(t, "most")
		standings := map[string]rollout.Position{}
		var expected []types.UID
		for i := range rapid.IntRange(0, 12).Draw(t, "resources") {
			// The first letter is the namespace.
			name := fmt.Sprintf("%sr%02d", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace"), i)
			standings[name] = rapid.SampledFrom([]rollout.Position{rollout.Waiting, rollout.Waiting, rollout.Done, rollout.Skipped, rollout.Moving, rollout.Failed}).Draw(t, name)
			expected = append(expected, uid(name))
		}
		stopAfter := rapid.IntRange(1, 3).Draw(t, "stopAfter")
		l := rollout.NewQueue(rollout.Limits{MaxConcurrent: most, StopAfterNamespaces: stopAfter}, expected)
		let := map[string]bool{}
		var queue []string
		look := func(name string) {
			standing, there := standings[name]
			if !there {
				return
			}
			for _, key := range l.Upsert(uid(name), memberIn(name[:1], name, standing)) {
				queue = append(queue, key.Name)
			}
			if standing != rollout.Waiting || let[name] {
				return
			}
			under := len(let)
			failed, moving := map[string]bool{}, 0
			for other, s := range standings {
				if s == rollout.Failed {
					failed[other[:1]] = true
				}
				if s == rollout.Moving {
					moving++
				}
			}
			if l.Turn(uid(name)).Verdict == rollout.Go {
				if failed[name[:1]] || len(failed) >= stopAfter || moving+under >= most {
					t.Fatalf("%s is let go while %d of %d are under way, failed in: %v", name, moving+under, most, failed)
				}
				let[name] = true
			}
		}
		become := func(name string, standing rollout.Position) {
			standings[name] = standing
			delete(let, name)
			look(name)
		}
		queue = append(queue, slices.Sorted(maps.Keys(standings))...)
		drain := func() {
			for len(queue) > 0 {
				name := queue[0]
				queue = queue[1:]
				look(name)
			}
		}
		names := slices.Sorted(maps.Keys(standings))
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			if len(queue) > 0 && rapid.Bool().Draw(t, "look") {
				look(queue[0])
				queue = queue[1:]
				continue
			}
			if len(names) == 0 {
				break
			}
			name := rapid.SampledFrom(names).Draw(t, "name")
			switch standing := standings[name]; {
			case let[name]:
				become(name, rapid.SampledFrom([]rollout.Position{rollout.Moving, rollout.Failed, rollout.Done}).Draw(t, "outcome"))
			case standing == rollout.Moving, standing == rollout.Failed:
				become(name, rapid.SampledFrom([]rollout.Position{rollout.Moving, rollout.Failed, rollout.Done, rollout.Skipped}).Draw(t, "outcome"))
			case standing == rollout.Skipped:
				become(name, rollout.Waiting)
			}
		}
		// From now on all goes well.
		for range 2*len(names) + 2 {
			drain()
			for _, name := range names {
				if let[name] || standings[name] == rollout.Moving || standings[name] == rollout.Failed {
					become(name, rollout.Done)
				}
			}
		}
		for name, standing := range standings {
			if standing == rollout.Waiting {
				t.Fatalf("%s was left behind: %v", name, l.Turn(uid(name)))
			}
		}
	})
}
