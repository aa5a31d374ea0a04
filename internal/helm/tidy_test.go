package helm

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/release"
)

// patchRecord patches the metadata of a record.
func (w *world) patchRecord(revision, patch string) {
	w.Helper()
	if _, err := w.plain.CoreV1().Secrets(w.namespace).Patch(w.Context(), "sh.helm.release.v1.web."+revision, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
	w.watch()
}

// expects reports whether the inventory expects objects of the release.
func (w *world) expects() bool { return w.objects.RestoreExpected(w.owner.UID, inventory.Recorded{}) }

// Only the newest deployed revision stays deployed, a pending revision of this operator
// below a newer one becomes failed, and nothing else changes.
func TestTidy(t *testing.T) {
	w := newWorld(t)
	c := withHook(mapsChart()).load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	for _, digest := range []string{"two", "three", "four"} {
		w.must(w.helm.Upgrade(t.Context(), w.request(c, digest, valuesOf("a="+digest))))
	}
	if err := w.helm.Upgrade(t.Context(), w.request(c, "bad", bad(valuesOf("a=5")))); err == nil {
		t.Fatal("the hook did not fail")
	}
	deployed := `{"metadata": {"labels": {"status": "deployed"}}}`
	w.patchRecord("v1", `{"metadata": {"labels": {"status": "pending-upgrade"}}}`)
	w.patchRecord("v2", `{"metadata": {"labels": {"status": "pending-upgrade", "`+api.LabelRevision+`": "1"}}}`) // The CLI copies the operator's label.
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
	equal(t, "the marks in the index", []string{"failed", "deployed", "superseded", "pending-upgrade", "failed"}, known)
	equal(t, "the stored records", []string{"v5 failed", "v4 deployed", "v3 superseded", "v2 pending-upgrade", "v1 failed"}, w.statuses())
	equal(t, "the objects", []string{"a=four"}, w.configMaps())
	for i, after := range w.index.History(w.namespace, "web") {
		if written := after.ResourceVersion != before[i].ResourceVersion; written != (after.Revision == 3 || after.Revision == 1) {
			t.Errorf("revision %d was written: %v", after.Revision, written)
		}
		if after.InputDigest != before[i].InputDigest || after.OwnerUID != w.owner.UID || after.Written() != before[i].Written() {
			t.Errorf("the record of revision %d: %+v", after.Revision, after)
		}
		overtaken := strings.HasPrefix(after.Description.Description, "Interrupted: ")
		if overtaken != (after.Revision == 1) || !overtaken && after.Description != before[i].Description {
			t.Errorf("the description of revision %d is %q, was %q", after.Revision, after.Description.Description, before[i].Description.Description)
		}
	}

	p := &disturbance{}
	w.net.armed.Store(p)
	w.must(w.helm.Tidy(t.Context(), r))
	w.net.armed.Store(nil)
	if len(p.log()) > 0 {
		t.Errorf("with consistent records it sends %v", p.log())
	}

	// An interrupted uninstall stays one only while nothing newer is deployed.
	w.patchRecord("v3", `{"metadata": {"labels": {"status": "uninstalling"}}}`)
	w.must(w.helm.Tidy(t.Context(), r))
	equal(t, "the interrupted uninstall", "v3 superseded", w.statuses()[2])
	w.patchRecord("v5", `{"metadata": {"labels": {"status": "uninstalling"}}}`)
	w.must(w.helm.Tidy(t.Context(), r))
	equal(t, "the newest", "v5 uninstalling", w.statuses()[0])

	// A newest pending revision is not changed.
	w.patchRecord("v5", `{"metadata": {"labels": {"status": "pending-upgrade"}}}`)
	w.must(w.helm.Tidy(t.Context(), r))
	equal(t, "the newest", "v5 pending-upgrade", w.statuses()[0])

	// If the record changed concurrently, the action ends with ErrStale.
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

func TestUpgrade_FailsIfPreviousCannotBeSuperseded(t *testing.T) {
	for _, test := range []struct {
		name    string
		request func(*world, *chart.Chart) Request
		action  func(*world, Request) error
		// left holds the records after the failure, and ends the records at the end.
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
				t.Errorf("%v, want the error of the write, which was attempted %d times", err, failed)
			}
			equal(t, "the revisions", test.left, w.statuses())
			if w.expects() {
				t.Error("the inventory still expects objects")
			}
			w.settle(r, false)
			equal(t, "the revisions at the end", test.ends, w.statuses())
			equal(t, "the objects at the end", test.objects, w.configMaps())
		})
	}
}

// After a failure, the state of the objects is unknown if the action has stored a
// revision, and unchanged otherwise.
func TestActions_ExpectNothingAfterFailure(t *testing.T) {
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
			w.setForeignOwner("taken")
			return w.helm.Rollback(w.Context(), w.rollbackRequest(c, backTo(1, 2)), 1)
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
			w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))))
			if !w.expects() {
				t.Fatal("the deployed objects are not expected")
			}
			if err := test.action(w); err == nil {
				t.Fatal("the action succeeded")
			}
			if got := w.expects(); got != test.known {
				t.Errorf("objects are expected: %v, want %v", got, test.known)
			}
			w.must(w.helm.Verify(t.Context(), w.request(c, "two", nil)))
			if !w.expects() {
				t.Error("the verified objects are not expected")
			}
		})
	}
}

// The inventory then expects the objects of another revision, until all objects are
// verified.
func TestRepair_ObjectNotInManifest(t *testing.T) {
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
		t.Fatal("the objects are not expected")
		return apply.Key{}
	}
	a, other := key("a"), key("other")
	for _, test := range []struct {
		name    string
		damaged map[apply.Key]bool
		known   bool
	}{
		{"an object in the manifest", map[apply.Key]bool{a: true}, true},
		{"and an object that is not", map[apply.Key]bool{a: true, other: true}, false},
	} {
		w.must(w.plain.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}))
		repaired, err := w.helm.Repair(t.Context(), r, test.damaged)
		if err != nil || len(repaired) != 1 || repaired[0].Key != a || !repaired[0].Recreated {
			t.Errorf("%s: %v, %v", test.name, repaired, err)
		}
		equal(t, test.name+": the objects", []string{"a=1", "b=1"}, w.configMaps())
		if got := w.expects(); got != test.known {
			t.Errorf("%s: objects are expected: %v, want %v", test.name, got, test.known)
		}
		w.watch()
	}
}

// A release that another user created with the name is kept, and its hooks do not run.
// The owner's objects are deleted.
func TestUninstall_NameTakenByOtherRelease(t *testing.T) {
	for _, test := range []struct {
		name  string
		patch string
		stays bool
	}{
		{"of the helm CLI", `{"labels": {"` + api.LabelOwnerUID + `": null}, "annotations": {"` + api.AnnotationOwner + `": null}}`, true},
		{"object of another custom resource", `{"labels": {"` + api.LabelOwnerUID + `": "another"}, "annotations": {"` + api.AnnotationOwner + `": "Small.app.example.com/elsewhere/web"}}`, true},
		{"another operator's", `{"labels": {"` + api.LabelOwnerUID + `": "another", "` + api.LabelOperator + `": "another"}}`, true},
		{"of the owner before a restore", `{"labels": {"` + api.LabelOwnerUID + `": "another"}}`, false},
		{"of the owner, last written by the helm CLI", `{"annotations": {"` + api.AnnotationOwner + `": null}}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			c := hookedChart("pre-delete", "post-delete").load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))))
			w.setForeignOwner("b")
			w.patchRecord("v1", `{"metadata": `+test.patch+`}`)
			w.rewrite(release.SecretName("web", 1), func(*engine.Release) {})
			before := w.index.History(w.namespace, "web")[0]
			watched := needed{w.objects, map[string]bool{}}
			w.helm.config.Inventory = watched
			w.must(w.helm.Uninstall(t.Context(), w.request(c, "", nil)))

			objects, statuses, hooks := []string{"b=1"}, []string{}, []string{"post-delete", "pre-delete"}
			if test.stays {
				statuses, hooks = []string{"v1 deployed"}, []string{}
			}
			equal(t, "the objects", objects, w.configMaps())
			equal(t, "the revisions", statuses, w.statuses())
			equal(t, "the hooks", hooks, w.hooksMade())
			if test.stays {
				if !watched.kinds["ConfigMap"] {
					t.Errorf("it searches only %v", watched.kinds)
				}
				equal(t, "the record", before.ResourceVersion, w.index.History(w.namespace, "web")[0].ResourceVersion)
			}
			if w.expects() {
				t.Error("objects of the uninstalled release are expected")
			}
		})
	}
}

// A revision that changed since it was read was not interrupted.
func TestMarkFailed_StaleRecord(t *testing.T) {
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
