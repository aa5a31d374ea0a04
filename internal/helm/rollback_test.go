package helm

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/release"
)

// backTo returns marks with a hold on a revision.
func backTo(revision, from int) release.Marks {
	return release.Marks{Rollback: "request", Held: &release.Held{Revision: revision, From: from, Spec: "spec"}}
}

// must fails the test for an error of a step that is not under test.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	w.watch()
}

// newest returns the newest record.
func (w *world) newest() release.Record {
	w.Helper()
	w.watch()
	return w.index.History(w.namespace, "web")[0]
}

// make creates a ConfigMap as another user.
func (w *world) make(name string) *corev1.ConfigMap {
	w.Helper()
	made, err := w.plain.CoreV1().ConfigMaps(w.namespace).Create(w.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return made
}

// setForeignOwner gives an object the labels of another custom resource.
func (w *world) setForeignOwner(name string) {
	w.Helper()
	patch := []byte(`{"metadata": {"labels": {"` + api.LabelOwnerUID + `": "another"}, "annotations": {"` + api.AnnotationOwner + `": "Small.app.example.com/elsewhere/web"}}}`)
	if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Patch(w.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

// rollbackRequest returns a request for Rollback. Its digests and values are those of
// the spec, which must be ignored.
func (w *world) rollbackRequest(c *chart.Chart, marks release.Marks) Request {
	r := w.request(c, "of the spec", valuesOf("spec=1"))
	r.Digests.Chart, r.Digests.Values = "of the spec", "of the spec"
	r.Marks = marks
	return r
}

func TestRollback(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))))
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2", "c=2"))))
	w.must(w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 2)), 1))

	equal(t, "the revisions", []string{"v3 deployed", "v2 superseded", "v1 superseded"}, w.statuses())
	equal(t, "the objects", []string{"a=1", "b=1"}, w.configMaps())
	newest := w.newest()
	equal(t, "its description", "Rollback to 1", newest.Description.Description)
	equal(t, "its digests", release.Digests{Input: "one", Chart: "chart", Values: "values"}, release.Digests{Input: newest.InputDigest, Chart: newest.ChartDigest, Values: newest.ValuesDigest})
	equal(t, "its marks", backTo(1, 2), newest.Marks)
	if !newest.Genuine() || newest.OwnerUID != w.owner.UID || newest.Inventory.Digest == "" {
		t.Errorf("the record: %+v", newest)
	}
	for _, r := range w.index.History(w.namespace, "web")[1:] {
		if r.Marks != (release.Marks{}) {
			t.Errorf("revision %d also has marks: %+v", r.Revision, r.Marks)
		}
	}

	// A new process finds the same state, and the next actions start from it.
	w.restart()
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "four", valuesOf("a=4"))))
	equal(t, "the objects after an upgrade", []string{"a=4"}, w.configMaps())
	equal(t, "the marks after an upgrade", release.Marks{}, w.newest().Marks)

	// A revision from a rollback can be the target of another rollback.
	w.must(w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(3, 4)), 3))
	equal(t, "the objects of the copy", []string{"a=1", "b=1"}, w.configMaps())
	if newest := w.newest(); newest.InputDigest != "one" || newest.Revision != 5 {
		t.Errorf("the copy's record: %+v", newest)
	}
}

// If the record of the held revision is gone, a repeated rollback uses the revision that the
// first one has deployed.
func TestRollback_HeldRevisionIsGone(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))))
	w.must(w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 2)), 1))
	// An interrupted "helm uninstall" deletes the oldest records first.
	w.patchRecord("v3", `{"metadata": {"labels": {"status": "uninstalling"}}}`)
	for _, record := range []string{"v1", "v2"} {
		if err := w.plain.CoreV1().Secrets(w.namespace).Delete(t.Context(), "sh.helm.release.v1.web."+record, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.watch()
	w.must(w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 2)), 1))
	equal(t, "the objects", []string{"a=1"}, w.configMaps())
	equal(t, "the newest revision", "v4 deployed", w.statuses()[0])
	equal(t, "its inputs", "one", w.newest().InputDigest)
	equal(t, "its marks", backTo(1, 2), w.newest().Marks)
}

// The inputs of the revision are unknown, so its digests are empty.
func TestRollback_ToRevisionOfHelmCLI(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))))
	patch := []byte(`{"metadata": {"labels": {"` + api.LabelRevision + `": "9"}}}`)
	if _, err := w.plain.CoreV1().Secrets(w.namespace).Patch(t.Context(), "sh.helm.release.v1.web.v1", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.watch()
	w.must(w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 2)), 1))
	if newest := w.newest(); newest.InputDigest != "" || newest.ChartDigest != "" || !newest.Genuine() {
		t.Errorf("the record: %+v", newest)
	}
	equal(t, "the objects", []string{"a=1"}, w.configMaps())
}

func TestRollback_UnknownRevision(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	if err := w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 0)), 1); !errors.Is(err, errNoSuchRevision) {
		t.Errorf("without a release: %v, want errNoSuchRevision", err)
	}
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	p := &disturbance{}
	w.net.armed.Store(p)
	if err := w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(7, 1)), 7); !errors.Is(err, errNoSuchRevision) || !strings.Contains(err.Error(), "7") {
		t.Errorf("%v, want errNoSuchRevision with its number", err)
	}
	w.net.armed.Store(nil)
	if len(p.log()) > 0 {
		t.Errorf("it sent %v", p.log())
	}
	equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())

	// The record was deleted, and the index has not been updated.
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))))
	w.must(w.plain.CoreV1().Secrets(w.namespace).Delete(t.Context(), "sh.helm.release.v1.web.v1", metav1.DeleteOptions{}))
	if err := w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 2)), 1); err == nil {
		t.Error("a deleted revision was restored")
	}
	equal(t, "what runs", []string{"a=2"}, w.configMaps())
}

// If the API server rejects an object, nothing changes.
func TestRollback_RefusedByServer(t *testing.T) {
	w := newWorld(t)
	c := freezingChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))))
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", frozen(valuesOf("a=2", "b=2")))))
	p := &disturbance{}
	w.net.armed.Store(p)
	err := w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 2)), 1)
	w.net.armed.Store(nil)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "ConfigMap "+w.namespace+"/a") {
		t.Errorf("%v, want ErrRefused with the object", err)
	}
	for _, request := range writes(p.log()) {
		if !strings.Contains(request, "/configmaps/") { // tried out
			t.Errorf("it wrote %s", request)
		}
	}
	equal(t, "the revisions", []string{"v2 deployed", "v1 superseded"}, w.statuses())
	equal(t, "the objects", []string{"a=2", "b=2"}, w.configMaps())
	equal(t, "the marks", release.Marks{}, w.newest().Marks)
}

// A failed hook leaves no pending record, a retry replaces the failed record, and hooks
// can be disabled.
func TestRollback_Hooks(t *testing.T) {
	for _, hook := range []string{"pre-rollback", "post-rollback"} {
		t.Run(hook, func(t *testing.T) {
			w := newWorld(t)
			// The hook cannot be created while a foreign object has its name.
			c := mapsChart().with("templates/hook.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: taken, annotations: {helm.sh/hook: "+hook+"}}\n").load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
			w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))))
			w.make("taken")
			w.setForeignOwner("taken")
			for range 2 {
				err := w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 2)), 1)
				var failed *ActionError
				if !errors.As(err, &failed) || errors.Is(err, release.ErrStale) || !strings.Contains(err.Error(), "taken") {
					t.Fatalf("%v, want an error of the hook", err)
				}
				statuses := w.statuses()
				if statuses[0] != "v3 failed" || len(statuses) != 3 {
					t.Errorf("the revisions are %v", statuses)
				}
				newest := w.newest()
				equal(t, "the marks of the failed revision", backTo(1, 2), newest.Marks)
				if !strings.Contains(newest.Description.Description, "taken") || !newest.Genuine() || newest.Inventory.Digest != "" {
					t.Errorf("the failed record: %+v", newest)
				}
			}
			w.must(w.plain.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), "taken", metav1.DeleteOptions{}))
			w.must(w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 2)), 1))
			equal(t, "after a retry", []string{"v3 deployed", "v2 superseded", "v1 superseded"}, w.statuses())
			if live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "taken", metav1.GetOptions{}); err != nil || live.Labels[api.LabelHookOwnerUID] != string(w.owner.UID) {
				t.Errorf("the hook is %+v, %v", live, err)
			}

			w.setForeignOwner("taken")
			without := w.rollbackRequest(c, backTo(2, 3))
			without.DisableHooks = true
			w.must(w.helm.Rollback(t.Context(), without, 2))
			equal(t, "without hooks", []string{"a=2", "taken="}, w.configMaps())
		})
	}
}

func TestRollback_KeepsFailedRecordOfOtherRevision(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().with("templates/hook.yaml", "{{ if .Values.bad }}apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_a_name, annotations: {helm.sh/hook: post-rollback}}\n{{ end }}").load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", bad(valuesOf("a=1", "left=1")))))
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))))
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "three", valuesOf("a=3"))))
	if err := w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 3)), 1); err == nil {
		t.Fatal("the hook did not fail")
	}
	equal(t, "the objects of the failed revision", []string{"a=1", "left=1"}, w.configMaps())
	w.restart()
	w.must(w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(2, 3)), 2))
	equal(t, "the objects", []string{"a=2"}, w.configMaps())
	equal(t, "the revisions", []string{"v5 deployed", "v4 failed", "v3 superseded", "v2 superseded", "v1 superseded"}, w.statuses())
	held := w.rollbackRequest(c, backTo(2, 3))
	w.must(w.helm.Prune(t.Context(), held, 1))
	equal(t, "the revision of a hold is not pruned", []string{"v5 deployed", "v4 failed", "v2 superseded"}, w.statuses())
}

func TestRollback_RefusesFailedFirstInstall(t *testing.T) {
	w := newWorld(t)
	c := withHook(mapsChart()).load(t)
	if err := w.helm.Install(t.Context(), w.request(c, "bad", bad(valuesOf("a=1")))); err == nil {
		t.Fatal("the hook did not fail")
	}
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "good", valuesOf("a=1"))))
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "better", valuesOf("a=2"))))
	w.must(w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(2, 3)), 2))
	equal(t, "the revisions", []string{"v4 deployed", "v3 superseded", "v2 superseded", "v1 failed"}, w.statuses())
	for _, r := range w.index.History(w.namespace, "web") {
		if r.WasDeployed() != (r.Revision > 1) {
			t.Errorf("revision %d was deployed: %v", r.Revision, r.WasDeployed())
		}
	}
}

// needed records which kinds are watched.
type needed struct {
	dependents
	kinds map[string]bool
}

func (n needed) EnsureWatched(_ context.Context, _ types.UID, _ string, kinds []schema.GroupVersionKind) error {
	for _, kind := range kinds {
		n.kinds[kind.Kind] = true
	}
	return nil
}

// A new process does not watch these kinds yet.
func TestRollback_WatchesKindsOfFailedRevisions(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().with("templates/secret.yaml", "{{ if .Values.bad }}apiVersion: v1\nkind: Secret\nmetadata: {name: left}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_a_name, annotations: {helm.sh/hook: post-upgrade}}\n{{ end }}").load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	if err := w.helm.Upgrade(t.Context(), w.request(c, "two", bad(valuesOf("a=2")))); err == nil {
		t.Fatal("the hook did not fail")
	}
	w.restart()
	watched := needed{w.objects, map[string]bool{}}
	w.helm.config.Inventory = watched
	w.must(w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 2)), 1))
	equal(t, "the watched kinds", map[string]bool{"ConfigMap": true, "Secret": true}, watched.kinds)
}
