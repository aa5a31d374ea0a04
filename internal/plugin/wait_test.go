package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/api"
)

func TestPermanent_TemporaryErrorsAreRetried(t *testing.T) {
	resource := schema.GroupResource{Resource: "podsets"}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{errDeleted, true},
		{apierrors.NewUnauthorized("no"), true},
		{apierrors.NewNotFound(resource, "web"), true},
		{apierrors.NewTooManyRequests("later", 1), false},
		{apierrors.NewResourceExpired("old"), false},
		{apierrors.NewInternalError(errors.New("no")), false},
		{apierrors.NewServiceUnavailable("no"), false},
		{io.ErrUnexpectedEOF, false},
	} {
		if got := permanent(fmt.Errorf("watch: %w", test.err)); got != test.want {
			t.Errorf("%v: permanent is %v", test.err, got)
		}
	}
}

// crBuilder builds a custom resource with a status.
type crBuilder struct {
	cr     *unstructured.Unstructured
	status api.Status
}

func makeCR(name string) *crBuilder {
	m := &crBuilder{cr: &unstructured.Unstructured{Object: map[string]any{}}}
	m.cr.SetNamespace("shop")
	m.cr.SetName(name)
	return m
}

func (m *crBuilder) condition(kind string, status metav1.ConditionStatus, reason, message string) *crBuilder {
	m.status.Conditions = append(m.status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	return m
}

func (m *crBuilder) ready(status metav1.ConditionStatus, reason string) *crBuilder {
	return m.condition(api.ConditionReady, status, reason, "some message")
}

func (m *crBuilder) answered(a api.AnsweredStatus) *crBuilder {
	m.status.Answered = &a
	return m
}

func (m *crBuilder) held(to, from int64, reason string) *crBuilder {
	m.status.Rollback = &api.RollbackStatus{To: to, From: from}
	return m.condition(api.ConditionHeld, metav1.ConditionTrue, reason, "held message")
}

func (m *crBuilder) annotated(key, value string) *crBuilder {
	m.cr.SetAnnotations(map[string]string{key: value})
	return m
}

func (m *crBuilder) deleting() *crBuilder {
	m.cr.SetDeletionTimestamp(new(metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
	m.cr.SetFinalizers([]string{api.Finalizer, "backup"})
	return m
}

func (m *crBuilder) release(revision int64, version string) *crBuilder {
	m.status.Release = &api.ReleaseStatus{Name: m.cr.GetName(), Revision: revision, ChartVersion: version}
	return m
}

func (m *crBuilder) history(revision int64, version string) *crBuilder {
	m.status.History = append(m.status.History, api.HistoryEntry{Revision: revision, ChartVersion: version})
	return m
}

func (m *crBuilder) update(version, reason string, place int64) *crBuilder {
	m.status.Update = &api.UpdateStatus{Chart: "web-" + version, ChartVersion: version, Place: place}
	return m.condition(api.ConditionUpdateAvailable, metav1.ConditionTrue, reason, "new chart")
}

// obj returns the custom resource as the API server would.
func (m *crBuilder) obj(t *testing.T) *unstructured.Unstructured {
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
	rolledBack := api.AnsweredStatus{RollbackTo: "2@now"}
	reconciled := api.AnsweredStatus{ReconcileRequestedAt: "2@now"}
	for _, test := range []struct {
		name  string
		judge judge
		of    *crBuilder
		want  outcome
		// message is a part of the message.
		message string
	}{
		{"rollback: no status", judgeRollback, makeCR("web"), outcomeOpen, ""},
		{"rollback: ready, not answered", judgeRollback, makeCR("web").ready(yes, api.ReasonDeployed), outcomeOpen, ""},
		{"rollback: failed before, not answered", judgeRollback, makeCR("web").ready(no, api.ReasonUpgradeFailed), outcomeOpen, ""},
		{"rollback: held by an earlier request", judgeRollback, makeCR("web").answered(api.AnsweredStatus{RollbackTo: "2@then"}).ready(yes, api.ReasonDeployed).held(2, 3, api.ReasonRolledBack), outcomeOpen, ""},
		{"rollback: paused", judgeRollback, makeCR("web").ready(yes, api.ReasonDeployed).annotated(api.AnnotationPause, "true"), outcomeFailed, "is paused"},
		{"rollback: paused after the answer", judgeRollback, makeCR("web").answered(rolledBack).ready(yes, api.ReasonDeployed).held(2, 3, api.ReasonRolledBack).annotated(api.AnnotationPause, "true"), outcomeDone, "some message"},
		{"rollback: deleted", judgeRollback, makeCR("web").answered(rolledBack).deleting(), outcomeFailed, "being deleted"},
		{"rollback: running", judgeRollback, makeCR("web").answered(rolledBack).ready(maybe, api.ReasonRollingBack), outcomeOpen, ""},
		{"rollback: objects not ready yet", judgeRollback, makeCR("web").answered(rolledBack).ready(no, api.ReasonProgressing).held(2, 3, api.ReasonRolledBack), outcomeOpen, ""},
		{"rollback: done", judgeRollback, makeCR("web").answered(rolledBack).ready(yes, api.ReasonDeployed).held(2, 3, api.ReasonRolledBack), outcomeDone, "some message"},
		{"rollback: object failed", judgeRollback, makeCR("web").answered(rolledBack).ready(no, api.ReasonObjectFailed).held(2, 3, api.ReasonRolledBack), outcomeFailed, "ObjectFailed: some message"},
		{"rollback: action failed", judgeRollback, makeCR("web").answered(rolledBack).ready(no, api.ReasonRollbackFailed), outcomeFailed, "RollbackFailed: some message"},
		{"rollback: refused", judgeRollback, makeCR("web").answered(rolledBack).ready(yes, api.ReasonDeployed).condition(api.ConditionRollbackRefused, yes, api.ReasonNoSuchRevision, "not stored"), outcomeFailed, "refused: not stored"},
		{"rollback: earlier request refused", judgeRollback, makeCR("web").ready(yes, api.ReasonDeployed).condition(api.ConditionRollbackRefused, yes, api.ReasonNoSuchRevision, "not stored"), outcomeOpen, ""},
		{"rollback: spec edited", judgeRollback, makeCR("web").answered(rolledBack).ready(yes, api.ReasonDeployed), outcomeFailed, "no revision is held"},

		{"unhold: done", judgeUnhold, makeCR("web").answered(rolledBack).ready(yes, api.ReasonDeployed), outcomeDone, "some message"},
		{"unhold: upgrade failed", judgeUnhold, makeCR("web").answered(rolledBack).ready(no, api.ReasonUpgradeFailed), outcomeFailed, "UpgradeFailed: "},
		{"unhold: not answered", judgeUnhold, makeCR("web").ready(yes, api.ReasonDeployed).held(2, 3, api.ReasonRolledBack), outcomeOpen, ""},

		{"reconcile: done", judgeReconcile, makeCR("web").answered(reconciled).ready(yes, api.ReasonDeployed), outcomeDone, "some message"},
		{"reconcile: earlier request answered", judgeReconcile, makeCR("web").answered(api.AnsweredStatus{ReconcileRequestedAt: "then"}).ready(yes, api.ReasonDeployed), outcomeOpen, ""},
		{"reconcile: drift correction failed", judgeReconcile, makeCR("web").answered(reconciled).ready(yes, api.ReasonDeployed).condition(api.ConditionDrifted, yes, api.ReasonRepairFailed, "why"), outcomeFailed, "RepairFailed: why"},
		{"reconcile: objects not ready yet", judgeReconcile, makeCR("web").answered(reconciled).ready(no, api.ReasonProgressing), outcomeOpen, ""},

		{"pause: not reported yet", judgePause, makeCR("web").annotated(api.AnnotationPause, "true").ready(yes, api.ReasonDeployed), outcomeOpen, ""},
		{"pause: done", judgePause, makeCR("web").annotated(api.AnnotationPause, "true").condition(api.ConditionPaused, yes, api.ReasonPaused, "no changes pending"), outcomeDone, "no changes pending"},
		{"pause: ended by another client", judgePause, makeCR("web").ready(yes, api.ReasonDeployed), outcomeFailed, "ended the pause"},
		{"resume: not reported yet", judgeResume, makeCR("web").condition(api.ConditionPaused, yes, api.ReasonPaused, "").ready(yes, api.ReasonDeployed), outcomeOpen, ""},
		{"resume: done", judgeResume, makeCR("web").ready(yes, api.ReasonDeployed), outcomeDone, "some message"},
		{"resume: delayed upgrade is running", judgeResume, makeCR("web").ready(maybe, api.ReasonUpgrading), outcomeOpen, ""},
		{"resume: upgrade failed", judgeResume, makeCR("web").ready(no, api.ReasonUpgradeFailed), outcomeFailed, "UpgradeFailed"},
		{"resume: paused again", judgeResume, makeCR("web").annotated(api.AnnotationPause, "including-deletion").ready(yes, api.ReasonDeployed), outcomeFailed, "paused the custom resource again"},
		{"resume: deleted", judgeResume, makeCR("web").deleting().ready(yes, api.ReasonDeployed), outcomeFailed, "being deleted"},
	} {
		cr := test.of.obj(t)
		got := test.judge("2@now", cr, statusOf(cr))
		if got.outcome != test.want || !strings.Contains(got.message, test.message) {
			t.Errorf("%s: %q, %q; want %q, %q", test.name, got.outcome, got.message, test.want, test.message)
		}
	}
}

func TestVerdict_ExitCodes(t *testing.T) {
	for state, want := range map[outcome]int{outcomeDone: 0, outcomeFailed: 1, outcomeUnknown: 2} {
		if got := exitCode(verdict{state, "why"}.err("podset/web")); got != want {
			t.Errorf("%s: exit code %d, want %d", state, got, want)
		}
	}
}

// watched is a client with one custom resource. Each watch delivers its next states and then
// nothing.
type watched struct {
	dynamic.ResourceInterface

	cr   *unstructured.Unstructured
	next []*unstructured.Unstructured
}

func (w *watched) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	return w.cr, nil
}

func (w *watched) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	changes := watch.NewRaceFreeFake()
	for _, cr := range w.next {
		w.cr = cr
		changes.Modify(cr)
	}
	w.next = nil
	context.AfterFunc(ctx, changes.Stop)
	return changes, nil
}

// TestAwait_UnseenRequest: if nothing changes after a request, the operator is probably down.
func TestAwait_UnseenRequest(t *testing.T) {
	working := makeCR("web").ready(isUnknown, api.ReasonRollingBack)
	working.status.State = api.ReasonRollingBack
	for name, test := range map[string]struct {
		next    []*unstructured.Unstructured
		timeout time.Duration
		// unseen reports whether a note and the outcome name the operator.
		unseen bool
	}{
		"no reaction":                           {nil, time.Minute, true},
		"no reaction, short timeout":            {nil, 6 * time.Second, true},
		"the operator works, but does not end":  {[]*unstructured.Unstructured{working.obj(t)}, time.Minute, false},
		"the operator works, and short timeout": {[]*unstructured.Unstructured{working.obj(t)}, 6 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				streams, _, _, errs := genericiooptions.NewTestIOStreams()
				cr := makeCR("web").ready(isTrue, api.ReasonDeployed).obj(t)
				target := target{mapping: podSets, namespace: "shop", name: "web", client: &watched{cr: cr, next: test.next}}
				v, _, err := (&session{IOStreams: streams}).await(t.Context(), target, statusOf(cr), request{value: "2@now", judge: judgeRollback}, test.timeout)
				if err != nil || v.outcome != outcomeUnknown {
					t.Fatalf("the outcome is %+v, error %v", v, err)
				}
				const text = "unchanged, no operator has reacted to the request: check that its pods run (kubectl get pods "
				if strings.Contains(v.message, text) != test.unseen || !strings.HasPrefix(v.message, "timed out after "+test.timeout.String()+"; last state: ") {
					t.Errorf("the outcome is %q", v.message)
				}
				if strings.Count(errs.String(), "\n") != 2 || strings.Contains(errs.String(), text) != test.unseen {
					t.Errorf("the notes are\n%s", errs)
				}
			})
		})
	}
}
