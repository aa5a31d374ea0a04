package soak

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// subject is a custom resource, and its expected state.
type subject struct {
	world *world
	env   *harness.Env
	kind  harness.Kind
	name  string

	// alive: the resource was created and not deleted.
	alive bool
	// uid is the UID of the last resource with this name.
	uid types.UID
	// edits counts the specs, so that no two are equal.
	edits int
	spec  map[string]any
	// bad: the spec violates the chart's schema.
	bad bool
	// pause is the value of the annotation. frozen are the revisions that
	// existed when the paused resource was at rest; other clients may add
	// revisions, the operator must not.
	pause, frozen string

	hold hold
	// manifest is the manifest of a held release, if known.
	manifest string
	// requests counts rollback requests; asked are those that the operator may
	// not have processed yet. bare are values that were already used without a
	// token.
	requests, asked int
	bare            map[string]bool
	// refused: the last request must be refused.
	refused bool
	// corrupt is the record that was corrupted last.
	corrupt string
	// recordGone: a record was deleted in this round.
	recordGone bool
	// unclaimed: the spec has no claim any longer, which needs an approval.
	unclaimed bool
	// claim is the UID of the claim, which must not be deleted. It is empty if it is unknown.
	claim types.UID
	// strangers are objects that another user has created in place of the release's objects.
	strangers []*unstructured.Unstructured
}

// hold defines whether the release is held after a rollback.
type hold int

const (
	free hold = iota
	held
	// either: it depends on what the operator observed first.
	either
)

func (s *subject) String() string { return s.kind.Kind + " " + s.env.Namespace + "/" + s.name }

func (s *subject) object() *unstructured.Unstructured { return harness.MakeCR(s.kind, s.name).Obj() }

// nextSpec returns a spec that was not used before.
func (s *subject) nextSpec() map[string]any {
	s.edits++
	pieces := map[string]any{"one": fmt.Sprintf("edit %d", s.edits)}
	for _, name := range []string{"two", "three"} {
		if s.world.rng.IntN(2) == 0 {
			pieces[name] = fmt.Sprintf("%s of edit %d", name, s.edits)
		}
	}
	return map[string]any{
		"pieces": pieces,
		"claim":  true,
		"hook":   map[string]any{"enabled": s.world.rng.IntN(4) == 0},
	}
}

func (s *subject) create() {
	s.world.t.Helper()
	s.spec = s.nextSpec()
	cr := s.object()
	cr.Object["spec"] = s.spec
	created, err := s.env.At(cr).Create(s.world.t.Context(), cr, metav1.CreateOptions{})
	if err != nil {
		s.world.t.Fatal(err)
	}
	s.uid = created.GetUID()
	s.alive, s.bad, s.pause, s.hold, s.refused, s.frozen = true, false, "", free, false, ""
	s.unclaimed, s.claim = false, ""
	s.asked, s.bare = 0, map[string]bool{}
}

// setSpec edits the spec. The edit ends a hold, unless the operator observes it
// together with the rollback request.
func (s *subject) setSpec(spec map[string]any, bad bool) {
	s.world.t.Helper()
	s.spec, s.bad = spec, bad
	claimed, _ := spec["claim"].(bool)
	s.unclaimed = !claimed
	s.env.SetSpec(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": s.kind.GroupVersion().String(), "kind": s.kind.Kind,
		"metadata": map[string]any{"name": s.name}, "spec": spec,
	}})
	if s.asked == 0 {
		s.hold = free
	} else {
		s.hold, s.refused = either, false
	}
}

// annotate sets an annotation, or removes it if the value is empty.
func (s *subject) annotate(key, value string) {
	s.world.t.Helper()
	var set any
	if value != "" {
		set = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{api.Domain + "/" + key: set}}})
	if err != nil {
		s.world.t.Fatal(err)
	}
	_, err = s.env.At(s.object()).Patch(s.world.t.Context(), s.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		s.world.t.Fatal(err)
	}
}

// request requests a rollback with a value that was not used before.
func (s *subject) request(target string) string {
	s.world.t.Helper()
	s.requests++
	value := fmt.Sprintf("%s@%d", target, s.requests)
	if !s.bare[target] && s.world.rng.IntN(3) == 0 {
		value, s.bare[target] = target, true
	}
	s.annotate("rollback-to", value)
	s.asked++
	s.refused = false
	return value
}

// unask removes an old request. This must not end a hold, and prevents the
// request from being repeated after later events delete the records that mark
// it as processed.
func (s *subject) unask() {
	s.world.t.Helper()
	s.annotate("rollback-to", "")
	if s.asked > 0 || s.hold == held {
		s.hold = either
	}
	s.refused = false
}

// owned returns the names of the release's objects of the same kind as like.
func (s *subject) owned(ctx context.Context, like *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	list, err := s.env.At(like).List(ctx, metav1.ListOptions{LabelSelector: api.LabelOwnerUID + "=" + string(s.uid)})
	if err != nil {
		return nil, err
	}
	var found []unstructured.Unstructured
	for i := range list.Items {
		if list.Items[i].Object["type"] != recordType {
			found = append(found, list.Items[i])
		}
	}
	return found, nil
}

const recordType = "helm.sh/release.v1"
