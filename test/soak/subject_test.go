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

// subject is a custom resource, and what it should have come to.
type subject struct {
	world *world
	env   *harness.Env
	kind  harness.Kind
	name  string

	// alive: it was made and not deleted.
	alive bool
	// uid is that of its last life.
	uid types.UID
	// edits counts the specs, so that no two are the same.
	edits int
	spec  map[string]any
	// bad: the spec violates the chart's schema.
	bad bool
	// pause is the annotation's value, and frozen the revisions that there were
	// when all had come to rest since; others may add some, the operator none.
	pause, frozen string

	hold hold
	// manifest is what a held release holds, where that is known.
	manifest string
	// requests counts rollback requests, asked those that the operator may not
	// have seen yet. Values that were used once without a token are bare.
	requests, asked int
	bare            map[string]bool
	// refused: the last request must have been.
	refused bool
	// corrupt is the record that was damaged last.
	corrupt string
}

// hold is whether the release stays where a rollback put it.
type hold int

const (
	free hold = iota
	held
	// either: it depends on what the operator saw first.
	either
)

func (s *subject) String() string { return s.kind.Kind + " " + s.env.Namespace + "/" + s.name }

func (s *subject) object() *unstructured.Unstructured { return harness.MakeCR(s.kind, s.name).Obj() }

// nextSpec makes a spec that there has not been before.
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
	s.asked, s.bare = 0, map[string]bool{}
}

// setSpec edits the spec. That ends a hold, unless the operator sees the edit
// together with the rollback that it has not seen yet.
func (s *subject) setSpec(spec map[string]any, bad bool) {
	s.world.t.Helper()
	s.spec, s.bad = spec, bad
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

// annotate sets an annotation, or takes it away by an empty value.
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

// request asks for a rollback, by a value that there has not been before.
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

// unask takes an old request away, which must end nothing: what comes next
// loses the records that say that it was answered.
func (s *subject) unask() {
	s.world.t.Helper()
	s.annotate("rollback-to", "")
	if s.asked > 0 || s.hold == held {
		s.hold = either
	}
	s.refused = false
}

// owned returns the names of what the release has, among some objects.
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
