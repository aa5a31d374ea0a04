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

// widget is the state of an object of a custom kind, and its health as of a status.
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

// TestHealth_WaitsForAReport: an object without a report waits for the grace
// period, or for as long as others of its kind have one.
func TestHealth_WaitsForAReport(t *testing.T) {
	began := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	late := began.Add(health.Grace)
	l := newListened()
	l.observe(widget(t, "a", web, "10", ""))
	if s := l.Health(web, began); len(s.Unready) != 1 || !s.Unready[0].OpenEnded || !s.Next.Equal(late) {
		t.Errorf("in the grace period: %+v", s)
	}
	if s := l.Health(web, late); len(s.Unready) != 0 || len(s.Assumed) != 1 || !s.Next.IsZero() {
		t.Errorf("after it: %+v", s)
	}
	// The owner of the first is told when the controller reports on the second.
	told := len(l.changed)
	l.observe(widget(t, "b", other, "11", "Up"))
	if got := l.changed[told:]; len(got) != 2 || got[0] != other || got[1] != web {
		t.Errorf("told %v", got)
	}
	if s := l.Health(web, late); len(s.Unready) != 1 || !s.Unready[0].OpenEnded || !s.Next.IsZero() {
		t.Errorf("others have a report: %+v", s)
	}
	l.observe(widget(t, "a", web, "12", "Up"))
	if s := l.Health(web, late); len(s.Unready)+len(s.Assumed) != 0 {
		t.Errorf("reported: %+v", s)
	}
	l.purge(schema.GroupKind{Group: "example.com", Kind: "Widget"})
	l.observe(widget(t, "a", web, "13", ""))
	if s := l.Health(web, late); len(s.Unready) != 0 {
		t.Errorf("watched anew: %+v", s)
	}
}

// TestHealth_OpenEndedComesLast: what has a deadline is named first.
func TestHealth_OpenEndedComesLast(t *testing.T) {
	l := newListened()
	for name, status := range map[string]string{"a": "", "b": "Pending", "c": "Failed"} {
		l.observe(widget(t, name, web, "10", status))
	}
	if got := l.unready(); !strings.HasPrefix(got, "c Failed, b Pending, a ") {
		t.Errorf("not ready are %s", got)
	}
}

// TestJudge_RulesOfTheOwnersKind: a rule holds for the objects of the kind whose
// entry has it, and makes the watch deliver them whole.
func TestJudge_RulesOfTheOwnersKind(t *testing.T) {
	rule, mistakes := health.Compile("self.data.done == 'yes'", "", "")
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	gk := schema.GroupKind{Kind: "ConfigMap"}
	j := HealthConfig{Rules: map[schema.GroupKind]health.Rules{{Group: "shop.example.com", Kind: "Cache"}: {gk: rule}}}
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
			t.Errorf("of %q: %+v", owner, got)
		}
	}
}
