package reconcile

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

// secretOf returns the metadata of a record that this operator wrote.
func secretOf(r release.Record) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Namespace, Name: release.SecretName(r.Release, r.Revision),
		Labels: map[string]string{
			release.LabelName: r.Release, release.LabelOwner: release.OwnerHelm, release.LabelStatus: r.Status,
			release.LabelVersion: strconv.Itoa(r.Revision), api.LabelRevision: strconv.Itoa(r.Revision), api.LabelOwnerUID: "uid",
		},
		CreationTimestamp: r.Deployed,
	}}
	for key, value := range r.Marks.Labels() {
		if value != "" {
			m.Labels[key] = value
		}
	}
	return m
}

// TestMarksAfter: every step stores the answers to its requests in the record and
// changes no other mark.
func TestMarksAfter(t *testing.T) {
	r := &Reconciler{Kind: catalog.Kind{Chart: &chart.Chart{Digest: "new"}}}
	upgraded := []string{dep, sup, sup}
	spec := specOf(r, viewOf(nil))
	before := release.Marks{Rollback: "r", Reconcile: "c", Force: "f", Test: "t", Refused: true, Held: &release.Held{Revision: 1, From: 2, Spec: "older"}, ResumedChart: "old"}
	all := asking("rollback-to", "2", "reconcile-requested-at", "now", "force", "now", "test", "now")
	change := func(do func(*release.Marks)) release.Marks {
		m := before
		do(&m)
		return m
	}
	requested := func(step plan.Step, revision int) plan.Decision {
		return plan.Decision{State: plan.StateRollbackRequested, Step: step, Revision: revision}
	}
	answered := func(m *release.Marks) { m.Reconcile, m.Force = status.Token("now"), status.Token("now") }
	unheld := func(m *release.Marks) { answered(m); m.Held, m.ResumedChart = nil, "" }
	for _, test := range []struct {
		name string
		d    plan.Decision
		// asked is an unanswered rollback request.
		asked *plan.Request
		want  release.Marks
	}{
		{"an install", plan.Decision{Step: plan.StepInstall}, nil, change(unheld)},
		{"an upgrade", plan.Decision{Step: plan.StepUpgrade}, nil, change(unheld)},
		{"an upgrade with an unanswered request", plan.Decision{Step: plan.StepUpgrade}, &plan.Request{Token: "q", Revision: 2}, change(unheld)},
		{"a verification", plan.Decision{Step: plan.StepVerify}, nil, change(answered)},
		{"tests", plan.Decision{Step: plan.StepTest}, nil, change(func(m *release.Marks) { m.Test = status.Token("now") })},
		{"a repair", plan.Decision{Step: plan.StepRepair}, nil, before},
		{"unlocking", plan.Decision{Step: plan.StepUnlock}, nil, before},
		{"an uninstall", plan.Decision{Step: plan.StepUninstall}, nil, before},
		{"a refusal", requested(plan.StepRefuse, 0), &plan.Request{Token: "q"}, change(func(m *release.Marks) { m.Rollback, m.Refused = "q", true })},
		{"a requested end of a hold", requested(plan.StepResume, 0), &plan.Request{Token: "q", Resume: true}, change(func(m *release.Marks) { m.Rollback, m.Refused, m.Held, m.ResumedChart = "q", false, nil, "new" })},
		{"the end of an expired hold", plan.Decision{State: plan.StateHeld, Step: plan.StepResume}, nil, change(func(m *release.Marks) { m.Held, m.ResumedChart = nil, "new" })},
		{"a requested rollback", requested(plan.StepRollback, 2), &plan.Request{Token: "q", Revision: 2}, change(func(m *release.Marks) {
			m.Rollback, m.Refused, m.Held, m.ResumedChart = "q", false, &release.Held{Revision: 2, From: 3, Spec: spec}, ""
		})},
		{"a rollback after failures", plan.Decision{State: plan.StateFailed, Step: plan.StepRollback, Revision: 2}, nil, change(func(m *release.Marks) {
			m.Held, m.ResumedChart = &release.Held{Revision: 2, From: 3, Spec: spec, ByFailure: true}, ""
		})},
		{"a restored hold", plan.Decision{State: plan.StateHeld, Step: plan.StepRollback, Revision: 1}, nil, change(func(m *release.Marks) { m.ResumedChart = "" })},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := viewOf(upgraded, all, marked(before))
			v.Observation.Request = test.asked
			if diff := cmp.Diff(test.want, r.marksAfter(v, test.d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, v.Marks); diff != "" {
				t.Errorf("the snapshot has changed:\n%s", diff)
			}
		})
	}
	byFailure := before
	byFailure.ResumedChart = ""
	byFailure.Held = &release.Held{Revision: 1, From: 2, Spec: "older", ByFailure: true}
	v := viewOf(upgraded, marked(byFailure))
	if diff := cmp.Diff(byFailure, r.marksAfter(v, plan.Decision{State: plan.StateHeld, Step: plan.StepRollback, Revision: 1})); diff != "" {
		t.Errorf("restored hold after failures (-want +got):\n%s", diff)
	}
}
