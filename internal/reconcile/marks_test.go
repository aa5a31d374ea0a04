package reconcile

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/decide"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/records"
)

// secretOf returns the metadata of a record that we wrote.
func secretOf(r records.Record) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Namespace, Name: records.SecretName(r.Release, r.Revision),
		Labels: map[string]string{
			records.LabelName: r.Release, records.LabelOwner: records.OwnerHelm, records.LabelStatus: r.Status,
			records.LabelVersion: strconv.Itoa(r.Revision), api.LabelRevision: strconv.Itoa(r.Revision), api.LabelOwnerUID: "uid",
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

// TestMarksAfter: every step leaves on the record what it answers, and nothing
// else of it changes.
func TestMarksAfter(t *testing.T) {
	r := &Reconciler{Kind: catalog.Kind{Chart: &helm.Chart{Digest: "new"}}}
	upgraded := []string{dep, sup, sup}
	spec := r.specDigest(viewOf(nil))
	before := records.Marks{Rollback: "r", Reconcile: "c", Force: "f", Test: "t", Refused: true, Held: &records.Held{Revision: 1, From: 2, Spec: "older"}, ResumedChart: "old"}
	all := asking("rollback-to", "2", "reconcile-requested-at", "now", "force", "now", "test", "now")
	change := func(do func(*records.Marks)) records.Marks {
		m := before
		do(&m)
		return m
	}
	requested := func(step decide.Step, revision int) decide.Decision {
		return decide.Decision{State: decide.StateRollbackRequested, Step: step, Revision: revision}
	}
	answered := func(m *records.Marks) { m.Reconcile, m.Force = token("now"), token("now") }
	unheld := func(m *records.Marks) { answered(m); m.Held, m.ResumedChart = nil, "" }
	for _, test := range []struct {
		name string
		d    decide.Decision
		// asked is a rollback request that waits for an answer.
		asked *decide.Request
		want  records.Marks
	}{
		{"an install", decide.Decision{Step: decide.StepInstall}, nil, change(unheld)},
		{"an upgrade", decide.Decision{Step: decide.StepUpgrade}, nil, change(unheld)},
		{"an upgrade while a request waits", decide.Decision{Step: decide.StepUpgrade}, &decide.Request{Token: "q", Revision: 2}, change(unheld)},
		{"a verification", decide.Decision{Step: decide.StepVerify}, nil, change(answered)},
		{"tests", decide.Decision{Step: decide.StepTest}, nil, change(func(m *records.Marks) { m.Test = token("now") })},
		{"a repair", decide.Decision{Step: decide.StepRepair}, nil, before},
		{"unlocking", decide.Decision{Step: decide.StepUnlock}, nil, before},
		{"an uninstall", decide.Decision{Step: decide.StepUninstall}, nil, before},
		{"a refusal", requested(decide.StepRefuse, 0), &decide.Request{Token: "q"}, change(func(m *records.Marks) { m.Rollback, m.Refused = "q", true })},
		{"the end of a hold that was asked for", requested(decide.StepResume, 0), &decide.Request{Token: "q", Resume: true}, change(func(m *records.Marks) { m.Rollback, m.Refused, m.Held, m.ResumedChart = "q", false, nil, "new" })},
		{"the end of a hold that is over", decide.Decision{State: decide.StateHeld, Step: decide.StepResume}, nil, change(func(m *records.Marks) { m.Held, m.ResumedChart = nil, "new" })},
		{"a rollback that was asked for", requested(decide.StepRollback, 2), &decide.Request{Token: "q", Revision: 2}, change(func(m *records.Marks) {
			m.Rollback, m.Refused, m.Held, m.ResumedChart = "q", false, &records.Held{Revision: 2, From: 3, Spec: spec}, ""
		})},
		{"a rollback by failure", decide.Decision{State: decide.StateFailed, Step: decide.StepRollback, Revision: 2}, nil, change(func(m *records.Marks) {
			m.Held, m.ResumedChart = &records.Held{Revision: 2, From: 3, Spec: spec, ByFailure: true}, ""
		})},
		{"a rollback to where it is held", decide.Decision{State: decide.StateHeld, Step: decide.StepRollback, Revision: 1}, nil, change(func(m *records.Marks) { m.ResumedChart = "" })},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := viewOf(upgraded, all, marked(before))
			v.observation.Request = test.asked
			if diff := cmp.Diff(test.want, r.marksAfter(v, test.d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, v.marks); diff != "" {
				t.Errorf("the view has changed, too:\n%s", diff)
			}
		})
	}
	byFailure := before
	byFailure.ResumedChart = ""
	byFailure.Held = &records.Held{Revision: 1, From: 2, Spec: "older", ByFailure: true}
	v := viewOf(upgraded, marked(byFailure))
	if diff := cmp.Diff(byFailure, r.marksAfter(v, decide.Decision{State: decide.StateHeld, Step: decide.StepRollback, Revision: 1})); diff != "" {
		t.Errorf("back to where it is held by failure (-want +got):\n%s", diff)
	}
}
