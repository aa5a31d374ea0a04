package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/watches"
)

// sourcedFrom makes the custom resource take values from an object of a kind and name, which
// has no value.
func sourcedFrom(w *world, kind schema.GroupVersionKind, name string) *fakeSources {
	w.t.Helper()
	w.Kind.Sources = make([]catalog.Source, 1)
	w.Kind.Sources[0].ValuesFrom = watches.ValuesFrom{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}
	var err error
	entry := watches.Watch{Group: "g", Version: "v1", Kind: "K", ReleaseNamespace: name}
	named, err := catalog.FromEntry(entry, w.Kind.Chart)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Kind.Sources[0].Object = named.Namespace
	ref := valuesfrom.Ref{Kind: kind, Namespace: webKey.Namespace, Name: name}
	sources := &fakeSources{fails: &valuesfrom.Error{
		Reason: api.ReasonValuesSourceMissing, Message: "valuesFrom[0]: " + ref.String() + ": no such key: host", Ref: ref,
	}}
	w.Sources = sources
	return sources
}

func TestDependency_MissingSourceOfValuesWaits(t *testing.T) {
	for _, test := range []struct {
		name    string
		kind    schema.GroupVersionKind
		source  string
		ready   metav1.ConditionStatus // of the Database db
		state   plan.State
		reason  string
		message string
		warned  bool
	}{
		{"ready without the field", databases, "db", metav1.ConditionTrue, plan.StateWaiting, api.ReasonDependencyNotReady, "Waits for Database db: valuesFrom[0]: Database apps/db: no such key: host", false},
		{"not ready", databases, "db", metav1.ConditionFalse, plan.StateWaiting, api.ReasonDependencyNotReady, "Waits for Database db: 0 of 1 objects are ready", false},
		{"another version of the kind", databases.GroupKind().WithVersion("v2"), "db", metav1.ConditionTrue, plan.StateWaiting, api.ReasonDependencyNotReady, "Waits for Database db: valuesFrom[0]: ", false},
		{"the Secret with its outputs", valuesfrom.SecretKind, "database-db-outputs", metav1.ConditionTrue, plan.StateWaiting, api.ReasonDependencyNotReady, "Waits for Database db: valuesFrom[0]: Secret apps/database-db-outputs", false},
		{"another Secret", valuesfrom.SecretKind, "database-other-outputs", metav1.ConditionTrue, plan.StateInvalid, api.ReasonValuesSourceMissing, "valuesFrom[0]: ", true},
		{"another name", databases, "other", metav1.ConditionTrue, plan.StateInvalid, api.ReasonValuesSourceMissing, "valuesFrom[0]: Database apps/other: no such key: host", true},
		{"another name, not ready", databases, "other", metav1.ConditionFalse, plan.StateInvalid, api.ReasonValuesSourceMissing, "valuesFrom[0]: Database apps/other: no such key: host", true},
		{"another kind", schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Queue"}, "db", metav1.ConditionTrue, plan.StateInvalid, api.ReasonValuesSourceMissing, "valuesFrom[0]: Queue apps/db: no such key: host", true},
	} {
		for _, deployed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deployed %t", test.name, deployed), func(t *testing.T) {
				w := newWorld(t)
				if deployed {
					storeInSync(w)
				}
				_, feed := dependent(w)
				feed.OnAdd(database(test.ready, "1"), true)
				sources := sourcedFrom(w, test.kind, test.source)
				w.reconcile()
				if states, _ := w.reconcile(); !slices.Equal(states, []plan.State{test.state}) {
					t.Errorf("decided on %v, want %s", states, test.state)
				}
				if ready := w.ready(); ready != "False "+test.reason || !strings.HasPrefix(w.message(), test.message) {
					t.Errorf("the condition Ready is %s: %s, want the reason %s: %s", ready, w.message(), test.reason, test.message)
				}
				if warned := slices.ContainsFunc(w.events(), func(event string) bool { return strings.HasPrefix(event, "Warning") }); warned != test.warned {
					t.Errorf("warned: %t, want %t", warned, test.warned)
				}
				if called := w.actions.called(); called != "" {
					t.Errorf("called %q", called)
				}
				sources.fails, sources.seen = nil, nil
				feed.OnUpdate(nil, database(metav1.ConditionTrue, "2"))
				w.reconcile()
				w.settled()
				if called := w.actions.called(); called != map[bool]string{false: "Install", true: "Upgrade"}[deployed] {
					t.Errorf("with the value, called %q", called)
				}
				if seen := slices.Contains(sources.seen, "Database apps/db 2"); seen != (test.kind.Kind == "Database" && test.source == "db") {
					t.Errorf("the source has seen the versions %v", sources.seen)
				}
			})
		}
	}
}
