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

// atRest returns an error unless a custom resource is in its expected state.
func (s *subject) atRest(ctx context.Context) error {
	cr, err := s.env.At(s.object()).Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	status, err := harness.StatusOf(cr)
	if err != nil {
		return err
	}
	if err := s.checkState(ctx, cr, status); err != nil {
		report, _ := json.Marshal(cr.Object["status"]) //nolint:errchkjson // it came as JSON
		return fmt.Errorf("%w; generation %d, annotations %v, revisions %s, status %s", err, cr.GetGeneration(), cr.GetAnnotations(), s.env.Revisions(s.name), report)
	}
	return nil
}

func (s *subject) checkState(ctx context.Context, cr *unstructured.Unstructured, status api.Status) error {
	if status.ObservedGeneration != cr.GetGeneration() {
		return errors.New("generation not observed")
	}
	ready := harness.Condition(status, api.ConditionReady)
	if ready == nil {
		return errors.New("condition Ready missing")
	}
	if s.pause != "" {
		return s.checkPaused(status)
	}
	if isTrue(status, "Paused") {
		return errors.New("paused")
	}
	if s.refused && !isTrue(status, "RollbackRefused") && !isTrue(status, "InvalidAnnotations") {
		return errors.New("invalid request not rejected")
	}
	if !s.answered(cr) {
		return errors.New("rollback request not answered")
	}
	holds := isTrue(status, "Held")
	if s.hold == held && !holds {
		return errors.New("not held")
	}
	if s.hold == free && holds {
		return errors.New("held")
	}
	if s.bad && !holds {
		return s.checkRejected(ctx, cr, ready)
	}
	if ready.Status != metav1.ConditionTrue {
		return errors.New("not Ready")
	}
	revision, err := s.env.AtRest(ctx, s.name)
	if err != nil {
		return err
	}
	if status.Release == nil || status.Release.Revision != int64(revision.Version) {
		return fmt.Errorf("revision %d is deployed, but not reported", revision.Version)
	}
	if s.hold == held && revision.Manifest != s.manifest {
		return fmt.Errorf("held at another revision than requested:\n%s\nwant:\n%s", revision.Manifest, s.manifest)
	}
	if !holds && !same(revision.Config, s.spec) {
		return fmt.Errorf("got values %v, want those of the spec: %v", revision.Config, s.spec)
	}
	return s.env.CompareObjects(ctx, cr, revision, harness.ConfigMap("").GroupVersionKind(), harness.Secret("").GroupVersionKind())
}

func (s *subject) checkPaused(status api.Status) error {
	if !isTrue(status, "Paused") {
		return errors.New("not paused")
	}
	if now := s.env.Revisions(s.name); s.frozen != "" && now != s.frozen {
		return fmt.Errorf("revisions changed during the pause, want %s", s.frozen)
	}
	return nil
}

// checkRejected returns an error if a spec that the chart rejects has changed anything but the
// status.
func (s *subject) checkRejected(ctx context.Context, cr *unstructured.Unstructured, ready *metav1.Condition) error {
	if ready.Status != metav1.ConditionFalse || ready.Reason != api.ReasonInvalidValues {
		return errors.New("the spec was not rejected by the schema of the chart")
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
		return nil // the deployed revision is from a failed attempt or another client
	}
	revision, err := s.env.AtRest(ctx, s.name)
	if err != nil {
		return err
	}
	return s.env.CompareObjects(ctx, cr, revision, harness.ConfigMap("").GroupVersionKind(), harness.Secret("").GroupVersionKind())
}

// answered reports whether the operator has processed the last request. An annotation does not
// change the generation, so a custom resource may only seem to be at rest.
func (s *subject) answered(cr *unstructured.Unstructured) bool {
	asked := annotations.Parse(cr.GetAnnotations()).Rollback
	if s.asked == 0 || asked == nil || asked.Malformed() {
		return true
	}
	records := s.env.Records(s.name)
	if len(records) == 0 {
		// A helm uninstall has deleted the records, and the spec is invalid.
		return true
	}
	for i := range records {
		if strings.HasPrefix(values.DigestOf(asked.Value), records[i].Labels[api.LabelRollbackRequest]) && records[i].Labels[api.LabelRollbackRequest] != "" {
			return true
		}
	}
	return false
}

// rested updates the model once the custom resource is at rest.
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

// same compares values by their JSON.
func same(a, b map[string]any) bool {
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
}
