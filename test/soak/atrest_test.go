package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// atRest looks whether a custom resource has come to where it belongs.
func (s *subject) atRest(ctx context.Context) error {
	cr, err := s.env.At(s.object()).Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	status, err := harness.StatusOf(cr)
	if err != nil {
		return err
	}
	if err := s.looksRight(ctx, cr, status); err != nil {
		report, _ := json.Marshal(cr.Object["status"]) //nolint:errchkjson // it came as JSON
		return fmt.Errorf("%w; generation %d, annotations %v, revisions %s, status %s", err, cr.GetGeneration(), cr.GetAnnotations(), s.env.Revisions(s.name), report)
	}
	return nil
}

func (s *subject) looksRight(ctx context.Context, cr *unstructured.Unstructured, status api.Status) error {
	if status.ObservedGeneration != cr.GetGeneration() {
		return errors.New("the generation is not observed")
	}
	ready := harness.Condition(status, api.ConditionReady)
	if ready == nil {
		return errors.New("there is no condition Ready")
	}
	if s.pause != "" {
		return s.looksPaused(status)
	}
	if isTrue(status, "Paused") {
		return errors.New("it is paused")
	}
	if s.refused && !isTrue(status, "RollbackRefused") && !isTrue(status, "InvalidAnnotations") {
		return errors.New("a wrong request is not refused")
	}
	if !s.answered(cr) {
		return errors.New("the rollback request is not answered")
	}
	holds := isTrue(status, "Held")
	if s.hold == held && !holds {
		return errors.New("it is not held")
	}
	if s.hold == free && holds {
		return errors.New("it is held")
	}
	if s.bad && !holds {
		return s.looksRefused(ctx, cr, ready)
	}
	if ready.Status != metav1.ConditionTrue {
		return errors.New("it is not Ready")
	}
	revision, err := s.env.AtRest(ctx, s.name)
	if err != nil {
		return err
	}
	if status.Release == nil || status.Release.Revision != int64(revision.Version) {
		return fmt.Errorf("revision %d is deployed and not reported", revision.Version)
	}
	if s.hold == held && revision.Manifest != s.manifest {
		return fmt.Errorf("it is held at another revision than was asked for:\n%s\nexpected:\n%s", revision.Manifest, s.manifest)
	}
	if !holds && !same(revision.Config, s.spec) {
		return fmt.Errorf("it has the values %v, the spec has %v", revision.Config, s.spec)
	}
	return s.env.CompareObjects(ctx, cr, revision, harness.ConfigMap("").GroupVersionKind(), harness.Secret("").GroupVersionKind())
}

func (s *subject) looksPaused(status api.Status) error {
	if !isTrue(status, "Paused") {
		return errors.New("it is not paused")
	}
	if now := s.env.Revisions(s.name); s.frozen != "" && now != s.frozen {
		return fmt.Errorf("it is paused and had the revisions %s", s.frozen)
	}
	return nil
}

// looksRefused looks whether a spec that the chart refuses has changed nothing
// but the report.
func (s *subject) looksRefused(ctx context.Context, cr *unstructured.Unstructured, ready *metav1.Condition) error {
	if ready.Status != metav1.ConditionFalse || ready.Reason != api.ReasonInvalidValues {
		return errors.New("the chart's schema should have refused the spec")
	}
	records := s.env.Records(s.name)
	if len(records) == 0 {
		return nil
	}
	if records[len(records)-1].Name == s.corrupt {
		return nil // a spec that is refused needs no record to be read
	}
	newest := records[len(records)-1].Labels
	if newest["status"] != api.StatusDeployed || newest[api.LabelRevision] != newest["version"] {
		return nil // what runs is that of a try that failed, or somebody else's
	}
	revision, err := s.env.AtRest(ctx, s.name)
	if err != nil {
		return err
	}
	return s.env.CompareObjects(ctx, cr, revision, harness.ConfigMap("").GroupVersionKind(), harness.Secret("").GroupVersionKind())
}

// answered tells whether the operator has seen the last request: an annotation
// changes no generation, so that what looks at rest may not have begun.
func (s *subject) answered(cr *unstructured.Unstructured) bool {
	asked := annotations.Parse(cr.GetAnnotations()).Rollback
	if s.asked == 0 || asked == nil || asked.Malformed() {
		return true
	}
	records := s.env.Records(s.name)
	if len(records) == 0 {
		// A helm uninstall has deleted them, and the spec is refused.
		return true
	}
	for i := range records {
		if strings.HasPrefix(values.DigestOf(asked.Value), records[i].Labels[api.LabelRollbackRequest]) && records[i].Labels[api.LabelRollbackRequest] != "" {
			return true
		}
	}
	return false
}

// rested remembers what is known only now.
func (s *subject) rested() {
	s.world.t.Helper()
	if s.pause != "" {
		s.frozen = s.env.Revisions(s.name)
		return
	}
	s.asked = 0
	if s.hold != either {
		return
	}
	s.hold, s.manifest = free, ""
	if isTrue(s.env.Status(s.object()), "Held") {
		revision, err := s.env.AtRest(s.world.t.Context(), s.name)
		if err != nil {
			s.world.t.Fatal(err)
		}
		s.hold, s.manifest = held, revision.Manifest
	}
}

func isTrue(status api.Status, condition string) bool {
	c := harness.Condition(status, condition)
	return c != nil && c.Status == metav1.ConditionTrue
}

// same compares values as JSON has them.
func same(a, b map[string]any) bool {
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
}
