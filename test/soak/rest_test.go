package soak

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// rest stops the faults and waits until everything is in its expected state.
func (w *world) rest() {
	w.t.Helper()
	w.proxy.Calm()
	if w.trap != nil {
		w.proxy.Trap(0, harness.BeforeWrite, nil)
		if call, sprung := w.trap.Fired(); sprung {
			w.notef("the operator was killed at %s", call)
			w.totals.inc("kill-at-write done")
		}
		w.trap = nil
	}
	w.errands.Wait()
	w.Wait("the operator to be ready", func(ctx context.Context) error {
		w.keep()
		return w.operator.Probe(ctx, "/readyz")
	})
	w.bury()
	for _, s := range w.subjects {
		s.dismissStrangers()
		if !s.alive {
			s.create()
		}
	}
	for _, s := range w.subjects {
		w.Wait(fmt.Sprintf("%s to be at rest (seed %d, step %d)", s, w.seed, w.step), s.atRest)
		s.rested()
	}
	w.Wait("all orphaned objects to be deleted", w.noOrphans)
	w.Wait("no release to have more Jobs than revisions", w.fewJobs)
	w.checkViolations()
}

// bury waits until deleted resources are gone, with all their objects.
func (w *world) bury() {
	w.t.Helper()
	for _, s := range w.subjects {
		if s.alive || s.uid == "" {
			continue
		}
		w.Wait(fmt.Sprintf("%s to be gone (seed %d, step %d)", s, w.seed, w.step), func(ctx context.Context) error {
			live, err := s.env.At(s.object()).Get(ctx, s.name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			return fmt.Errorf("it still exists, with finalizers %v and status %v", live.GetFinalizers(), live.Object["status"])
		})
		// The finalizer is removed last.
		for _, like := range []*unstructured.Unstructured{harness.ConfigMap(""), harness.Secret("")} {
			left, err := s.env.At(like).List(w.t.Context(), metav1.ListOptions{LabelSelector: api.LabelOwnerUID + "=" + string(s.uid) + ",owner!=" + setAside + ",!" + copied})
			if err != nil {
				w.t.Fatal(err)
			}
			for i := range left.Items {
				w.violatef("%s is deleted, but its %s %s still exists", s, left.Items[i].GetKind(), left.Items[i].GetName())
			}
		}
	}
	if !w.placeGone {
		return
	}
	place := harness.Object("v1", "Namespace", w.places[len(w.places)-1].Namespace)
	w.WaitGone(place)
	w.Create(place)
	w.placeGone = false
}

// setAside is the value of the label "owner" on corrupt records that the operator
// has set aside for manual inspection.
const setAside = "chartwright-damaged"

// noOrphans returns an error if an object has the operator's labels but no
// owner.
func (w *world) noOrphans(ctx context.Context) error {
	alive := map[string]bool{}
	for _, s := range w.subjects {
		alive[string(s.uid)] = s.alive
	}
	for _, place := range w.places {
		for _, like := range []*unstructured.Unstructured{harness.ConfigMap(""), harness.Secret("")} {
			all, err := place.At(like).List(ctx, metav1.ListOptions{LabelSelector: api.LabelOperator + "=" + w.Namespace + ",owner!=" + setAside + ",!" + copied})
			if err != nil {
				return err
			}
			for i := range all.Items {
				object := &all.Items[i]
				if uid := object.GetLabels()[api.LabelOwnerUID]; !alive[uid] {
					return fmt.Errorf("%s %s/%s has the owner UID %q, but no custom resource has this UID", object.GetKind(), object.GetNamespace(), object.GetName(), uid)
				}
			}
		}
	}
	return nil
}

// end deletes everything, and checks that nothing remains.
func (w *world) end() {
	w.t.Helper()
	for _, s := range w.subjects {
		if s.pause == "including-deletion" {
			s.startTheClock()
		}
		s.env.Delete(s.object())
		s.alive = false
	}
	w.bury()
	w.Wait("all orphaned objects to be deleted", w.noOrphans)
	w.Wait("no release to have more Jobs than revisions", w.fewJobs)
	w.checkViolations()
}
