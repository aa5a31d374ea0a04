package helm

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
)

// hookedChart returns a chart with one hook for each phase, a ConfigMap with the name
// of the phase.
func hookedChart(phases ...string) files {
	var hooks strings.Builder
	for _, phase := range phases {
		hooks.WriteString("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + phase + ", annotations: {helm.sh/hook: " + phase + "}}\n")
	}
	return mapsChart().with("templates/hooks.yaml", hooks.String())
}

// hooksMade returns the phases of the hooks that were created.
func (w *world) hooksMade() []string {
	w.Helper()
	list, err := w.plain.CoreV1().ConfigMaps(w.namespace).List(w.Context(), metav1.ListOptions{LabelSelector: api.LabelHookOwnerUID})
	if err != nil {
		w.Fatal(err)
	}
	made := []string{}
	for _, hook := range list.Items {
		made = append(made, hook.Name)
	}
	slices.Sort(made)
	return made
}

// Each action runs its own hooks, skips them if requested, and stores the requested
// description.
func TestActions_RunHooksAndSetDescription(t *testing.T) {
	c := hookedChart("pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-delete", "post-delete").load(t)
	for _, disabled := range []bool{false, true} {
		w := newWorld(t)
		request := func(digest string, values map[string]any, description string) Request {
			r := w.request(c, digest, values)
			r.DisableHooks, r.Description = disabled, description
			return r
		}
		made := func(want ...string) {
			t.Helper()
			if disabled {
				want = nil
			}
			equal(t, "the created hooks", append([]string{}, want...), w.hooksMade())
		}
		w.must(w.helm.Install(t.Context(), request("one", valuesOf("a=1"), "the first")))
		made("post-install", "pre-install")
		equal(t, "the description", "the first", w.newest().Description.Description)
		w.must(w.helm.Upgrade(t.Context(), request("two", valuesOf("a=2"), "the second")))
		made("post-install", "post-upgrade", "pre-install", "pre-upgrade")
		equal(t, "the description", "the second", w.newest().Description.Description)
		w.must(w.helm.Upgrade(t.Context(), request("three", valuesOf("a=3"), "")))
		equal(t, "Helm's own description", "Upgrade complete", w.newest().Description.Description)
		w.must(w.helm.Uninstall(t.Context(), request("", nil, "the last")))
		made("post-delete", "post-install", "post-upgrade", "pre-delete", "pre-install", "pre-upgrade")
		equal(t, "the objects", []string{}, w.configMaps())
	}
}

// Nothing can be created in a terminating namespace. A warning reports the skipped
// hooks.
func TestUninstall_SkipsHooksInTerminatingNamespace(t *testing.T) {
	for _, phase := range []string{"pre-delete", "post-delete"} {
		t.Run(phase, func(t *testing.T) {
			w := newWorld(t)
			c := hookedChart(phase).load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
			w.must(w.plain.CoreV1().Namespaces().Delete(t.Context(), w.namespace, metav1.DeleteOptions{}))
			var warnings []string
			r := w.request(c, "", nil)
			r.Notifier = warnFunc(func(reason, what string) { warnings = append(warnings, reason+": "+what) })
			w.must(w.helm.Uninstall(t.Context(), r))
			equal(t, "the warnings", []string{api.EventHooksSkipped + ": The chart's delete hooks are skipped because namespace " + w.namespace + " is being deleted"}, warnings)
			equal(t, "the objects", []string{}, w.configMaps())
			equal(t, "the hooks", []string{}, w.hooksMade())
			equal(t, "the revisions", []string{}, w.statuses())
		})
	}
}

// The uninstall fails until the hook succeeds or the user disables hooks.
func TestUninstall_RepeatsFailedHook(t *testing.T) {
	for _, test := range []struct {
		phase string
		// left holds the objects that exist while the hook fails.
		left []string
	}{
		{"pre-delete", []string{"a=1", "pre-delete="}},
		{"post-delete", []string{"post-delete="}},
	} {
		for _, without := range []bool{false, true} {
			t.Run(test.phase, func(t *testing.T) {
				w := newWorld(t)
				c := hookedChart(test.phase).load(t)
				w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
				w.make(test.phase)
				w.setForeignOwner(test.phase)
				for range 2 {
					if err := w.helm.Uninstall(t.Context(), w.request(c, "", nil)); err == nil || !strings.Contains(err.Error(), test.phase) {
						t.Errorf("%v, want an error of the hook", err)
					}
					equal(t, "the objects", test.left, w.configMaps())
					if len(w.statuses()) != 1 {
						t.Error("the record was deleted although the hook failed")
					}
				}
				r := w.request(c, "", nil)
				if r.DisableHooks = without; !without {
					w.must(w.plain.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), test.phase, metav1.DeleteOptions{}))
				}
				w.must(w.helm.Uninstall(t.Context(), r))
				if made := len(w.hooksMade()) == 1; made == without {
					t.Errorf("the hook was created: %v", made)
				}
				equal(t, "the revisions", []string{}, w.statuses())
			})
		}
	}
}

// The uninstall is incomplete until all objects are deleted.
func TestUninstall_WaitsForObjects(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))))
	finalizers := func(patch string) {
		t.Helper()
		if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata": {"finalizers": `+patch+`}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	finalizers(`["example.com/held"]`)
	r := w.request(c, "", nil)
	r.WaitForDelete, r.Timeout = true, 300*time.Millisecond
	for range 2 {
		if err := w.helm.Uninstall(t.Context(), r); !errors.Is(err, ErrWaiting) || !strings.Contains(err.Error(), "ConfigMap "+w.namespace+"/a") {
			t.Errorf("%v, want ErrWaiting with the object", err)
		}
		w.watch()
	}
	equal(t, "the objects", []string{"a=1"}, w.configMaps())
	finalizers("null")
	w.watch()
	if err := w.helm.Uninstall(t.Context(), r); err != nil {
		t.Errorf("all objects are deleted, but the uninstall fails: %v", err)
	}
	equal(t, "the revisions", []string{}, w.statuses())
}

func TestUninstall_DoesNotWaitByDefault(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata": {"finalizers": ["example.com/held"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.ended(func() error { return w.helm.Uninstall(t.Context(), w.request(c, "", nil)) }); err != nil {
		t.Error(err)
	}
	equal(t, "the revisions", []string{}, w.statuses())
}

// If the uninstall takes time, it first writes the status uninstalling. Otherwise it
// writes the status only after a failure.
func TestUninstall_WritesStatusUninstalling(t *testing.T) {
	uninstall := func(w *world, chart files, change func(*Request), fails func(*http.Request) bool) (writes []string, err error) {
		c := chart.load(w.T)
		w.must(w.helm.Install(w.Context(), w.request(c, "one", valuesOf("a=1"))))
		r := w.request(c, "", nil)
		change(&r)
		p := &disturbance{fails: fails}
		w.net.armed.Store(p)
		err = w.helm.Uninstall(w.Context(), r)
		w.net.armed.Store(nil)
		for _, request := range p.log() {
			if !strings.HasPrefix(request, http.MethodGet) {
				writes = append(writes, strings.ReplaceAll(request, "/api/v1/namespaces/"+w.namespace, ""))
			}
		}
		return writes, err
	}
	const (
		mark   = "PUT /secrets/sh.helm.release.v1.web.v1"
		object = "DELETE /configmaps/a"
		hook   = "POST /configmaps"
		record = "DELETE /secrets/sh.helm.release.v1.web.v1"
	)
	for name, test := range map[string]struct {
		chart  files
		change func(*Request)
		writes []string
	}{
		"at once":              {mapsChart(), func(*Request) {}, []string{object, record}},
		"with a hook":          {hookedChart("pre-delete"), func(*Request) {}, []string{mark, hook, mark, object, record}},
		"with a hook after it": {hookedChart("post-delete"), func(*Request) {}, []string{mark, object, mark, hook, record}},
		"without its hook":     {hookedChart("pre-delete"), func(r *Request) { r.DisableHooks = true }, []string{object, record}},
		"with a wait":          {mapsChart(), func(r *Request) { r.WaitForDelete = true }, []string{mark, object, record}},
	} {
		t.Run(name, func(t *testing.T) {
			writes, err := uninstall(newWorld(t), test.chart, test.change, nil)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "the writes", test.writes, writes)
		})
	}
	t.Run("that fails", func(t *testing.T) {
		w := newWorld(t)
		_, err := uninstall(w, mapsChart(), func(*Request) {}, func(request *http.Request) bool {
			return request.Method == http.MethodDelete && strings.HasSuffix(request.URL.Path, "/configmaps/a")
		})
		if err == nil {
			t.Error("the action succeeded")
		}
		equal(t, "the revisions", []string{"v1 uninstalling"}, w.statuses())
		w.must(w.helm.Uninstall(t.Context(), w.request(mapsChart().load(t), "", nil)))
		equal(t, "the revisions at the end", []string{}, w.statuses())
	})
}

// The operator knows its objects. An uninstall does not read them before it deletes them.
func TestUninstall_ReadsNoObject(t *testing.T) {
	w := newWorld(t)
	w.must(w.helm.Install(t.Context(), w.request(mapsChart().load(t), "one", valuesOf("a=1", "b=1"))))
	watched := &disturbance{}
	w.net.armed.Store(watched)
	w.must(w.helm.Uninstall(t.Context(), w.request(mapsChart().load(t), "", nil)))
	w.net.armed.Store(nil)
	requests := slices.DeleteFunc(watched.log(), func(request string) bool { return !strings.Contains(request, "/configmaps") })
	path := "DELETE /api/v1/namespaces/" + w.namespace + "/configmaps/"
	equal(t, "the requests", []string{path + "a", path + "b"}, requests)
}
