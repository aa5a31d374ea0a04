package dependencies

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/inventory/health"
)

func rule(t *testing.T, ready string) *health.Rule {
	t.Helper()
	compiled, errs := health.Compile(ready, "", "")
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return compiled
}

func packed(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	text, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	result, err := customresource.Decoder{}.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestCheck_Readiness(t *testing.T) {
	deleting := metav1.NewTime(epoch)
	database, bucket := newObject(dbGVK, "d"), newObject(bucketGVK, "d")
	terminating := database.DeepCopy()
	terminating.SetDeletionTimestamp(&deleting)
	noStatus := bucket.DeepCopy()
	delete(noStatus.Object, "status")
	noStatus.SetCreationTimestamp(metav1.NewTime(epoch.Add(-20 * time.Second)))
	unreported := database.DeepCopy()
	delete(unreported.Object, "status")
	small := database.DeepCopy()
	small.Object["spec"] = map[string]any{"size": "small"}
	for _, test := range []struct {
		name   string
		object *unstructured.Unstructured
		ready  string
		want   string
		next   time.Duration
	}{
		{name: "ready", object: database},
		{name: "not ready", object: withStatus(database, 2, "False", "pods\n  are starting"), want: "d: pods are starting"},
		{name: "long message", object: withStatus(database, 2, "False", strings.Repeat("x", 300)), want: "d: " + strings.Repeat("x", 197) + "…"},
		{name: "no message", object: withStatus(database, 2, "Unknown", ""), want: "d: no condition Ready yet"},
		{name: "stale generation", object: withStatus(database, 1, "True", ""), want: "d: the status is about generation 1, want 2"},
		{name: "stale generation and rule", object: withStatus(database, 1, "True", ""), ready: "true", want: "d: the status is about generation 1, want 2"},
		{name: "being deleted", object: terminating, want: "d: it is being deleted"},
		{name: "being deleted and rule", object: terminating, ready: "true", want: "d: it is being deleted"},
		{name: "no status", object: unreported, want: "d: no condition Ready yet"},
		{name: "rule", object: withStatus(small, 2, "False", "not yet"), ready: "self.spec.size == 'small' && self.status.observedGeneration == 2"},
		{name: "rule not met", object: small, ready: "self.spec.size == 'large'", want: "d: health rule: ready is false"},
		{name: "other kind, ready", object: bucket},
		{name: "other kind, not ready", object: withStatus(bucket, 2, "False", "quota exceeded"), want: "d: quota exceeded"},
		{name: "other kind, stale generation", object: withStatus(bucket, 1, "True", ""), want: "d: the status is about generation 1, want 2"},
		{name: "other kind without status", object: noStatus, want: "d: no status reported by the controller yet", next: 40 * time.Second},
		{name: "other kind and rule", object: bucket, ready: "self.metadata.name == 'e'", want: "d: health rule: ready is false"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRecordingStore()
			of := ref(test.object.GroupVersionKind(), "d")
			if test.ready != "" {
				of.Ready = rule(t, test.ready)
			}
			r.Set(app("x"), []Ref{of})
			r.settled(test.object)
			r.expectWaits(t, "x", test.want)
			if got := r.Check("App-x", r.time).Next; got != test.next {
				t.Errorf("next check after %s, want %s", got, test.next)
			}
			if test.object.GroupVersionKind() == dbGVK {
				r.put(packed(t, test.object))
				r.expectWaits(t, "x", test.want)
			}
			r.time = r.time.Add(test.next)
			if test.next > 0 {
				r.expectWaits(t, "x", "")
			}
		})
	}
}

func TestCheck_RuleOfTheUsersKind(t *testing.T) {
	r := newRecordingStore()
	r.Serve(appGVK.GroupKind(), nil, health.Rules{bucketGVK.GroupKind(): rule(t, "self.metadata.name == 'e'")})
	r.put(newObject(bucketGVK, "d"))
	r.Set(app("x"), []Ref{ref(bucketGVK, "d")})
	r.expectWaits(t, "x", "d: health rule: ready is false")
	own := ref(bucketGVK, "d")
	own.Ready = rule(t, "self.metadata.name == 'd'")
	r.Set(app("x"), []Ref{own})
	r.expectWaits(t, "x", "")
}

func TestCheck_SecretOnlyHasToExist(t *testing.T) {
	r := newRecordingStore()
	r.Set(app("x"), []Ref{ref(secretGVK, "s")})
	r.expectWaits(t, "x", "s: not found")
	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s", UID: "s", ResourceVersion: "1"}}
	r.Feed(secretGVK).Handler().OnAdd(secret, true)
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "")
	r.Feed(secretGVK).Handler().OnDelete(secret)
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "s: not found")
}

// The first dependency in the order of the references that is not ready is reported.
func TestCheck_FirstUnreadyDependency(t *testing.T) {
	r := newRecordingStore()
	r.settled(newObject(dbGVK, "a"))
	r.Set(app("x"), []Ref{ref(dbGVK, "a"), ref(dbGVK, "c"), ref(dbGVK, "b")})
	r.expectWaits(t, "x", "c: not found")
}

func TestCheck_EvaluatesOncePerVersion(t *testing.T) {
	r := newRecordingStore()
	d := packed(t, newObject(dbGVK, "d"))
	r.settled(d)
	r.Set(app("x"), []Ref{ref(dbGVK, "d")})
	r.expectWaits(t, "x", "")
	// A change that no event reports has no effect.
	d.Object["status"] = "no JSON"
	r.expectWaits(t, "x", "")
	r.put(d.DeepCopy())
	if waits := r.Check("App-x", r.time).Waits; waits == nil || !strings.HasPrefix(waits.Message, "cannot read the status") {
		t.Errorf("waits for %v", waits)
	}
}

func TestCheck_UnlistedKinds(t *testing.T) {
	r := newRecordingStore()
	gvk := schema.GroupVersionKind{Group: "other.example.org", Version: "v1", Kind: "Queue"}
	r.Set(app("x"), []Ref{ref(gvk, "q")})
	r.expectWaits(t, "x", "q: the objects are not listed yet")
	f := r.Feed(gvk)
	f.Handler().OnAdd(newObject(gvk, "q"), true)
	r.expectNotified(t)
	r.expectWaits(t, "x", "q: the objects are not listed yet")
	if !f.Failed("forbidden") || f.Failed("forbidden") {
		t.Error("a failure is new exactly once")
	}
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "q: forbidden")
	f.Synced()
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "")
	// The known objects may be old.
	if !f.Failed("away") {
		t.Error("a failure after the first list is not reported")
	}
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "q: away")
	f.Synced()
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "")
}

func TestCheck_Selector(t *testing.T) {
	r := newRecordingStore()
	r.Set(app("x"), []Ref{selector(dbGVK, "tier=gold")})
	r.expectWaits(t, "x", "tier=gold: no object matches the selector")
	b := r.settled(labeled(newObject(dbGVK, "b"), "tier", "gold"))
	r.expectNotified(t, "App-x", "App-x")
	r.expectWaits(t, "x", "")
	r.settled(labeled(withStatus(newObject(dbGVK, "c"), 2, "False", "starting"), "tier", "silver"))
	elsewhere := labeled(withStatus(newObject(dbGVK, "e"), 2, "False", "starting"), "tier", "gold")
	elsewhere.SetNamespace("other")
	r.settled(elsewhere)
	r.expectNotified(t)
	c := r.put(labeled(withStatus(newObject(dbGVK, "c"), 2, "False", "starting"), "tier", "gold"))
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "ctier=gold: starting")
	r.remove(b)
	r.expectNotified(t)
	r.remove(c)
	r.expectNotified(t, "App-x")
	r.expectWaits(t, "x", "tier=gold: no object matches the selector")
}

func TestCheck_SelectorNeverMatchesItsUser(t *testing.T) {
	r := newRecordingStore()
	r.put(labeled(withStatus(newObject(appGVK, "x"), 2, "False", "waiting"), "tier", "gold"))
	r.Set(app("x"), []Ref{selector(appGVK, "tier=gold")})
	r.expectWaits(t, "x", "tier=gold: no object matches the selector")
	r.settled(labeled(newObject(appGVK, "y"), "tier", "gold"))
	r.expectWaits(t, "x", "")
	if cycle := r.Check("App-x", r.time).Cycle; cycle != nil {
		t.Errorf("cycle %v", cycle)
	}
	// It is no reason for others to wait for themselves, either.
	r.Set(app("y"), []Ref{selector(appGVK, "tier=gold,other!=label")})
	r.expectWaits(t, "y", "xtier=gold,other!=label: "+messageUnreconciled)
}
