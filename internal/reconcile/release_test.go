package reconcile

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/queue"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// TestOwnRecord tests which records with its UID belong to a custom resource.
func TestOwnRecord(t *testing.T) {
	in := func(namespace string, revision int) release.Record {
		return release.Record{Namespace: namespace, Revision: revision}
	}
	for name, test := range map[string]struct {
		owned            []release.Record
		wanted, reported string
		want             release.Record
	}{
		"none":                           {nil, "shop", "", release.Record{}},
		"own record":                     {[]release.Record{in("shop", 2), in("shop", 1)}, "shop", "shop", in("shop", 2)},
		"not reported by the status yet": {[]release.Record{in("shop", 1)}, "shop", "", in("shop", 1)},
		"a newer copy":                   {[]release.Record{in("evil", 9), in("shop", 1)}, "shop", "shop", in("shop", 1)},
		"only a copy":                    {[]release.Record{in("evil", 9)}, "shop", "", release.Record{}},
		"a copy, unknown namespace":      {[]release.Record{in("evil", 9)}, "", "", release.Record{}},
		"in the previous namespace of the watches entry": {[]release.Record{in("old", 1)}, "new", "old", in("old", 1)},
		"a copy in the requested namespace":              {[]release.Record{in("new", 9), in("old", 1)}, "new", "old", in("old", 1)},
		"after an uninstall in another namespace":        {[]release.Record{in("new", 1)}, "new", "old", in("new", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			cr := &unstructured.Unstructured{Object: map[string]any{}}
			if test.reported != "" {
				cr.Object["status"] = map[string]any{"release": map[string]any{"namespace": test.reported}}
			}
			for _, packed := range []bool{false, true} {
				if packed {
					text, err := json.Marshal(cr.Object["status"])
					if err != nil {
						t.Fatal(err)
					}
					cr.Object["status"] = string(text)
				}
				var got release.Record
				if found := ownRecord(cr, test.owned, test.wanted); found != nil {
					got = *found
				}
				if got.Namespace != test.want.Namespace || got.Revision != test.want.Revision {
					t.Errorf("%s %d, want %s %d", got.Namespace, got.Revision, test.want.Namespace, test.want.Revision)
				}
			}
		})
	}
}

// TestFindRelease_KeepsNameOfItsAction: two custom resources of different kinds want the
// same name. The second one keeps its other name while it is installed, although the
// install of the first one has failed without a record.
func TestFindRelease_KeepsNameOfItsAction(t *testing.T) {
	counted := metrics.New(nil, metrics.Sources{})
	pool := queue.NewPool(2, true, time.Now, counted)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- pool.Start(ctx) }()
	r := &Reconciler{
		Shared: Shared{Pool: pool, Index: release.NewIndex(func(release.Record) {}), Now: time.Now},
		Kind:   catalog.Kind{Watch: watches.Watch{Kind: "PodSet"}},
	}
	act := func(uid types.UID, on types.NamespacedName, slot chan struct{}) (ended chan struct{}) {
		ended = make(chan struct{})
		if !pool.Run(queue.Task{
			Release: on, Owner: uid, Step: plan.StepInstall,
			Action: func(context.Context, queue.Slot) { <-slot }, Done: func() { close(ended) },
		}) {
			t.Fatalf("no action on %s", on)
		}
		return ended
	}
	find := func() types.NamespacedName {
		v := viewOf(nil)
		v.CR.SetUID("second")
		v.CR.SetNamespace("apps")
		if !r.findRelease(v) {
			t.Fatal("no name is free")
		}
		return v.Release
	}
	first, second := make(chan struct{}), make(chan struct{})
	firstEnded := act("first", releaseOf("web"), first)
	if got := find(); got != releaseOf("web-podset") {
		t.Errorf("while the other custom resource uses the name, the release is %s", got)
	}
	secondEnded := act("second", releaseOf("web-podset"), second)
	close(first)
	<-firstEnded
	if got := find(); got != releaseOf("web-podset") {
		t.Errorf("during its own action, the release is %s", got)
	}
	close(second)
	<-secondEnded
	if got := find(); got != releaseOf("web") {
		t.Errorf("without a record, the release is %s", got)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
