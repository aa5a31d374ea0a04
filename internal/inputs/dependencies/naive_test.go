package dependencies

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// verify compares the results of the store with those computed from scratch, and expects a
// notification of each change.
func (w *world) verify() {
	w.targetsOf = map[Key][]Key{}
	for key, u := range w.users {
		got := w.check(w.byUID[u.UID], w.time)
		if waits := w.naiveWaits(key); got.waits != waits {
			w.t.Fatalf("%v waits for %v, want %v", key, got.waits, waits)
		}
		if inCycle := w.naiveReaches(key, key); (got.cycle != nil) != inCycle {
			w.t.Fatalf("%v has the cycle %v, want one: %t", key, got.cycle, inCycle)
		}
		w.verifyCycle(key, got.cycle)
		verdict := Verdict{Cycle: got.cycle}
		if got.waits != (Unready{}) {
			verdict.Waits = &got.waits
		}
		last, known := w.checked[u.UID]
		same := last.result == text(verdict)
		if w.resting.Has(u.UID) {
			same = strings.HasPrefix(last.result, fmt.Sprint(got.cycle))
		}
		if known && !same && !w.ended(last.until) {
			w.t.Fatalf("%v was not notified: the last Check returned %s, and now is %s", key, last.result, text(verdict))
		}
	}
	for _, gvk := range []schema.GroupVersionKind{appGVK, dbGVK} {
		for _, name := range w.names {
			key := keyOf(gvk, name)
			got, want := w.dependents(key, w.time).blocking, w.naiveDependents(key)
			if !slices.Equal(got, want) {
				w.t.Fatalf("%v is blocked by %v, want %v", key, got, want)
			}
		}
	}
	for uid, last := range w.asked {
		if now := fmt.Sprint(w.naiveDependents(last.key)); now != last.result && !w.ended(last.until) {
			w.t.Fatalf("%v was not notified: it was blocked by %v, and now by %v", uid, last.result, now)
		}
	}
}

func (w *world) ended(until time.Time) bool { return !until.IsZero() && !w.time.Before(until) }

// verifyCycle expects a valid cycle that contains a custom resource, from the smallest one.
func (w *world) verifyCycle(key Key, cycle []Key) {
	if len(cycle) == 0 {
		return
	}
	if !slices.Contains(cycle, key) || slices.MinFunc(cycle, compareKeys) != cycle[0] {
		w.t.Fatalf("%v has the cycle %v", key, cycle)
	}
	for i, at := range cycle {
		if next := cycle[(i+1)%len(cycle)]; !slices.Contains(w.naiveTargets(at), next) {
			w.t.Fatalf("%v has the cycle %v, but %v does not depend on %v", key, cycle, at, next)
		}
	}
}

// naiveMembers returns the objects that a reference of a user includes.
func (w *world) naiveMembers(user Key, r Ref) (found []Key) {
	if r.Name != "" {
		return []Key{r.key()}
	}
	selects, err := labels.Parse(r.Selector)
	if err != nil {
		w.t.Fatal(err)
	}
	for key, o := range w.objects {
		if key.GroupKind == r.Kind.GroupKind() && key != user && selects.Matches(labels.Set(o.GetLabels())) {
			found = append(found, key)
		}
	}
	slices.SortFunc(found, compareKeys)
	return found
}

func (w *world) naiveTargets(user Key) []Key {
	found, known := w.targetsOf[user]
	if !known {
		for _, r := range w.refs[user] {
			found = append(found, w.naiveMembers(user, r)...)
		}
		w.targetsOf[user] = found
	}
	return found
}

func (w *world) naiveReaches(from, to Key) bool {
	seen := map[Key]bool{}
	var visit func(Key)
	visit = func(at Key) {
		for _, next := range w.naiveTargets(at) {
			if !seen[next] {
				seen[next] = true
				visit(next)
			}
		}
	}
	visit(from)
	_, known := w.users[to]
	return seen[to] && known
}

func (w *world) naiveWaits(user Key) Unready {
	for _, r := range w.refs[user] {
		members := w.naiveMembers(user, r)
		unready := Unready{Key: r.key(), Selector: r.Selector}
		switch {
		case !w.synced[r.Kind.GroupKind()]:
			unready.Message = messageNotListed
		case len(members) == 0:
			unready.Message = messageNoMatch
		}
		for _, key := range members {
			if unready.Message == "" {
				if unready.Message = w.naiveMessage(key); unready.Message != "" {
					unready.Key = key
				}
			}
		}
		if unready.Message != "" {
			return unready
		}
	}
	return Unready{}
}

func (w *world) naiveMessage(key Key) string {
	o := w.objects[key]
	if o == nil {
		return messageNotFound
	}
	if w.served(key.GroupKind) {
		h, known := w.holds[o.GetUID()]
		switch {
		case !known:
			return messageUnreconciled
		case h.why != "":
			return h.why
		case number(o.GetResourceVersion()) < number(h.resourceVersion):
			return messageStatusBehind
		}
	}
	observed, found, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	switch {
	case !found && w.served(key.GroupKind):
		return "no condition Ready yet"
	case !found && w.time.Before(epoch.Add(time.Minute)):
		return "no status reported by the controller yet"
	case !found:
		return ""
	case observed < 2:
		return "the status is about generation 1, want 2"
	default:
		return conditions[0].(map[string]any)["message"].(string)
	}
}

func number(version string) (n int) {
	_, _ = fmt.Sscan(version, &n)
	return n
}

func (w *world) naiveDependents(of Key) (found []Dependent) {
	for kind, since := range w.since {
		if w.expected[kind] && w.pending[kind].Len() > 0 || !w.expected[kind] && w.time.Before(since.Add(expectTimeout)) {
			found = append(found, Dependent{Key{GroupKind: kind}, fmt.Sprintf("the operator has yet to reconcile custom resources of the kind %s", kind)})
		}
	}
	selected := false
	for key := range maps.Keys(w.users) {
		u := w.users[key]
		for _, r := range w.refs[key] {
			selected = selected || r.Selector != "" && r.Kind.GroupKind() == of.GroupKind
		}
		if !slices.Contains(w.naiveTargets(key), of) || !u.Released || w.naiveReaches(of, key) && w.naiveReaches(key, of) {
			continue
		}
		switch {
		case u.Deleting.IsZero():
			found = append(found, Dependent{Key: key})
		case w.time.Before(u.Deleting.Add(u.Bound)):
			found = append(found, Dependent{key, "is being deleted"})
		}
	}
	if selected && !w.synced[of.GroupKind] {
		found = append(found, Dependent{Key{GroupKind: of.GroupKind}, messageNotListed})
	}
	slices.SortStableFunc(found, func(a, b Dependent) int { return compareKeys(a.Key, b.Key) })
	return found
}
