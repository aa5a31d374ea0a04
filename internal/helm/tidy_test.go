package helm

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/release"
)

// patchRecord changes what a record tells of a revision.
func (w *world) patchRecord(revision, patch string) {
	w.Helper()
	if _, err := w.plain.CoreV1().Secrets(w.namespace).Patch(w.Context(), "sh.helm.release.v1.web."+revision, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
	w.watch()
}

// expects tells whether anything is expected of the release's objects.
func (w *world) expects() bool { return w.objects.RestoreExpected(w.owner.UID, inventory.Recorded{}) }

// TestTidy: of the revisions that are deployed the newest stays, one of ours that
// was overtaken has failed, and nothing else changes.
func TestTidy(t *testing.T) {
	w := newWorld(t)
	c := withHook(mapsChart()).load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	for _, digest := range []string{"two", "three", "four"} {
		w.must(w.helm.Upgrade(t.Context(), w.request(c, digest, valuesOf("a="+digest))))
	}
	if err := w.helm.Upgrade(t.Context(), w.request(c, "bad", bad(valuesOf("a=5")))); err == nil {
		t.Fatal("the hook was to fail")
	}
	deployed := `{"metadata": {"labels": {"status": "deployed"}}}`
	w.patchRecord("v1", `{"metadata": {"labels": {"status": "pending-upgrade"}}}`)
	w.patchRecord("v2", `{"metadata": {"labels": {"status": "pending-upgrade", "`+api.LabelRevision+`": "1"}}}`) // The CLI copies ours.
	w.patchRecord("v3", deployed)
	untidy := []string{"v5 failed", "v4 deployed", "v3 deployed", "v2 pending-upgrade", "v1 pending-upgrade"}
	equal(t, "before", untidy, w.statuses())
	before := w.index.History(w.namespace, "web")
	r := w.request(c, "of the spec", valuesOf("spec=1"))

	w.net.armed.Store(&disturbance{fails: func(request *http.Request) bool { return request.Method == http.MethodPut }})
	if err := w.helm.Tidy(t.Context(), r); !errors.As(err, new(deadError)) || errors.Is(err, release.ErrStale) {
		t.Errorf("without an API server: %v", err)
	}
	w.net.armed.Store(nil)
	equal(t, "after that", untidy, w.statuses())

	if err := w.helm.Tidy(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	known := []string{}
	for _, record := range w.index.History(w.namespace, "web") {
		known = append(known, record.Status)
	}
	equal(t, "what the index knows at once", []string{"failed", "deployed", "superseded", "pending-upgrade", "failed"}, known)
	equal(t, "what is stored", []string{"v5 failed", "v4 deployed", "v3 superseded", "v2 pending-upgrade", "v1 failed"}, w.statuses())
	equal(t, "the objects", []string{"a=four"}, w.configMaps())
	for i, after := range w.index.History(w.namespace, "web") {
		if written := after.ResourceVersion != before[i].ResourceVersion; written != (after.Revision == 3 || after.Revision == 1) {
			t.Errorf("revision %d is written anew: %v", after.Revision, written)
		}
		if after.InputDigest != before[i].InputDigest || after.OwnerUID != w.owner.UID || after.Written() != before[i].Written() {
			t.Errorf("the record of revision %d: %+v", after.Revision, after)
		}
		overtaken := strings.HasPrefix(after.Description.Description, "Interrupted: ")
		if overtaken != (after.Revision == 1) || !overtaken && after.Description != before[i].Description {
			t.Errorf("revision %d is described as %q, and was as %q", after.Revision, after.Description.Description, before[i].Description.Description)
		}
	}

	p := &disturbance{}
	w.net.armed.Store(p)
	w.must(w.helm.Tidy(t.Context(), r))
	w.net.armed.Store(nil)
	if len(p.log()) > 0 {
		t.Errorf("where all is well it asks %v", p.log())
	}

	// What is under way is not overtaken.
	w.patchRecord("v5", `{"metadata": {"labels": {"status": "pending-upgrade"}}}`)
	w.must(w.helm.Tidy(t.Context(), r))
	equal(t, "the newest", "v5 pending-upgrade", w.statuses()[0])

	// Somebody writes a record meanwhile: it is looked at again.
	w.patchRecord("v3", deployed)
	w.net.armed.Store(&disturbance{at: 2, before: func() {
		patch := []byte(`{"metadata": {"labels": {"touched": "true"}}}`)
		if _, err := w.plain.CoreV1().Secrets(w.namespace).Patch(t.Context(), "sh.helm.release.v1.web.v3", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}})
	if err := w.helm.Tidy(t.Context(), r); !errors.Is(err, release.ErrStale) {
		t.Errorf("%v, want ErrStale", err)
	}
	w.net.armed.Store(nil)
}

// TestNoSecondRevisionIsDeployed: where the one before cannot be marked as
// superseded, the new one is none that went well.
func TestNoSecondRevisionIsDeployed(t *testing.T) {
	for _, test := range []struct {
		name    string
		request func(*world, *chart.Chart) Request
		action  func(*world, Request) error
		// left is what is stored then, and ends what is at last.
		left, ends, objects []string
	}{
		{
			"an upgrade",
			func(w *world, c *chart.Chart) Request { return w.request(c, "three", valuesOf("a=3")) },
			func(w *world, r Request) error { return w.helm.Upgrade(w.Context(), r) },
			[]string{"v3 pending-upgrade", "v2 deployed", "v1 superseded"},
			[]string{"v3 deployed", "v2 superseded", "v1 superseded"},
			[]string{"a=3"},
		},
		{
			"a rollback",
			func(w *world, c *chart.Chart) Request { return w.rollbackRequest(c, backTo(1, 2)) },
			func(w *world, r Request) error { return w.helm.Rollback(w.Context(), r, 1) },
			[]string{"v3 pending-rollback", "v2 deployed", "v1 superseded"},
			[]string{"v3 deployed", "v2 superseded", "v1 superseded"},
			[]string{"a=1"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			c := mapsChart().load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
			w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))))
			failed := 0
			w.net.armed.Store(&disturbance{fails: func(request *http.Request) bool {
				fails := request.Method == http.MethodPut && strings.HasSuffix(request.URL.Path, ".v2")
				if fails {
					failed++
				}
				return fails
			}})
			r := test.request(w, c)
			err := test.action(w, r)
			w.net.armed.Store(nil)
			if failed == 0 || !errors.As(err, new(deadError)) || errors.Is(err, release.ErrStale) {
				t.Errorf("%v, want the error of the write, which was tried %d times", err, failed)
			}
			equal(t, "the revisions", test.left, w.statuses())
			if w.expects() {
				t.Error("it is taken for known what the objects are to be like")
			}
			w.settle(r, false)
			equal(t, "the revisions at last", test.ends, w.statuses())
			equal(t, "the objects at last", test.objects, w.configMaps())
		})
	}
}

// TestWhatAFailureLeavesIsNotKnown: an action that fails after it has begun may
// have changed anything. One that has not begun has changed nothing.
func TestWhatAFailureLeavesIsNotKnown(t *testing.T) {
	fails := func(values map[string]any) map[string]any {
		values["fail"] = "not like this"
		return values
	}
	c := withHook(mapsChart()).with("templates/back.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: taken, annotations: {helm.sh/hook: pre-rollback}}\n").load(t)
	for _, test := range []struct {
		name   string
		action func(*world) error
		known  bool
	}{
		{"an upgrade that fails to render", func(w *world) error {
			return w.helm.Upgrade(w.Context(), w.request(c, "three", fails(valuesOf("a=3"))))
		}, true},
		{"an upgrade whose hook fails", func(w *world) error {
			return w.helm.Upgrade(w.Context(), w.request(c, "three", bad(valuesOf("a=3"))))
		}, false},
		{"a rollback to no such revision", func(w *world) error {
			return w.helm.Rollback(w.Context(), w.rollbackRequest(c, backTo(7, 2)), 7)
		}, true},
		{"a rollback whose hook fails", func(w *world) error {
			w.make("taken")
			w.theirs("taken")
			return w.helm.Rollback(w.Context(), w.rollbackRequest(c, backTo(1, 2)), 1)
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
			w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))))
			if !w.expects() {
				t.Fatal("nothing is expected of what was just deployed")
			}
			if err := test.action(w); err == nil {
				t.Fatal("it was to fail")
			}
			if got := w.expects(); got != test.known {
				t.Errorf("what the objects are to be like is known: %v, want %v", got, test.known)
			}
			w.must(w.helm.Verify(t.Context(), w.request(c, "two", nil)))
			if !w.expects() {
				t.Error("what was verified is not expected")
			}
		})
	}
}

// TestRepairOfWhatIsNotInTheManifest: what is expected is then of another
// revision, and nobody knows what is to be there until it is verified.
func TestRepairOfWhatIsNotInTheManifest(t *testing.T) {
	w := newWorld(t)
	r := w.request(mapsChart().load(t), "one", valuesOf("a=1", "b=1"))
	w.must(w.helm.Install(t.Context(), r))
	key := func(name string) apply.Key {
		for _, state := range w.objects.OwnedBy(w.owner.UID) {
			if state.Name == "a" {
				state.Name = name
				return state.Key
			}
		}
		t.Fatal("it is not known")
		return apply.Key{}
	}
	a, other := key("a"), key("other")
	for _, test := range []struct {
		name    string
		damaged map[apply.Key]bool
		known   bool
	}{
		{"what is in the manifest", map[apply.Key]bool{a: true}, true},
		{"what is not, too", map[apply.Key]bool{a: true, other: true}, false},
	} {
		w.must(w.plain.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}))
		repaired, err := w.helm.Repair(t.Context(), r, test.damaged)
		if err != nil || len(repaired) != 1 || repaired[0].Key != a || !repaired[0].Recreated {
			t.Errorf("%s: %v, %v", test.name, repaired, err)
		}
		equal(t, test.name+": the objects", []string{"a=1", "b=1"}, w.configMaps())
		if got := w.expects(); got != test.known {
			t.Errorf("%s: what the objects are to be like is known: %v, want %v", test.name, got, test.known)
		}
		w.watch()
	}
}

// TestUninstallUnderATakenName: a release that somebody else has made under the
// name stays, with its hooks not run, and our objects go all the same.
func TestUninstallUnderATakenName(t *testing.T) {
	for _, test := range []struct {
		name  string
		patch string
		stays bool
	}{
		{"the helm CLI's", `{"labels": {"` + api.LabelOwnerUID + `": null}, "annotations": {"` + api.AnnotationOwner + `": null}}`, true},
		{"another custom resource's", `{"labels": {"` + api.LabelOwnerUID + `": "another"}, "annotations": {"` + api.AnnotationOwner + `": "Small.app.example.com/elsewhere/web"}}`, true},
		{"another operator's", `{"labels": {"` + api.LabelOwnerUID + `": "another", "` + api.LabelOperator + `": "another"}}`, true},
		{"ours, from before it was restored", `{"labels": {"` + api.LabelOwnerUID + `": "another"}}`, false},
		{"ours, and the CLI wrote last", `{"annotations": {"` + api.AnnotationOwner + `": null}}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			c := hookedChart("pre-delete", "post-delete").load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))))
			w.theirs("b")
			w.patchRecord("v1", `{"metadata": `+test.patch+`}`)
			w.rewrite(release.SecretName("web", 1), func(*helmrelease.Release) {})
			before := w.index.History(w.namespace, "web")[0]
			told := needed{w.objects, map[string]bool{}}
			w.helm.config.Inventory = told
			w.must(w.helm.Uninstall(t.Context(), w.request(c, "", nil)))

			objects, statuses, hooks := []string{"b=1"}, []string{}, []string{"post-delete", "pre-delete"}
			if test.stays {
				statuses, hooks = []string{"v1 deployed"}, []string{}
			}
			equal(t, "the objects", objects, w.configMaps())
			equal(t, "the revisions", statuses, w.statuses())
			equal(t, "the hooks", hooks, w.hooksMade())
			if test.stays {
				if !told.kinds["ConfigMap"] {
					t.Errorf("it looks for %v alone", told.kinds)
				}
				equal(t, "the record", before.ResourceVersion, w.index.History(w.namespace, "web")[0].ResourceVersion)
			}
			if w.expects() {
				t.Error("something is expected of what is uninstalled")
			}
		})
	}
}

// A revision that has got on since it was looked at was not interrupted.
func TestMarkFailedGivesWayToWhatHasChanged(t *testing.T) {
	w := newWorld(t)
	r := w.request(mapsChart().load(t), "one", valuesOf("a=1"))
	w.must(w.helm.Install(t.Context(), r))
	w.patchRecord("v1", `{"metadata": {"labels": {"status": "pending-install"}}}`)
	pending := w.index.History(w.namespace, "web")[0]
	w.patchRecord("v1", `{"metadata": {"labels": {"status": "deployed"}}}`)
	p := &disturbance{}
	w.net.armed.Store(p)
	if err := w.helm.MarkFailed(t.Context(), r, pending, "Interrupted"); !errors.Is(err, release.ErrStale) {
		t.Errorf("error %v, want ErrStale", err)
	}
	w.net.armed.Store(nil)
	equal(t, "the writes", 0, len(writes(p.log())))
	equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())
}
