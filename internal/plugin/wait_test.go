package plugin

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
)

// TestLasting: what is tried again while somebody waits.
func TestLasting(t *testing.T) {
	resource := schema.GroupResource{Resource: "podsets"}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{errGone, true},
		{apierrors.NewUnauthorized("no"), true},
		{apierrors.NewNotFound(resource, "web"), true},
		{apierrors.NewTooManyRequests("later", 1), false},
		{apierrors.NewResourceExpired("old"), false},
		{apierrors.NewInternalError(errors.New("no")), false},
		{apierrors.NewServiceUnavailable("no"), false},
		{io.ErrUnexpectedEOF, false},
	} {
		if got := lasting(fmt.Errorf("watch: %w", test.err)); got != test.want {
			t.Errorf("%v lasts: %v", test.err, got)
		}
	}
}

// made builds a custom resource with a status.
type made struct {
	cr     *unstructured.Unstructured
	status api.Status
}

// makeCR begins one.
func makeCR(name string) *made {
	m := &made{cr: &unstructured.Unstructured{Object: map[string]any{}}}
	m.cr.SetNamespace("shop")
	m.cr.SetName(name)
	return m
}

func (m *made) condition(kind string, status metav1.ConditionStatus, reason, message string) *made {
	m.status.Conditions = append(m.status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	return m
}

func (m *made) ready(status metav1.ConditionStatus, reason string) *made {
	return m.condition(api.ConditionReady, status, reason, "as it is")
}

func (m *made) answered(a api.AnsweredStatus) *made {
	m.status.Answered = &a
	return m
}

func (m *made) held(to, from int64, reason string) *made {
	m.status.Rollback = &api.RollbackStatus{To: to, From: from}
	return m.condition(api.ConditionHeld, metav1.ConditionTrue, reason, "held as it is")
}

func (m *made) annotated(key, value string) *made {
	m.cr.SetAnnotations(map[string]string{key: value})
	return m
}

func (m *made) deleting() *made {
	m.cr.SetDeletionTimestamp(new(metav1.Now()))
	return m
}

func (m *made) release(revision int64, version string) *made {
	m.status.Release = &api.ReleaseStatus{Name: m.cr.GetName(), Revision: revision, ChartVersion: version}
	return m
}

func (m *made) history(revision int64, version string) *made {
	m.status.History = append(m.status.History, api.HistoryEntry{Revision: revision, ChartVersion: version})
	return m
}

func (m *made) update(version, reason string, place int64) *made {
	m.status.Update = &api.UpdateStatus{Chart: "web-" + version, ChartVersion: version, Place: place}
	return m.condition(api.ConditionUpdateAvailable, metav1.ConditionTrue, reason, "to come")
}

// obj returns it as the API server would.
func (m *made) obj(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m.status)
	if err != nil {
		t.Fatal(err)
	}
	m.cr.Object["status"] = content
	return m.cr
}

func TestJudges(t *testing.T) {
	const (
		yes, no, maybe = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	)
	rolled := api.AnsweredStatus{RollbackTo: "2@now"}
	verified := api.AnsweredStatus{ReconcileRequestedAt: "2@now"}
	for _, test := range []struct {
		name  string
		judge judge
		of    *made
		end   end
		says  string
	}{
		{"nothing is reported", judgeRollback, makeCR("web"), endOpen, ""},
		{"ready, and not answered", judgeRollback, makeCR("web").ready(yes, api.ReasonDeployed), endOpen, ""},
		{"failed before, and not answered", judgeRollback, makeCR("web").ready(no, api.ReasonUpgradeFailed), endOpen, ""},
		{"held by the request before", judgeRollback, makeCR("web").answered(api.AnsweredStatus{RollbackTo: "2@then"}).ready(yes, api.ReasonDeployed).held(2, 3, api.ReasonRolledBack), endOpen, ""},
		{"paused", judgeRollback, makeCR("web").ready(yes, api.ReasonDeployed).annotated(api.AnnotationPause, "true"), endFailed, "is paused"},
		{"paused after the answer", judgeRollback, makeCR("web").answered(rolled).ready(yes, api.ReasonDeployed).held(2, 3, api.ReasonRolledBack).annotated(api.AnnotationPause, "true"), endDone, "as it is"},
		{"deleted", judgeRollback, makeCR("web").answered(rolled).deleting(), endFailed, "being deleted"},
		{"under way", judgeRollback, makeCR("web").answered(rolled).ready(maybe, api.ReasonRollingBack), endOpen, ""},
		{"done, and objects not ready yet", judgeRollback, makeCR("web").answered(rolled).ready(no, api.ReasonProgressing).held(2, 3, api.ReasonRolledBack), endOpen, ""},
		{"done", judgeRollback, makeCR("web").answered(rolled).ready(yes, api.ReasonDeployed).held(2, 3, api.ReasonRolledBack), endDone, "as it is"},
		{"objects fail", judgeRollback, makeCR("web").answered(rolled).ready(no, api.ReasonObjectFailed).held(2, 3, api.ReasonRolledBack), endFailed, "ObjectFailed: as it is"},
		{"the action fails", judgeRollback, makeCR("web").answered(rolled).ready(no, api.ReasonRollbackFailed), endFailed, "RollbackFailed: as it is"},
		{"refused", judgeRollback, makeCR("web").answered(rolled).ready(yes, api.ReasonDeployed).condition(api.ConditionRollbackRefused, yes, api.ReasonNoSuchRevision, "not to be had"), endFailed, "refused: not to be had"},
		{"refused before", judgeRollback, makeCR("web").ready(yes, api.ReasonDeployed).condition(api.ConditionRollbackRefused, yes, api.ReasonNoSuchRevision, "not to be had"), endOpen, ""},
		{"edited meanwhile", judgeRollback, makeCR("web").answered(rolled).ready(yes, api.ReasonDeployed), endFailed, "nothing is held"},

		{"resumed", judgeResume, makeCR("web").answered(rolled).ready(yes, api.ReasonDeployed), endDone, "as it is"},
		{"resumed to what fails", judgeResume, makeCR("web").answered(rolled).ready(no, api.ReasonUpgradeFailed), endFailed, "UpgradeFailed: "},
		{"not resumed yet", judgeResume, makeCR("web").ready(yes, api.ReasonDeployed).held(2, 3, api.ReasonRolledBack), endOpen, ""},

		{"verified", judgeReconcile, makeCR("web").answered(verified).ready(yes, api.ReasonDeployed), endDone, "as it is"},
		{"another was verified", judgeReconcile, makeCR("web").answered(api.AnsweredStatus{ReconcileRequestedAt: "then"}).ready(yes, api.ReasonDeployed), endOpen, ""},
		{"not to be repaired", judgeReconcile, makeCR("web").answered(verified).ready(yes, api.ReasonDeployed).condition(api.ConditionDrifted, yes, api.ReasonRepairFailed, "why"), endFailed, "RepairFailed: why"},
		{"verified, and not ready", judgeReconcile, makeCR("web").answered(verified).ready(no, api.ReasonProgressing), endOpen, ""},

		{"pause, not heard of", judgePause, makeCR("web").annotated(api.AnnotationPause, "true").ready(yes, api.ReasonDeployed), endOpen, ""},
		{"pause", judgePause, makeCR("web").annotated(api.AnnotationPause, "true").condition(api.ConditionPaused, yes, api.ReasonPaused, "nothing waits"), endDone, "nothing waits"},
		{"pause, taken back", judgePause, makeCR("web").ready(yes, api.ReasonDeployed), endFailed, "ended the pause"},
		{"unpause, not heard of", judgeUnpause, makeCR("web").condition(api.ConditionPaused, yes, api.ReasonPaused, "").ready(yes, api.ReasonDeployed), endOpen, ""},
		{"unpause", judgeUnpause, makeCR("web").ready(yes, api.ReasonDeployed), endDone, "as it is"},
		{"unpause, and an upgrade waited", judgeUnpause, makeCR("web").ready(maybe, api.ReasonUpgrading), endOpen, ""},
		{"unpause, and it fails", judgeUnpause, makeCR("web").ready(no, api.ReasonUpgradeFailed), endFailed, "UpgradeFailed"},
		{"unpause, and paused again", judgeUnpause, makeCR("web").annotated(api.AnnotationPause, "including-deletion").ready(yes, api.ReasonDeployed), endFailed, "paused it again"},
		{"unpause of what goes", judgeUnpause, makeCR("web").deleting().ready(yes, api.ReasonDeployed), endFailed, "being deleted"},
	} {
		cr := test.of.obj(t)
		got := test.judge("2@now", cr, statusOf(cr))
		if got.state != test.end || !strings.Contains(got.message, test.says) {
			t.Errorf("%s: %q, %q; want %q, %q", test.name, got.state, got.message, test.end, test.says)
		}
	}
}

func TestVerdictsAreExitCodes(t *testing.T) {
	for state, want := range map[end]int{endDone: 0, endFailed: 1, endUnknown: 2} {
		if got := exitCode(verdict{state, "why"}.err("podset/web")); got != want {
			t.Errorf("%s ends with %d, want %d", state, got, want)
		}
	}
}
