package dependencies

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
)

// world is the input of a Store, and what the users have last received from it. Its methods
// with the prefix naive compute results from scratch.
type world struct {
	*recordingStore
	t       *rapid.T
	names   []string
	users   map[Key]User
	refs    map[Key][]Ref
	objects map[Key]*unstructured.Unstructured
	holds   map[types.UID]hold
	since   map[schema.GroupKind]time.Time
	// expected are the kinds after Expect, and pending the custom resources to Set.
	expected map[schema.GroupKind]bool
	pending  map[schema.GroupKind]sets.Set[types.UID]
	// reconciled are the custom resources that were Set since Serve.
	reconciled map[schema.GroupKind]sets.Set[types.UID]
	synced     map[schema.GroupKind]bool

	serial int
	// targetsOf holds results of naiveTargets.
	targetsOf map[Key][]Key
	// checked and asked are the last results of Check and Dependents, without a
	// notification since.
	checked map[types.UID]received[string]
	asked   map[types.UID]received[string]
	// resting are the users since Rest.
	resting sets.Set[types.UID]
}

// received is a result, and when it ends by itself.
type received[T any] struct {
	key    Key
	result T
	until  time.Time
}

var worldKinds = []schema.GroupVersionKind{appGVK, dbGVK, bucketGVK}

func newWorld(t *rapid.T) *world {
	w := &world{
		recordingStore: &recordingStore{time: epoch}, t: t, users: map[Key]User{}, refs: map[Key][]Ref{},
		objects: map[Key]*unstructured.Unstructured{}, holds: map[types.UID]hold{}, since: map[schema.GroupKind]time.Time{},
		expected: map[schema.GroupKind]bool{}, pending: map[schema.GroupKind]sets.Set[types.UID]{},
		reconciled: map[schema.GroupKind]sets.Set[types.UID]{}, synced: map[schema.GroupKind]bool{},
		checked: map[types.UID]received[string]{}, asked: map[types.UID]received[string]{}, resting: sets.Set[types.UID]{},
	}
	for i := range rapid.IntRange(1, 15).Draw(t, "names") {
		w.names = append(w.names, fmt.Sprintf("%02d", i))
	}
	w.Store = NewStore(func(uid types.UID) {
		delete(w.checked, uid)
		delete(w.asked, uid)
	})
	w.now = func() time.Time { return w.time }
	w.serve(appGVK)
	w.serve(dbGVK)
	for _, gvk := range worldKinds {
		w.synced[gvk.GroupKind()] = true
		w.Feed(gvk).Synced()
		for _, name := range w.names {
			w.putObject(gvk, keyOf(gvk, name))
			if w.served(gvk.GroupKind()) {
				w.setUser(keyOf(gvk, name))
			}
		}
	}
	return w
}

func (w *world) serve(gvk schema.GroupVersionKind) {
	kind := gvk.GroupKind()
	w.Serve(kind, []schema.GroupKind{appGVK.GroupKind(), dbGVK.GroupKind()}, nil)
	w.since[kind], w.expected[kind], w.synced[kind] = w.time, false, false
	w.pending[kind], w.reconciled[kind] = sets.Set[types.UID]{}, sets.Set[types.UID]{}
	for key, o := range w.objects {
		if key.GroupKind == kind {
			delete(w.holds, o.GetUID())
			delete(w.objects, key)
			delete(w.asked, o.GetUID())
		}
	}
}

func (w *world) served(kind schema.GroupKind) bool { return kind != bucketGVK.GroupKind() }

func (w *world) drawKey(kinds ...schema.GroupVersionKind) (schema.GroupVersionKind, Key) {
	gvk := rapid.SampledFrom(kinds).Draw(w.t, "kind")
	return gvk, keyOf(gvk, rapid.SampledFrom(w.names).Draw(w.t, "name"))
}

func (w *world) drawRef() Ref {
	gvk, key := w.drawKey(worldKinds...)
	switch rapid.IntRange(0, 3).Draw(w.t, "by") {
	case 0:
		return selector(gvk, rapid.SampledFrom([]string{"tier=0", "tier=1", "tier"}).Draw(w.t, "selector"))
	default:
		return ref(gvk, key.Name)
	}
}

func (w *world) actions() map[string]func(*rapid.T) {
	do := func(f func()) func(*rapid.T) { return func(t *rapid.T) { w.t = t; f() } }
	return map[string]func(*rapid.T){
		"":           do(w.verify),
		"set":        do(w.doSet),
		"set again":  do(w.doSet),
		"forget":     do(w.doForget),
		"object":     do(w.doObject),
		"hold":       do(w.doHold),
		"settle":     do(w.doSettle),
		"check":      do(w.doCheck),
		"begin":      do(w.doBegin),
		"rest":       do(w.doRest),
		"dependents": do(w.doDependents),
		"kind":       do(w.doKind),
		"wait": do(func() {
			w.time = w.time.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(w.t, "duration"))
		}),
	}
}

// uidOfKey returns the UID of a custom resource, which changes if it is created again.
func (w *world) uidOfKey(key Key) types.UID {
	if u, known := w.users[key]; known {
		return u.UID
	}
	if o := w.objects[key]; o != nil {
		return o.GetUID()
	}
	w.serial++
	return types.UID(fmt.Sprintf("%s-%s-%d", key.Kind, key.Name, w.serial))
}

func (w *world) doSet() {
	_, key := w.drawKey(appGVK, dbGVK)
	w.setUser(key)
}

func (w *world) setUser(key Key) {
	u := User{Key: key, UID: w.uidOfKey(key), Released: rapid.Bool().Draw(w.t, "released"), Bound: time.Minute}
	if rapid.IntRange(0, 2).Draw(w.t, "deleting") == 0 {
		u.Deleting = epoch
	}
	w.users[key], w.refs[key] = u, nil
	for range rapid.IntRange(0, 2).Draw(w.t, "refs") {
		w.refs[key] = append(w.refs[key], w.drawRef())
	}
	w.pending[key.GroupKind].Delete(u.UID)
	w.reconciled[key.GroupKind].Insert(u.UID)
	w.Set(u, w.refs[key])
	// A user checks itself after Set.
	delete(w.checked, u.UID)
}

func (w *world) doForget() {
	_, key := w.drawKey(appGVK, dbGVK)
	uid := w.uidOfKey(key)
	delete(w.users, key)
	delete(w.refs, key)
	delete(w.checked, uid)
	w.pending[key.GroupKind].Delete(uid)
	w.reconciled[key.GroupKind].Delete(uid)
	if w.objects[key] == nil {
		delete(w.holds, uid)
	}
	w.Forget(uid)
}

func (w *world) doObject() {
	gvk, key := w.drawKey(worldKinds...)
	before := w.objects[key]
	if before != nil && rapid.IntRange(0, 3).Draw(w.t, "delete") == 0 {
		delete(w.objects, key)
		delete(w.asked, before.GetUID())
		delete(w.holds, before.GetUID())
		if w.served(key.GroupKind) {
			w.pending[key.GroupKind].Delete(before.GetUID())
		}
		w.remove(before)
		return
	}
	w.putObject(gvk, key)
}

func (w *world) putObject(gvk schema.GroupVersionKind, key Key) {
	o := newObject(gvk, key.Name)
	o.SetUID(w.uidOfKey(key))
	o.SetCreationTimestamp(metav1.NewTime(epoch))
	switch rapid.IntRange(0, 4).Draw(w.t, "status") {
	case 0:
		o = withStatus(o, 1, "True", "")
	case 1:
		o = withStatus(o, 2, "False", rapid.SampledFrom([]string{"starting", "failed"}).Draw(w.t, "message"))
	case 2:
		delete(o.Object, "status")
	}
	if tier := rapid.SampledFrom([]string{"0", "1", ""}).Draw(w.t, "tier"); tier != "" {
		o = labeled(o, "tier", tier)
	}
	w.objects[key] = o
	w.put(o)
}

func (w *world) doHold() {
	_, key := w.drawKey(appGVK, dbGVK)
	if o := w.objects[key]; o != nil {
		w.holds[o.GetUID()] = hold{why: "held"}
		w.Hold(o.GetUID(), "held")
	}
}

func (w *world) doSettle() {
	_, key := w.drawKey(appGVK, dbGVK)
	if o := w.objects[key]; o != nil {
		version := strconv.Itoa(w.version + rapid.IntRange(-1, 1).Draw(w.t, "version"))
		w.holds[o.GetUID()] = hold{resourceVersion: version}
		w.Settle(o.GetUID(), version)
	}
}

func (w *world) doKind() {
	gvk := rapid.SampledFrom(worldKinds).Draw(w.t, "kind")
	kind := gvk.GroupKind()
	switch step := rapid.IntRange(0, 9).Draw(w.t, "step"); {
	case step == 0 && w.served(kind):
		w.serve(gvk)
	case step < 6 && w.served(kind) && w.synced[kind]:
		var uids []types.UID
		for key, o := range w.objects {
			if key.GroupKind != kind {
				continue
			}
			uids = append(uids, o.GetUID())
			if !w.reconciled[key.GroupKind].Has(o.GetUID()) {
				w.pending[kind].Insert(o.GetUID())
			}
		}
		w.expected[kind] = true
		w.Expect(kind, uids)
	default:
		w.synced[kind] = true
		w.Feed(gvk).Synced()
	}
}

func (w *world) doCheck() {
	_, key := w.drawKey(appGVK, dbGVK)
	u, known := w.users[key]
	if !known {
		return
	}
	v := w.Check(u.UID, w.time)
	w.checked[u.UID] = received[string]{key: key, result: text(v), until: w.end(v.Next)}
	w.resting.Delete(u.UID)
}

func (w *world) doBegin() {
	_, key := w.drawKey(appGVK, dbGVK)
	u, known := w.users[key]
	if !known {
		return
	}
	v := w.Begin(u.UID, w.time)
	u.Released = u.Released || v.Waits == nil
	w.users[key] = u
	w.checked[u.UID] = received[string]{key: key, result: text(v), until: w.end(v.Next)}
	w.resting.Delete(u.UID)
}

func (w *world) doRest() {
	_, key := w.drawKey(appGVK, dbGVK)
	if u, known := w.users[key]; known {
		w.Rest(u.UID)
		w.resting.Insert(u.UID)
	}
}

func (w *world) doDependents() {
	_, key := w.drawKey(appGVK, dbGVK)
	blocking, after := w.Dependents(key, w.time)
	if len(blocking) > 0 && w.objects[key] != nil {
		w.asked[w.objects[key].GetUID()] = received[string]{key: key, result: fmt.Sprint(blocking), until: w.end(after)}
	}
}

func (w *world) end(after time.Duration) time.Time {
	if after == 0 {
		return time.Time{}
	}
	return w.time.Add(after)
}

func text(v Verdict) string {
	result := fmt.Sprint(v.Cycle)
	if v.Waits != nil {
		result += fmt.Sprint(*v.Waits)
	}
	return result
}
