package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// fakeSources records the sources that it merges.
type fakeSources struct {
	asked     []valuesfrom.Source
	seen      []string
	fails     error
	mu        sync.Mutex
	forgotten []types.UID
}

func (f *fakeSources) Versions([]valuesfrom.Source) string { return "" }

func (f *fakeSources) Saw(ref valuesfrom.Ref, version string) {
	f.seen = append(f.seen, ref.String()+" "+version)
}

func (f *fakeSources) Merge(_ context.Context, _ types.UID, from []valuesfrom.Source, over map[string]any) (map[string]any, valuesfrom.Secrets, error) {
	f.asked = from
	over["merged"] = true
	return over, valuesfrom.Secrets{"canary"}, f.fails
}

func (f *fakeSources) Forget(user types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgotten = append(f.forgotten, user)
}

// sourced returns a Reconciler of a kind with these sources, and records its wakes.
func sourced(t *testing.T, valuesFrom string) (r *Reconciler, fake *fakeSources, woken *[]time.Duration) {
	t.Helper()
	kinds, err := catalog.FromFS(fstest.MapFS{
		"watches.yaml": {Data: []byte("- {group: g, version: v1, kind: K, chart: c, valuesFrom: [" + valuesFrom + "]}")},
		"c/Chart.yaml": {Data: []byte("apiVersion: v2\nname: c\nversion: 1.0.0")},
	}, "watches.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fake, woken = &fakeSources{}, &[]time.Duration{}
	r = &Reconciler{Shared: Shared{Sources: fake}, Kind: kinds[0]}
	r.Wake = func(_ types.NamespacedName, after time.Duration) { *woken = append(*woken, after) }
	return r, fake, woken
}

const twoSources = "{kind: Secret, name: '{{ .metadata.name }}-values'}, {kind: ConfigMap, name: '{{ .spec.team }}', key: port, targetPath: a.b, optional: true}"

func sourcedView(namespace string, spec map[string]any) *snapshot {
	cr := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	cr.SetName("web")
	cr.SetNamespace(namespace)
	cr.SetUID("u")
	return &snapshot{key: types.NamespacedName{Namespace: namespace, Name: "web"}, Snapshot: status.Snapshot{CR: cr, Release: types.NamespacedName{Namespace: "target", Name: "web"}}}
}

// merge merges the sources of a custom resource into values.
func merge(t *testing.T, r *Reconciler, v *snapshot, values map[string]any) (map[string]any, error) {
	t.Helper()
	from, _, err := r.sourcesOf(v)
	if err != nil {
		return nil, err
	}
	return r.mergeSources(t.Context(), v, from, values)
}

func TestSources_NamespaceIsThatOfTheCustomResource(t *testing.T) {
	for namespace, want := range map[string]string{"apps": "apps", "": "target"} {
		r, fake, _ := sourced(t, twoSources)
		v := sourcedView(namespace, map[string]any{"team": "blue", "namespace": "elsewhere"})
		merged, err := merge(t, r, v, map[string]any{"a": "b"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]valuesfrom.Source{
			{At: "valuesFrom[0]", Ref: valuesfrom.Ref{Kind: valuesfrom.SecretKind, Namespace: want, Name: "web-values"}, Key: "values.yaml"},
			{At: "valuesFrom[1]", Ref: valuesfrom.Ref{Kind: valuesfrom.ConfigMapKind, Namespace: want, Name: "blue"}, Key: "port", TargetPath: "a.b", Optional: true},
		}, fake.asked); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if !cmp.Equal(merged, map[string]any{"a": "b", "merged": true}) || !slices.Equal(v.Secrets, valuesfrom.Secrets{"canary"}) {
			t.Errorf("%v, secret are %v", merged, v.Secrets)
		}
	}
}

func TestSources_UnreadableSourceIsAProblemOrARetry(t *testing.T) {
	forbidden := &valuesfrom.Error{Reason: api.ReasonValuesSourceForbidden, Message: "no right"}
	missing := &valuesfrom.Error{Reason: api.ReasonValuesSourceMissing, Message: "no such"}
	for _, test := range []struct {
		name   string
		team   string
		fails  error
		unread bool
		reason string
		woken  []time.Duration
	}{
		{"a missing Secret", "blue", missing, false, api.ReasonValuesSourceMissing, nil},
		{"a forbidden Secret", "blue", forbidden, false, api.ReasonValuesSourceForbidden, []time.Duration{forbiddenRetry}},
		{"an unavailable API server", "blue", errors.New("away"), true, "", nil},
		{"an invalid name in the spec", "../blue", nil, false, api.ReasonInvalidValues, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, fake, woken := sourced(t, twoSources)
			fake.fails = test.fails
			v := sourcedView("apps", map[string]any{"team": test.team})
			_, err := merge(t, r, v, map[string]any{})
			if err == nil || errors.Is(err, errSourceUnread) != test.unread {
				t.Errorf("%v; to be read again: want %v", err, test.unread)
			}
			reason := ""
			if !test.unread {
				v.Observation.Invalid = invalid(err)
				reason = v.Observation.Invalid.Reason
			}
			if reason != test.reason {
				t.Errorf("reason %q, want %q", reason, test.reason)
			}
			r.wakeForSources(v)
			if !slices.Equal(*woken, test.woken) {
				t.Errorf("woken after %v, want %v", *woken, test.woken)
			}
		})
	}
}

func TestSourceChanged_WakesItsUser(t *testing.T) {
	r, _, woken := sourced(t, twoSources)
	r.keys.put("u", types.NamespacedName{Namespace: "apps", Name: "web"})
	r.SourceChanged("other")
	if len(*woken) > 0 {
		t.Error("a change for another custom resource wakes this one")
	}
	r.SourceChanged("u")
	if !slices.Equal(*woken, []time.Duration{0}) {
		t.Errorf("woken after %v", *woken)
	}
	// A kind without sources sends no request.
	if _, err := (&Reconciler{}).mergeSources(t.Context(), sourcedView("apps", nil), nil, nil); err != nil {
		t.Error(err)
	}
}

// vanishing calls a function while the sources of a custom resource are read.
type vanishing struct {
	*fakeSources
	during func()
}

func (s *vanishing) Merge(ctx context.Context, user types.UID, from []valuesfrom.Source, over map[string]any) (map[string]any, valuesfrom.Secrets, error) {
	s.during()
	return s.fakeSources.Merge(ctx, user, from, over)
}

// TestGone_DuringReconciliation: a custom resource is deleted while it is reconciled. Nothing
// remembers it afterwards, so that it neither counts in metrics nor stops a rollout.
func TestGone_DuringReconciliation(t *testing.T) {
	w := newWorld(t)
	sources := &vanishing{withSource(w), func() {}}
	w.Sources, w.Observed = sources, &fakeObserved{}
	w.Inventory.Watches = inventory.NewWatches(w.Inventory.Index, nil)
	storeInSync(w)
	registry := prometheus.NewRegistry()
	w.Metrics = metrics.New(registry, metrics.Sources{})
	expect := func(remembered bool) {
		t.Helper()
		text, err := testutil.GatherAndCount(registry, "chartwright_releases")
		if err != nil {
			t.Fatal(err)
		}
		members := 0
		for _, count := range w.queue.queue.Positions() {
			members += count
		}
		_, known := w.keys.get(ownUID)
		if got := []bool{text > 0, members > 0, known, len(w.memory.keys()) > 0}; slices.Contains(got, !remembered) {
			t.Errorf("in metrics, the rollout, the keys, the memory: %v, want %v", got, remembered)
		}
	}
	w.reconcile()
	expect(true)
	sources.during = func() {
		if !w.Gone(w.apiServer.cr) {
			t.Error("no reconciliation follows")
		}
	}
	w.reconcile()
	w.apiServer.cr.SetName("another")
	w.reconcile()
	expect(false)
}

// TestGone_DuringAction: the end of an action on a deleted custom resource is not remembered.
func TestGone_DuringAction(t *testing.T) {
	w := newWorld(t)
	w.actions.err = errRecorded
	w.Sources, w.Observed = &fakeSources{}, &fakeObserved{}
	w.Inventory.Watches = inventory.NewWatches(w.Inventory.Index, nil)
	end := w.running(releaseOf("another"), "another")
	w.reconcile()
	w.Gone(w.apiServer.cr)
	end()
	w.settled()
	if known := w.memory.keys(); len(known) > 0 || w.actions.called() != "Install" {
		t.Errorf("%v are remembered after %q", known, w.actions.called())
	}
}

func TestGone_ForgetsSourcesAndObservedObjects(t *testing.T) {
	w := newWorld(t)
	sources, observed := &fakeSources{}, &fakeObserved{}
	w.Sources, w.Observed = sources, observed
	w.Inventory.Watches = inventory.NewWatches(w.Inventory.Index, nil)
	w.Gone(w.apiServer.cr)
	want := []types.UID{ownUID}
	if !slices.Equal(sources.forgotten, want) || !slices.Equal(observed.forgotten, want) {
		t.Errorf("sources of %v and observed objects of %v are forgotten, want both of %v", sources.forgotten, observed.forgotten, want)
	}
}
