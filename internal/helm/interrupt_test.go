package helm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/chartwright/chartwright/internal/api"
)

// TestActions_InterruptedAtEveryRequest interrupts an install, an upgrade, a rollback
// and an uninstall at each of their requests, in four ways. The action returns soon and
// leaves no goroutine. The following actions of an operator complete the change: no
// record remains pending and no object is left over.
func TestActions_InterruptedAtEveryRequest(t *testing.T) {
	c := mapsChart().with("templates/hook.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: 'pre-install,pre-upgrade,pre-rollback,post-rollback'}}\n").load(t)
	type verb struct {
		name string
		// before prepares the state before the action.
		before  func(*world)
		action  func(context.Context, *world) error
		request func(*world) Request
		objects []string
	}
	one := func(w *world) Request { return w.request(c, "one", valuesOf("a=1", "b=1")) }
	two := func(w *world) Request { return w.request(c, "two", valuesOf("a=2", "c=2")) }
	install := func(w *world) {
		if err := w.helm.Install(w.Context(), one(w)); err != nil {
			w.Fatal(err)
		}
	}
	back := func(w *world) Request {
		r := two(w)
		r.Marks = backTo(1, 2)
		return r
	}
	verbs := []verb{
		{
			"install", func(*world) {},
			func(ctx context.Context, w *world) error { return w.helm.Install(ctx, one(w)) }, one, []string{"a=1", "b=1"},
		},
		{
			"upgrade", install,
			func(ctx context.Context, w *world) error { return w.helm.Upgrade(ctx, two(w)) }, two, []string{"a=2", "c=2"},
		},
		{
			"rollback", func(w *world) { install(w); w.must(w.helm.Upgrade(w.Context(), two(w))) },
			func(ctx context.Context, w *world) error { return w.helm.Rollback(ctx, back(w), 1) }, back, []string{"a=1", "b=1"},
		},
		{
			"uninstall", install,
			func(ctx context.Context, w *world) error { return w.helm.Uninstall(ctx, one(w)) }, one, []string{},
		},
	}
	manners := []struct {
		name string
		plan func(at int64, cancel func()) *disturbance
		// processEnds reports that the process ends and another process continues.
		processEnds bool
	}{
		{"canceled before", func(at int64, cancel func()) *disturbance { return &disturbance{at: at, before: cancel} }, false},
		{"canceled after", func(at int64, cancel func()) *disturbance { return &disturbance{at: at, after: cancel} }, false},
		{"canceled without an answer to", func(at int64, cancel func()) *disturbance { return &disturbance{at: at, before: cancel, hang: true} }, false},
		{"dead from", func(at int64, _ func()) *disturbance { return &disturbance{at: at, dead: true} }, true},
	}
	startAPIServer(t)
	for _, v := range verbs {
		for _, manner := range manners {
			t.Run(v.name+" "+manner.name, func(t *testing.T) {
				newWorld(t) // Its connections are no leak.
				before := goleak.IgnoreCurrent()
				for at := int64(1); ; at++ {
					if at > 60 {
						t.Fatal("the action never ends")
					}
					w := newWorld(t)
					v.before(w)
					ctx, cancel := context.WithCancel(t.Context())
					p := manner.plan(at, cancel)
					w.net.armed.Store(p)
					err := w.ended(func() error { return v.action(ctx, w) })
					w.net.armed.Store(nil)
					cancel()
					if p.seen.Load() < at {
						break // The action makes fewer requests than that.
					}
					where := fmt.Sprintf("%s request %d (%s): ", manner.name, at, p.log()[at-1])
					if request := p.log()[at-1]; !manner.processEnds && !strings.HasPrefix(request, "POST /api/v1/namespaces/"+w.namespace+"/secrets") {
						// An action that has stored a revision also stores its outcome.
						for _, status := range w.statuses() {
							if strings.Contains(status, "pending") {
								t.Errorf("%sleft %s", where, status)
							}
						}
					}
					if manner.processEnds {
						if err == nil {
							t.Errorf("%sthe action succeeded", where)
						}
						w.restart()
					}
					deleting := v.name == "uninstall"
					if err == nil {
						// The action may have been complete before the interruption.
						checkDone(t, w, where, deleting)
					}
					w.settle(v.request(w), deleting)
					checkDone(t, w, where, deleting)
					equal(t, where+"the objects", v.objects, w.configMaps())
				}
				if err := goleak.Find(before); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// checkDone fails the test if the records do not show that the action is complete.
func checkDone(t *testing.T, w *world, where string, gone bool) {
	t.Helper()
	statuses := w.statuses()
	if gone {
		if len(statuses) > 0 {
			t.Errorf("%sthe remaining records are %v", where, statuses)
		}
		return
	}
	w.watch()
	deployed := 0
	for i, r := range w.index.History(w.namespace, "web") {
		if r.Status == api.StatusDeployed {
			deployed++
		} else if i == 0 || api.Pending(r.Status) {
			t.Errorf("%sthe records are %v", where, statuses)
		}
	}
	if deployed != 1 {
		t.Errorf("%s%d revisions are deployed: %v", where, deployed, statuses)
	}
}

// An edit during a failed upgrade must not leave objects of the failed revision.
func TestUpgrade_PrunesObjectsOfFailedRevision(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().with("templates/hook.yaml", "{{ if .Values.bad }}apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Not_a_name\n  annotations: {helm.sh/hook: 'post-install,post-upgrade'}\n{{ end }}").load(t)
	if err := w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))); err != nil {
		t.Fatal(err)
	}
	if err := w.helm.Upgrade(t.Context(), w.request(c, "two", bad(valuesOf("a=2", "extra=2")))); err == nil {
		t.Fatal("the hook did not fail")
	}
	equal(t, "after the failure", []string{"a=2", "extra=2"}, w.configMaps())
	w.settle(w.request(c, "three", valuesOf("a=3")), false)
	equal(t, "after the next revision", []string{"a=3"}, w.configMaps())

	if err := w.helm.Upgrade(t.Context(), w.request(c, "four", bad(valuesOf("a=4", "extra=4")))); err == nil {
		t.Fatal("the hook did not fail")
	}
	w.settle(w.request(c, "four", nil), true)
	equal(t, "after the uninstall", []string{}, w.configMaps())
	if left := w.statuses(); slices.Contains(left, "v4 failed") {
		t.Errorf("records are left: %v", left)
	}
}
