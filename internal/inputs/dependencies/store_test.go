package dependencies

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestHold_UntilSettled(t *testing.T) {
	r := newRecordingStore()
	r.Set(app("x"), []Ref{ref(dbGVK, "d")})
	r.expectWaits(t, "x", "d: not found")
	d := r.put(newObject(dbGVK, "d"))
	r.expectWaits(t, "x", "d: "+messageUnreconciled)
	r.Hold(d.GetUID(), "queues in a rollout:\nbatch 2")
	r.expectWaits(t, "x", "d: queues in a rollout: batch 2")
	r.notified = nil

	// The status of version 3 is not delivered yet.
	r.Settle(d.GetUID(), "3")
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "d: "+messageStatusBehind)
	r.put(d.DeepCopy())
	r.expectNotified(t)
	r.expectWaits(t, "x", "d: "+messageStatusBehind)
	r.put(d.DeepCopy())
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "")
	r.Settle(d.GetUID(), "2")
	r.expectNotified(t)
	r.expectWaits(t, "x", "")

	r.Hold(d.GetUID(), "upgrade running")
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "d: upgrade running")
	r.Settle(d.GetUID(), "")
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "")
}

// A restarted kind has the effect of a restart of the operator.
func TestServe_HoldsAgain(t *testing.T) {
	r := newRecordingStore()
	r.Set(app("x"), []Ref{ref(dbGVK, "d")})
	old := r.Feed(dbGVK)
	d := r.settled(newObject(dbGVK, "d"))
	r.expectWaits(t, "x", "")
	r.notified = nil

	r.Suspend(dbGVK.GroupKind())
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "d: the operator is restarting the kind")
	// The reconciler that is ending.
	r.Settle(d.GetUID(), "")
	r.expectWaits(t, "x", "d: the operator is restarting the kind")
	r.Serve(dbGVK.GroupKind(), nil, nil)
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "d: the objects are not listed yet")
	// Late events of the previous informer.
	old.Handler().OnAdd(newObject(dbGVK, "d"), false)
	old.Synced()
	old.Failed("ended")
	r.expectWaits(t, "x", "d: the objects are not listed yet")
	r.Feed(dbGVK).Handler().OnAdd(d, true)
	r.Feed(dbGVK).Synced()
	r.expectWaits(t, "x", "d: "+messageUnreconciled)
	r.Settle(d.GetUID(), d.GetResourceVersion())
	r.expectWaits(t, "x", "")
}

func TestStop_LeavesTheKindToOthers(t *testing.T) {
	r := newRecordingStore()
	r.Set(app("x"), []Ref{ref(dbGVK, "d")})
	r.put(newObject(dbGVK, "d"))
	r.expectWaits(t, "x", "d: "+messageUnreconciled)
	r.notified = nil
	old := r.Feed(dbGVK)
	r.Stop(dbGVK.GroupKind())
	old.Handler().OnDelete(newObject(dbGVK, "d"))
	old.Synced()
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "d: the objects are not listed yet")
	r.put(newObject(dbGVK, "d"))
	r.Feed(dbGVK).Synced()
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "")
}

// The operator begins to serve a kind whose objects it already watches.
func TestServe_ReplacesTheFeed(t *testing.T) {
	r := newRecordingStore()
	r.Set(app("x"), []Ref{ref(bucketGVK, "d")})
	r.put(newObject(bucketGVK, "d"))
	r.expectWaits(t, "x", "")
	old := r.Feed(bucketGVK)
	r.Serve(bucketGVK.GroupKind(), nil, nil)
	r.expectWaits(t, "x", "d: "+messageNotListed)
	r.Stop(bucketGVK.GroupKind())
	old.Handler().OnAdd(newObject(bucketGVK, "d"), false)
	old.Synced()
	r.expectWaits(t, "x", "d: "+messageNotListed)
}

// A custom resource with the name of a deleted one is held.
func TestHold_EndsWithTheObject(t *testing.T) {
	r := newRecordingStore()
	r.Set(app("x"), []Ref{ref(dbGVK, "d")})
	r.settled(newObject(dbGVK, "d"))
	again := newObject(dbGVK, "d")
	again.SetUID("again")
	r.put(again)
	r.expectWaits(t, "x", "d: "+messageUnreconciled)
	r.remove(again)
	r.Forget("again")
	r.Settle("again", "")
	r.Forget("again")
	if len(r.holds) > 0 {
		t.Errorf("left over: %v", r.holds)
	}
}

func TestNotify_OnlyIfTheVerdictChanges(t *testing.T) {
	r := newRecordingStore()
	r.Set(app("x"), []Ref{ref(dbGVK, "d")})
	r.Set(app("other"), []Ref{ref(dbGVK, "e")})
	r.expectWaits(t, "other", "e: not found")
	d := r.settled(newObject(dbGVK, "d"))
	r.expectWaits(t, "x", "")
	r.notified = nil

	r.put(d.DeepCopy())
	r.put(labeled(withStatus(d, 2, "True", "still ready"), "some", "label"))
	r.expectNotified(t)
	r.put(withStatus(d, 2, "False", "pod 1 fails"))
	r.expectNotified(t, "App-x")
	r.put(withStatus(d, 2, "False", "pod 1 fails"))
	r.expectNotified(t)
	r.put(withStatus(d, 2, "False", "pod 2 fails"))
	r.expectNotified(t, "App-x")
	r.put(d.DeepCopy())
	r.expectNotified(t, "App-x")

	r.Set(app("x"), []Ref{ref(dbGVK, "e")})
	r.put(withStatus(d, 2, "False", "pod 1 fails"))
	r.expectNotified(t)
	r.Forget("App-x")
	r.settled(newObject(dbGVK, "e"))
	r.expectNotified(t, "App-other", "App-other")
}

func TestRest_UntilNextCheck(t *testing.T) {
	r := newRecordingStore()
	r.Set(app("x"), []Ref{ref(dbGVK, "d"), ref(appGVK, "y")})
	d := r.settled(newObject(dbGVK, "d"))
	r.settled(newObject(appGVK, "y"))
	r.expectWaits(t, "x", "")
	r.notified = nil

	r.Rest("App-x")
	r.Hold(d.GetUID(), "upgrade running")
	r.expectNotified(t)
	r.Set(app("y"), []Ref{ref(appGVK, "x")})
	r.expectNotified(t, "App-x")
	r.Set(app("y"), nil)
	r.expectNotified(t, "App-x")

	r.expectWaits(t, "x", "d: upgrade running")
	r.Settle(d.GetUID(), "")
	r.expectNotified(t, "App-x")
}

func TestForget_LeavesNothing(t *testing.T) {
	r := newRecordingStore()
	for _, name := range []string{"x", "y", "z"} {
		r.settled(labeled(newObject(appGVK, name), "tier", "gold"))
		r.Set(app(name), []Ref{ref(appGVK, "x"), selector(appGVK, "tier=gold"), ref(bucketGVK, name)})
		r.Check(app(name).UID, r.time)
		r.Dependents(keyOf(appGVK, name), r.time)
	}
	for _, name := range []string{"x", "y", "z"} {
		r.remove(newObject(appGVK, name))
		r.Forget(app(name).UID)
	}
	feed := r.Feed(appGVK)
	if left := len(r.byUID) + len(r.byKey) + len(r.targets) + len(r.at) + len(r.holds) + len(r.blocked) + len(feed.objects) + len(feed.uids); left > 0 {
		t.Errorf("left over: %+v", r.Store)
	}
}

func TestHas(t *testing.T) {
	r := newRecordingStore()
	key := keyOf(dbGVK, "d")
	first := r.put(newObject(dbGVK, "d")).GetResourceVersion()
	if r.Has(key, first) {
		t.Error("Has is true for an object without dependents")
	}
	r.Set(app("x"), []Ref{ref(dbGVK, "d")})
	second := r.put(newObject(dbGVK, "d")).GetResourceVersion()
	for version, want := range map[string]bool{first: true, second: true, second + "0": false} {
		if got := r.Has(key, version); got != want {
			t.Errorf("Has(%s) is %t with version %s", version, got, second)
		}
	}
	if r.Has(keyOf(dbGVK, "other"), first) {
		t.Error("Has is true for a missing object")
	}
}

// A reference may have a namespace if the scope of the kind was not known.
func TestCheck_ClusterScopedObject(t *testing.T) {
	r := newRecordingStore()
	issuer := func(name string) *unstructured.Unstructured {
		o := withStatus(newObject(bucketGVK, name), 2, "True", "")
		o.SetNamespace("")
		return labeled(o, "tier", "gold")
	}
	r.Set(app("x"), []Ref{ref(bucketGVK, "main")})
	r.Set(app("y"), []Ref{selector(bucketGVK, "tier=gold")})
	r.expectWaits(t, "x", "main: not found")
	r.expectWaits(t, "y", "tier=gold: no object matches the selector")
	r.put(issuer("main"))
	r.expectNotified(t, "App-x", "App-y")
	r.expectWaits(t, "x", "")
	r.expectWaits(t, "y", "")
	r.remove(issuer("main"))
	r.expectNotified(t, "App-x", "App-y")
}
