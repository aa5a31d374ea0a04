package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inputs/dependencies"
	"github.com/chartwright/chartwright/internal/plan"
)

// served makes the custom resource one that others may depend on.
func served(w *world) *dependencies.Store {
	store := dependencies.NewStore(func(types.UID) {})
	w.Dependencies = store
	store.Serve(webs, nil, nil)
	feed := store.Feed(webs.WithVersion("v1"))
	feed.Synced()
	feed.Handler().OnAdd(w.apiServer.cr.DeepCopy(), true)
	return store
}

// uses makes a custom resource depend on that of the world.
func uses(store *dependencies.Store, user dependencies.User) {
	store.Set(user, []dependencies.Ref{{Kind: webs.WithVersion("v1"), Namespace: webKey.Namespace, Name: webKey.Name}})
}

// shop returns a custom resource with a release.
func shop() dependencies.User {
	return dependencies.User{
		Key: dependencies.Key{GroupKind: schema.GroupKind{Group: "example.com", Kind: "App"}, NamespacedName: types.NamespacedName{Namespace: webKey.Namespace, Name: "shop"}},
		UID: "shop", Released: true,
	}
}

// storeInUse deletes a custom resource that another one depends on.
func storeInUse(w *world) {
	storeInSync(w)
	uses(served(w), shop())
	w.deleted()
}

func TestDependents_DelayDeletion(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(w *world, user *dependencies.User)
		states  []plan.State
		ready   string
		after   time.Duration
		message string
	}{
		{"live", func(*world, *dependencies.User) {}, []plan.State{plan.StateInUse}, "False " + api.ReasonInUse, 0, `In use by App shop: delete what depends on this custom resource first, or set the annotation chartwright.dev/deletion-order to "ignore"`},
		{"in another namespace", func(_ *world, u *dependencies.User) { u.Namespace = "other" }, []plan.State{plan.StateInUse}, "False " + api.ReasonInUse, 0, "In use by App other/shop"},
		{"being deleted", func(w *world, u *dependencies.User) { u.Deleting, u.Bound = w.Now(), time.Minute }, []plan.State{plan.StateInUse}, "False " + api.ReasonInUse, time.Minute, "Waits for custom resources that depend on this one: App shop is being deleted"},
		{"being deleted for too long", func(w *world, u *dependencies.User) { u.Deleting, u.Bound = w.Now().Add(-time.Minute), time.Minute }, []plan.State{plan.StateDeleting}, "", 0, ""},
		{"without a release", func(_ *world, u *dependencies.User) { u.Released = false }, []plan.State{plan.StateDeleting}, "", 0, ""},
		{"ignored", func(w *world, _ *dependencies.User) { w.annotate(api.AnnotationDeletionOrder, api.DeletionOrderIgnore) }, []plan.State{plan.StateDeleting}, "", 0, ""},
		{"terminating namespace", func(w *world, _ *dependencies.User) { w.actions.terminating = true }, []plan.State{plan.StateDeleting}, "", 0, ""},
		{"namespace cannot be read", func(w *world, _ *dependencies.User) { w.actions.unread = errRecorded }, []plan.State{plan.StateInUse}, "False " + api.ReasonInUse, 30 * time.Second, "In use by App shop"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			user := shop()
			store := served(w)
			storeInSync(w)
			w.deleted()
			test.change(w, &user)
			uses(store, user)
			states, result := w.reconcile()
			if ready := w.ready(); !slices.Equal(states, test.states) || ready != test.ready {
				t.Errorf("decided on %v, and the condition Ready is %q", states, ready)
			}
			if waits := test.ready != ""; waits && result.RequeueAfter != test.after {
				t.Errorf("RequeueAfter is %s, want %s", result.RequeueAfter, test.after)
			}
			if !strings.Contains(w.message(), test.message) {
				t.Errorf("the message is %q, want %q in it", w.message(), test.message)
			}
			w.settled()
			events := w.events()
			if got, want := slices.Contains(events, "Warning "+api.ReasonInUse), test.ready != "" && test.after == 0; got != want {
				t.Errorf("the events are %v", events)
			}
		})
	}
}

// A pause of the deletion ends when the namespace is deleted, which no event reports.
func TestPausedDeletion_EndsInTerminatingNamespace(t *testing.T) {
	w := newWorld(t)
	storeInSync(w)
	w.annotate(api.AnnotationPause, "including-deletion")
	w.deleted()
	states, result := w.reconcile()
	if !slices.Equal(states, []plan.State{plan.StatePaused}) || result.RequeueAfter == 0 {
		t.Fatalf("decided on %v, again after %s", states, result.RequeueAfter)
	}
	w.actions.terminating = true
	if states, _ := w.reconcile(); !slices.Equal(states, []plan.State{plan.StateDeleting}) {
		t.Errorf("decided on %v in a namespace that is being deleted", states)
	}
	w.settled()
}

// lateStore calls a function at each Hold: after a decision, and before its action starts.
type lateStore struct {
	*dependencies.Store
	before func()
}

func (s lateStore) Hold(uid types.UID, why string) {
	s.Store.Hold(uid, why)
	s.before()
}

// An interrupted uninstall continues, whatever depends on the custom resource now.
func TestDependents_DoNotStopUninstall(t *testing.T) {
	w := newWorld(t)
	w.stored(1, api.StatusUninstalling)
	uses(served(w), shop())
	w.deleted()
	w.reconcile()
	w.settled()
	if called := w.actions.called(); called != "Uninstall" {
		t.Errorf("called %q", called)
	}
}

// An install and the deletion of what it depends on are decided at the same time.
func TestDependents_InstallRacesDeletion(t *testing.T) {
	t.Run("the install begins first", func(t *testing.T) {
		w := newWorld(t)
		store, feed := dependent(w)
		feed.OnAdd(database(metav1.ConditionTrue, "1"), false)
		w.reconcile()
		w.settled()
		// The next reconciliation has yet to report the release.
		blocking, _ := store.Dependents(dependencies.Key{GroupKind: databases.GroupKind(), NamespacedName: types.NamespacedName{Namespace: webKey.Namespace, Name: "db"}}, w.Now())
		if len(blocking) != 1 || blocking[0].Key.Name != webKey.Name {
			t.Errorf("the deletion waits for %v", blocking)
		}
	})
	t.Run("the install begins before the uninstall", func(t *testing.T) {
		w := newWorld(t)
		store := served(w)
		storeInSync(w)
		w.deleted()
		user := shop()
		user.Released = false
		uses(store, user)
		w.Dependencies = lateStore{store, func() {
			store.Set(shop(), []dependencies.Ref{{Kind: webs.WithVersion("v1"), Namespace: webKey.Namespace, Name: webKey.Name}})
		}}
		if states, _ := w.reconcile(); !slices.Equal(states, []plan.State{plan.StateDeleting}) {
			t.Errorf("decided on %v", states)
		}
		w.settled()
		if called := w.actions.called(); called != "" {
			t.Errorf("called %q", called)
		}
		if states, _ := w.reconcile(); !slices.Equal(states, []plan.State{plan.StateInUse}) {
			t.Errorf("then decided on %v", states)
		}
	})
}
