package reconcile

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// fakeObserved returns one object for each selection, and records the selections.
type fakeObserved struct {
	asked     []catalog.Selection
	mu        sync.Mutex
	forgotten []types.UID
}

func (f *fakeObserved) Select(_ context.Context, _ types.UID, selections []catalog.Selection) (map[string]any, map[string]string) {
	f.asked = selections
	objects := map[string]any{}
	for _, s := range selections {
		objects[s.Name] = []any{map[string]any{"name": s.Name + "-0"}}
	}
	return objects, map[string]string{}
}

func (f *fakeObserved) Forget(user types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgotten = append(f.forgotten, user)
}

// ownFields returns a Reconciler of a kind with these status fields. They may read pods
// and, for a custom resource with spec.tier, other objects.
func ownFields(t *testing.T, status string) (r *Reconciler, fake *fakeObserved, woken *[]time.Duration) {
	t.Helper()
	kinds, err := catalog.FromFS(fstest.MapFS{
		"watches.yaml": {Data: []byte(`
- group: g
  version: v1
  kind: K
  chart: c
  observe:
    - {name: pods, apiVersion: v1, kind: Pod, selector: {matchLabels: {app: '{{ .release.name }}'}}}
    - {name: others, apiVersion: v1, kind: Pod, selector: {matchLabels: {tier: '{{ .spec.tier }}'}}}
  status: {` + status + `}
`)},
		"c/Chart.yaml":  {Data: []byte("apiVersion: v2\nname: c\nversion: 1.0.0")},
		"c/values.yaml": {Data: []byte("count: 3\nword: default")},
	}, "watches.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fake, woken = &fakeObserved{}, &[]time.Duration{}
	r = &Reconciler{Shared: Shared{Observed: fake, Inventory: inventory.Inventory{Index: &inventory.Index{}}}, Kind: kinds[0]}
	r.Wake = func(_ types.NamespacedName, after time.Duration) { *woken = append(*woken, after) }
	return r, fake, woken
}

func TestStatusFields_ReadTheSnapshot(t *testing.T) {
	r, fake, _ := ownFields(t, `where: "release.namespace + '/' + release.name + '@' + string(release.revision) + ' ' + release.chart", count: values.count, word: values.word, pods: "observed.pods.map(p, string(p.name))"`)
	v := viewOf([]string{api.StatusDeployed, api.StatusSuperseded})
	v.CR.SetUID("u")
	v.values = map[string]any{"word": "canary"}
	v.Secrets = valuesfrom.Secrets{"canary"}
	r.computeFields(t.Context(), v)
	if diff := cmp.Diff(map[string]any{
		"where": "apps/web@2 podset-1.0.0", "count": int64(3), "word": "[redacted]", "pods": []any{"pods-0"},
	}, v.Fields.Values); diff != "" || len(v.Fields.Failures) > 0 {
		t.Errorf("(-want +got):\n%s%v", diff, v.Fields.Failures)
	}
	// The template of the other label reads a missing field.
	if len(fake.asked) != 1 || fake.asked[0].Namespace != v.Release.Namespace || fake.asked[0].Labels["app"] != "web" {
		t.Errorf("selected %+v", fake.asked)
	}

	// Authors find no secret by writing guesses.
	v.CR.Object["spec"] = map[string]any{"word": "canari canary canarz"}
	v.values = map[string]any{"word": "canari canary canarz"}
	r.computeFields(t.Context(), v)
	if got := v.Fields.Values["word"]; got != "canari canary canarz" {
		t.Errorf("what the author has written became %v", got)
	}

	v.values = nil
	r.computeFields(t.Context(), v)
	if _, computed := v.Fields.Values["count"]; computed || v.Fields.Values["where"] == nil {
		t.Errorf("without values: %v", v.Fields.Values)
	}
}

func TestStatusFields_ReadObservedObjects(t *testing.T) {
	r, _, _ := ownFields(t, `all: "resources.map(r, r.group + ' ' + r.kind + ' ' + r.name + ' ' + string(r.ready) + r.reason)"`)
	index := inventory.NewIndex(func(types.UID) {}, func(types.UID) {})
	r.Inventory = inventory.Inventory{Index: index}
	for i, key := range []apply.Key{
		{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "web"},
		{Kind: "ConfigMap", Namespace: "apps", Name: "b"},
		{Kind: "ConfigMap", Namespace: "apps", Name: "a"},
	} {
		index.Put(apply.State{Key: key, UID: types.UID(key.Name), ResourceVersion: strconv.Itoa(i + 1), Owner: "u", Managed: true})
	}
	v := viewOf([]string{api.StatusDeployed})
	v.CR.SetUID("u")
	r.computeFields(t.Context(), v)
	if diff := cmp.Diff([]any{" ConfigMap a true", " ConfigMap b true", "apps Deployment web falseApplied"}, v.Fields.Values["all"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatusFields_FailureSetsCondition(t *testing.T) {
	r, _, _ := ownFields(t, "good: release.name, bad: values.absent, others: size(observed.others)")
	v := viewOf([]string{api.StatusDeployed})
	v.values = map[string]any{}
	r.computeFields(t.Context(), v)
	s := status.Compute(&v.Snapshot, plan.Decision{State: plan.StateInSync}, nil)
	if got := conditionsOf(s); !slices.Equal(got, []string{"Ready=True Deployed", "Deployed=True InstallSuccessful", "StatusFieldsFailed=True ExpressionFailed"}) {
		t.Errorf("%v", got)
	}
	message := find(s.Conditions, api.ConditionStatusFieldsFailed).Message
	if !strings.HasPrefix(message, "status.bad: no such key: absent; status.others: observe[1].selector.matchLabels: tier: ") {
		t.Error(message)
	}
	// The condition is removed with its cause.
	v.Fields = status.Fields{}
	if got := conditionsOf(status.Compute(&v.Snapshot, plan.Decision{State: plan.StateInSync}, s.Conditions)); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

func TestStatusFields_RejectedByAPIServerAreDropped(t *testing.T) {
	r, _, _ := ownFields(t, "b: '1', a: '2'")
	v := viewOf([]string{api.StatusDeployed})
	r.computeFields(t.Context(), v)
	if !v.Fields.Refuse() || v.Fields.Refuse() {
		t.Error("the fields are not dropped exactly once")
	}
	r.computeFields(t.Context(), v)
	if message := find(status.Compute(&v.Snapshot, plan.Decision{State: plan.StateInSync}, nil).Conditions, api.ConditionStatusFieldsFailed).Message; !strings.HasPrefix(message, "status.a, status.b: the CRD in the cluster rejects the type") {
		t.Error(message)
	}
	if len(v.Fields.Values) > 0 {
		t.Errorf("%v", v.Fields.Values)
	}
	if none := (&status.Fields{}); none.Refuse() {
		t.Error("Refuse returns true without fields")
	}
}

func TestObservedChanged_WakesAfterDelay(t *testing.T) {
	r, _, woken := ownFields(t, "a: '1'")
	r.keys.put("u", types.NamespacedName{Namespace: "apps", Name: "web"})
	r.ObservedChanged("other")
	r.ObservedChanged("u")
	if len(*woken) != 1 || (*woken)[0] <= 0 || (*woken)[0] > time.Second/2 {
		t.Errorf("woken after %v, want once, after a moment", *woken)
	}
}
