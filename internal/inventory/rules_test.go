package inventory

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory/health"
	"github.com/chartwright/chartwright/internal/testenv"
)

// TestSetHealthRules_ListsObjectsAgain: a rule that is added while the watch runs applies
// to existing objects, and its removal, too. A deletion in between is not missed.
func TestSetHealthRules_ListsObjectsAgain(t *testing.T) {
	env := testenv.Shared(t)
	w := newServerWatches(t, env.Config, env.Config)
	owner := schema.GroupKind{Group: "shop.example.com", Kind: "Cache"}
	w.ensureWatched(t, web, configMaps)
	var states []apply.State
	for _, name := range []string{"one", "other"} {
		object := configMap(name, ownerLabels)
		object.SetAnnotations(map[string]string{api.AnnotationOwner: "Cache.shop.example.com/default/web"})
		states = append(states, w.write(t, api.FieldManager, object))
	}
	// Other tests share the API server.
	t.Cleanup(func() {
		if err := w.maps().DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: api.LabelOperator}); err != nil {
			t.Error(err)
		}
	})
	w.Expect(web, states)
	unready := func() int { return len(w.Health(web, time.Now()).Unready) }
	waitFor := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.After(testenv.Limit); !holds(); {
			select {
			case <-w.changed:
			case <-w.notified:
			case <-time.After(20 * time.Millisecond):
			case <-deadline:
				t.Fatalf("%s: %d unready", what, unready())
			}
		}
	}
	waitFor("without a rule", func() bool { return unready() == 0 })

	never, mistakes := health.Compile("self.data.done == 'yes'", "", "")
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	w.SetHealthRules(t.Context(), owner, health.Rules{configMaps.GroupKind(): never})
	waitFor("with a rule", func() bool { return unready() == 2 })
	w.patch(t, "one", `{"data": {"done": "yes"}}`)
	waitFor("after a change", func() bool { return unready() == 1 })
	w.SetHealthRules(t.Context(), owner, nil)
	waitFor("without the rule", func() bool { return unready() == 0 })
	w.delete(t, "other")
	waitFor("after a deletion", func() bool { return unready() == 1 })
}

func TestForgetUnlisted(t *testing.T) {
	x := newRecordingIndex()
	state := func(name, version string) *apply.State {
		return &apply.State{Key: apply.Key{Kind: "ConfigMap", Namespace: "default", Name: name}, UID: "uid", ResourceVersion: version, Owner: web, Managed: true}
	}
	for _, name := range []string{"listed", "deleted", "written"} {
		x.observe(state(name, "5"), nil)
	}
	before := x.liveIn(configMaps.GroupKind(), "default")
	if others := x.liveIn(configMaps.GroupKind(), "other"); len(before) != 3 || len(others) != 0 {
		t.Fatalf("%d objects, %d in another namespace", len(before), len(others))
	}
	x.observe(state("written", "6"), nil)
	x.forgetUnlisted(before, map[apply.Key]bool{state("listed", "").Key: true})
	for name, want := range map[string]bool{"listed": true, "deleted": false, "written": true} {
		if _, exists := x.Get(state(name, "").Key); exists != want {
			t.Errorf("%s: %v, want %v", name, exists, want)
		}
	}
}
