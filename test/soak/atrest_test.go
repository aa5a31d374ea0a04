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

// atRest returns an error unless a custom resource is in its expected final
// state.
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
		report, _ := json.Marshal(cr.Object["status"]) //nolint:errchkjson // it was decoded from JSON
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
		return errors.New("no condition Ready")
	}
	if s.pause != "" {
		return s.looksPaused(status)
	}
	if isTrue(status, "Paused") {
		return errors.New("unexpectedly paused")
	}
	if s.refused && !isTrue(status, "RollbackRefused") && !isTrue(status, "InvalidAnnotations") {
		return errors.New("the invalid request is not refused")
	}
	if !s.answered(cr, status) {
		return errors.New("the rollback request is not processed")
	}
	holds := isTrue(status, "Held")
	if s.hold == held && !holds {
		return errors.New("not held")
	}
	if s.hold == free && holds {
		return errors.New("unexpectedly held")
	}
	s.checkClaim()
	if s.bad && !holds {
		return s.looksRefused(ctx, cr, ready)
	}
	if s.unclaimed && s.claim != "" && !holds {
		if ready.Status != metav1.ConditionFalse || ready.Reason != api.ReasonApprovalRequired {
			return errors.New("the deletion of the claim should wait for an approval")
		}
		return nil
	}
	if ready.Status != metav1.ConditionTrue {
		return errors.New("not Ready")
	}
	revision, err := s.env.AtRest(ctx, s.name)
	if err != nil {
		return err
	}
	if status.Release == nil || status.Release.Revision != int64(revision.Version) {
		return fmt.Errorf("revision %d is deployed but not reported", revision.Version)
	}
	if s.hold == held && revision.Manifest != s.manifest {
		return fmt.Errorf("the held revision has the manifest\n%s\nwant:\n%s", revision.Manifest, s.manifest)
	}
	if !holds && !same(revision.Config, s.spec) {
		return fmt.Errorf("the release has the values %v, want %v", revision.Config, s.spec)
	}
	return s.env.CompareObjects(ctx, cr, revision, harness.ConfigMap("").GroupVersionKind(), harness.Secret("").GroupVersionKind())
}

func (s *subject) looksPaused(status api.Status) error {
	if !isTrue(status, "Paused") {
		return errors.New("not paused")
	}
	if now := s.env.Revisions(s.name); s.frozen != "" && now != s.frozen {
		return fmt.Errorf("paused with changed revisions, want %s", s.frozen)
	}
	return nil
}

// looksRefused checks that a spec that the chart refuses has only changed the
// status.
func (s *subject) looksRefused(ctx context.Context, cr *unstructured.Unstructured, ready *metav1.Condition) error {
	if ready.Status != metav1.ConditionFalse || ready.Reason != api.ReasonInvalidValues {
		return errors.New("the chart's schema should have refused the spec")
	}
	records := s.env.Records(s.name)
	if len(records) == 0 {
		return nil
	}
	if records[len(records)-1].Name == s.corrupt {
		return nil // the record of a refused spec need not be readable
	}
	newest := records[len(records)-1].Labels
	if newest["status"] != api.StatusDeployed || newest[api.LabelRevision] != newest["version"] {
		return nil // the deployed release comes from a failed attempt or from another client
	}
	revision, err := s.env.AtRest(ctx, s.name)
	if err != nil {
		return err
	}
	return s.env.CompareObjects(ctx, cr, revision, harness.ConfigMap("").GroupVersionKind(), harness.Secret("").GroupVersionKind())
}

// answered reports whether the operator has processed the last request.
// Annotations do not change the generation, so a release may look idle before
// its action has started.
func (s *subject) answered(cr *unstructured.Unstructured, status api.Status) bool {
	asked := annotations.Parse(cr.GetAnnotations()).Rollback
	if s.asked == 0 || asked == nil || asked.Malformed() {
		return true
	}
	records := s.env.Records(s.name)
	if len(records) == 0 {
		// If helm uninstall has deleted the records, a refused spec prevents a
		// new one.
		return true
	}
	// The record has the answer before the status shows the hold.
	if status.Answered == nil || status.Answered.RollbackTo != asked.Value {
		return false
	}
	for i := range records {
		if strings.HasPrefix(values.DigestOf(asked.Value), records[i].Labels[api.LabelRollbackRequest]) && records[i].Labels[api.LabelRollbackRequest] != "" {
			return true
		}
	}
	return false
}

// rested records state that is only known when the custom resource is at rest.
func (s *subject) rested() {
	s.world.t.Helper()
	if s.pause != "" {
		s.frozen = s.env.Revisions(s.name)
		return
	}
	s.asked, s.recordGone = 0, false
	s.claim = s.liveClaim()
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

// same compares values in their JSON form.
func same(a, b map[string]any) bool {
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
}
