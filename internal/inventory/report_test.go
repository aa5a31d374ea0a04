package inventory

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory/health"
)

// widget returns the state of a custom resource with a status, and its health.
func widget(t *testing.T, name string, owner types.UID, version, status string) (*apply.State, *Health) {
	t.Helper()
	o := object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: `+name+`, namespace: apps, generation: 1, creationTimestamp: "2026-05-06T07:08:09Z"}}`)
	if status != "" {
		o.Object["status"] = map[string]any{"phase": status}
	}
	return &apply.State{
		Key: apply.Key{Group: "example.com", Kind: "Widget", Namespace: "apps", Name: name}, UID: types.UID(name), ResourceVersion: version, Generation: 1, Owner: owner, Managed: true,
	}, HealthConfig{}.healthOf(o)
}

// An object without a report is not ready for the grace period, or as long as another object
// of its kind has a report.
func TestHealth_WaitsForReport(t *testing.T) {
	began := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	late := began.Add(health.Grace)
	l := newRecordingIndex()
	l.observe(widget(t, "a", web, "10", ""))
	if s := l.Health(web, began); len(s.Unready) != 1 || !s.Unready[0].OpenEnded || !s.Next.Equal(late) {
		t.Errorf("during the grace period: %+v", s)
	}
	if s := l.Health(web, late); len(s.Unready) != 0 || len(s.Assumed) != 1 || !s.Next.IsZero() {
		t.Errorf("after the grace period: %+v", s)
	}
	// When the controller reports on the second object, both owners are notified.
	notified := len(l.changed)
	l.observe(widget(t, "b", other, "11", "Up"))
	if got := l.changed[notified:]; len(got) != 2 || got[0] != other || got[1] != web {
		t.Errorf("got notifications %v", got)
	}
	if s := l.Health(web, late); len(s.Unready) != 1 || !s.Unready[0].OpenEnded || !s.Next.IsZero() {
		t.Errorf("another object has a report: %+v", s)
	}
	l.observe(widget(t, "a", web, "12", "Up"))
	if s := l.Health(web, late); len(s.Unready)+len(s.Assumed) != 0 {
		t.Errorf("with a report: %+v", s)
	}
	l.purge(schema.GroupKind{Group: "example.com", Kind: "Widget"})
	l.observe(widget(t, "a", web, "13", ""))
	if s := l.Health(web, late); len(s.Unready) != 0 {
		t.Errorf("after the watch was restarted: %+v", s)
	}
}

func TestHealth_OpenEndedComesLast(t *testing.T) {
	l := newRecordingIndex()
	for name, status := range map[string]string{"a": "", "b": "Pending", "c": "Failed"} {
		l.observe(widget(t, name, web, "10", status))
	}
	if got := l.unready(); !strings.HasPrefix(got, "c Failed, b Pending, a ") {
		t.Errorf("got unready objects %s", got)
	}
}

// A rule applies to objects that belong to custom resources of its kind, and requires that
// the watch delivers whole objects.
func TestHealthConfig_AppliesRulesOfOwnerKind(t *testing.T) {
	rule, mistakes := health.Compile("self.data.done == 'yes'", "", "")
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	gk := schema.GroupKind{Kind: "ConfigMap"}
	j := HealthConfig{Rules: NewRuleSet(map[schema.GroupKind]health.Rules{{Group: "shop.example.com", Kind: "Cache"}: {gk: rule}})}
	if _, whole := j.watchedType(gk.WithVersion("v1")).(*unstructured.Unstructured); !whole {
		t.Error("ConfigMaps are not watched whole")
	}
	if _, whole := j.watchedType(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}).(*unstructured.Unstructured); whole {
		t.Error("Secrets are watched whole")
	}
	for owner, ready := range map[string]bool{"Cache.shop.example.com/default/web": false, "Other.shop.example.com/default/web": true, "": true} {
		o := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {done: 'no'}}")
		o.SetAnnotations(map[string]string{api.AnnotationOwner: owner})
		kept, err := j.transform(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := kept.(cachedObject).health; got.Ready != ready { //nolint:forcetypeassert // or the test fails
			t.Errorf("owner %q: %+v", owner, got)
		}
	}
}

// An expected object that another custom resource has taken over is not ready, although it works.
func TestHealth_ForeignObjectIsNotReady(t *testing.T) {
	l := newRecordingIndex()
	state, found := widget(t, "a", web, "10", "Up")
	l.observe(state, found)
	l.Expect(web, []apply.State{*state})
	if s := l.Health(web, time.Now()); len(s.Unready) != 0 {
		t.Fatalf("before: %+v", s)
	}
	taken, found := widget(t, "a", other, "11", "Up")
	l.observe(taken, found)
	if s := l.Health(web, time.Now()); len(s.Unready) != 1 || s.Unready[0].Reason != ReasonForeign || !s.Unready[0].Failed {
		t.Errorf("after another custom resource has taken it over: %+v", s)
	}
	if s := l.Health(other, time.Now()); len(s.Unready) != 0 {
		t.Errorf("the other custom resource: %+v", s)
	}
}
