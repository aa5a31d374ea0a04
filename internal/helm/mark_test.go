package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

func TestMark(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	r := w.request(c, "one", valuesOf("a=1"))
	r.Marks = backTo(1, 2)
	if err := w.helm.Mark(t.Context(), r); !errors.Is(err, release.ErrStale) {
		t.Errorf("without a release: %v, want ErrStale", err)
	}
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	before := w.newest()

	if err := w.helm.Mark(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	equal(t, "the marks in the index", r.Marks, w.index.History(w.namespace, "web")[0].Marks)
	after := w.newest()
	equal(t, "the stored records", r.Marks, after.Marks)
	if !after.Genuine() || after.InputDigest != "one" || after.Inventory.Digest != before.Inventory.Digest || after.Description != before.Description {
		t.Errorf("other fields of the record changed: %+v", after)
	}

	p := &disturbance{}
	w.net.armed.Store(p)
	w.must(w.helm.Mark(t.Context(), r))
	w.net.armed.Store(nil)
	if len(p.log()) > 0 {
		t.Errorf("unchanged marks were written: %v", p.log())
	}

	r.Marks = release.Marks{Test: "t"}
	w.must(w.helm.Mark(t.Context(), r))
	equal(t, "the marks that replace it", r.Marks, w.newest().Marks)

	// The record was deleted, and the index has not been updated.
	w.must(w.plain.CoreV1().Secrets(w.namespace).Delete(t.Context(), after.Secret, metav1.DeleteOptions{}))
	w.index.Put(after)
	r.Marks = release.Marks{}
	if err := w.helm.Mark(t.Context(), r); !errors.Is(err, release.ErrStale) {
		t.Errorf("of a deleted record: %v, want ErrStale", err)
	}
	if left := w.index.History(w.namespace, "web"); len(left) > 0 {
		t.Error("the index still holds it")
	}
}

func TestMark_SkipsRevisionsOfHelmCLI(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))))
	patch := []byte(`{"metadata": {"labels": {"` + api.LabelRevision + `": "1"}}}`)
	if _, err := w.plain.CoreV1().Secrets(w.namespace).Patch(t.Context(), "sh.helm.release.v1.web.v2", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.watch()
	r := w.request(c, "two", nil)
	r.Marks = backTo(1, 2)
	w.must(w.helm.Mark(t.Context(), r))
	history := w.index.History(w.namespace, "web")
	equal(t, "the marks of the helm CLI's and the operator's revision", []release.Marks{{}, r.Marks}, []release.Marks{history[0].Marks, history[1].Marks})
}

// Verify answers the request.
func TestVerify_WritesMarks(t *testing.T) {
	w := newWorld(t)
	r := w.request(mapsChart().load(t), "one", valuesOf("a=1"))
	w.must(w.helm.Install(t.Context(), r))
	r.Marks = release.Marks{Reconcile: "r", Force: "f"}
	w.must(w.helm.Verify(t.Context(), r))
	equal(t, "the marks", r.Marks, w.newest().Marks)
}

// testedChart returns a chart with tests: a ConfigMap, and the given hook.
func testedChart(hook string) files { return mapsChart().with("templates/tests/test.yaml", hook) }

const testPod = "apiVersion: v1\nkind: Pod\nmetadata: {name: test, annotations: {helm.sh/hook: test}}\nspec: {restartPolicy: Never, containers: [{name: c, image: i}]}\n"

func TestTest_StoresResult(t *testing.T) {
	phase := func(w *world, phase corev1.PodPhase) {
		patch := []byte(fmt.Sprintf(`{"status": {"phase": %q, "reason": "Because", "message": "it is so"}}`, phase))
		if _, err := w.plain.CoreV1().Pods(w.namespace).Patch(t.Context(), "test", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Error(err)
		}
	}
	for _, test := range []struct {
		name string
		hook string
		// meanwhile changes the pod while the slot is lent.
		meanwhile func(*world)
		lends     bool
		passed    bool
		message   string
	}{
		{"no tests", "", nil, false, true, "The chart has no tests"},
		{"tests that are only created", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: test, annotations: {helm.sh/hook: test}}\n", nil, true, true, "All tests passed"},
		{"a pod that succeeds", testPod, func(w *world) { phase(w, corev1.PodSucceeded) }, true, true, "All tests passed"},
		{"a pod that fails", testPod, func(w *world) { phase(w, corev1.PodFailed) }, true, false, "the chart's tests failed: wait for Pod NAMESPACE/test: pod failed: Because: it is so"},
		{"a pod that cannot be created", strings.ReplaceAll(testPod, "name: test", "name: Not_a_name"), nil, true, false, "Not_a_name"},
		{"a pod that a user deletes", testPod, func(w *world) {
			if err := w.plain.CoreV1().Pods(w.namespace).Delete(t.Context(), "test", *metav1.NewDeleteOptions(0)); err != nil {
				t.Error(err)
			}
		}, true, false, "deleted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			c := testedChart(test.hook).load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
			before := w.newest()
			if before.Tested != nil || before.Inventory.Digest == "" {
				t.Fatalf("before: %+v", before)
			}
			lent, resumed := 0, 0
			r := w.request(c, "of the spec", nil)
			r.Marks = release.Marks{Test: "request"}
			r.Slot = lenderFunc(func() func() {
				lent++
				// The slot is also lent during the deletion of an earlier pod.
				if _, err := w.plain.CoreV1().Pods(w.namespace).Get(t.Context(), "test", metav1.GetOptions{}); err == nil {
					test.meanwhile(w)
				}
				return func() { resumed++ }
			})
			err := w.helm.Test(t.Context(), r)
			if test.passed != (err == nil) || !test.passed && !errors.Is(err, ErrTestsFailed) {
				t.Errorf("error %v", err)
			}
			if (lent > 0) != test.lends || lent != resumed {
				t.Errorf("the slot was released %d times and reacquired %d times", lent, resumed)
			}
			after := w.newest()
			if after.Tested == nil || after.Tested.Passed != test.passed || after.Tested.At.IsZero() || !strings.Contains(after.Tested.Message, strings.ReplaceAll(test.message, "NAMESPACE", w.namespace)) {
				t.Errorf("the result is %+v, want passed %v with %q", after.Tested, test.passed, test.message)
			}
			equal(t, "the marks", r.Marks, after.Marks)
			equal(t, "the inventory", before.Inventory, after.Inventory)
			equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())
			if after.InputDigest != "one" || !after.Genuine() || after.Description != before.Description {
				t.Errorf("the record: %+v", after)
			}

			// The result is stored until the next revision, which has not been tested.
			w.must(w.helm.Mark(t.Context(), w.request(c, "one", nil)))
			if w.newest().Tested == nil {
				t.Error("the result is lost")
			}
			w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))))
			if w.newest().Tested != nil {
				t.Error("a revision has the result of another")
			}
		})
	}
}

// An error that prevents the test is not a failed test; the test is repeated.
func TestTest_ErrorIsNoResult(t *testing.T) {
	w := newWorld(t)
	c := testedChart(testPod).load(t)
	r := w.request(c, "one", valuesOf("a=1"))
	r.Marks = release.Marks{Test: "request"}
	if err := w.helm.Test(t.Context(), r); err == nil || errors.Is(err, ErrTestsFailed) {
		t.Errorf("without a release: %v", err)
	}
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	ctx, cancel := context.WithCancel(t.Context())
	r.Slot = lenderFunc(func() func() { return cancel })
	if err := w.helm.Test(ctx, r); !errors.Is(err, context.Canceled) || errors.Is(err, ErrTestsFailed) {
		t.Errorf("interrupted: %v", err)
	}
	w.net.armed.Store(&disturbance{at: 1, dead: true})
	r.Slot = NoOp{}
	if err := w.helm.Test(t.Context(), r); err == nil || errors.Is(err, ErrTestsFailed) {
		t.Errorf("without an API server: %v", err)
	}
	w.net.armed.Store(nil)
	if newest := w.newest(); newest.Tested != nil || newest.Marks.Test != "" {
		t.Errorf("a result was stored: %+v, %+v", newest.Tested, newest.Marks)
	}
}

type lenderFunc func() func()

func (f lenderFunc) Release() func() { return f() }
