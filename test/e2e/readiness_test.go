package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// waitNotReady waits until Ready is False with a reason and a message that
// contains all texts.
func waitNotReady(env *harness.Env, cr *unstructured.Unstructured, reason string, wantText ...string) api.Status {
	env.T().Helper()
	return env.WaitStatus(cr, "not ready: "+strings.Join(wantText, ", "), func(status api.Status) error {
		ready := harness.Condition(status, "Ready")
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != reason {
			return fmt.Errorf("not False with reason %s", reason)
		}
		for _, text := range wantText {
			if !strings.Contains(ready.Message, text) {
				return fmt.Errorf("the message does not contain %q", text)
			}
		}
		return nil
	})
}

// TestReady_NamesUnreadyObject: the message names the object and the state of
// its pod, until the object is ready.
func TestReady_NamesUnreadyObject(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(workloadsKind)
	for _, test := range []struct {
		name     string
		cr       func(harness.CR) harness.CR
		reason   string
		wantText []string
		object   string
	}{
		{
			name: "an-image-that-cannot-be-pulled", cr: func(cr harness.CR) harness.CR { return cr.Set("outcome", "image-pull") },
			reason: "Progressing", wantText: []string{"0 of 1 objects are ready", "Deployment", "ImagePullBackOff"}, object: "Deployment",
		},
		{
			name: "an-account-that-is-missing", cr: func(cr harness.CR) harness.CR { return cr.Set("account", "nobody") },
			reason: "Progressing", wantText: []string{"Deployment", `serviceaccount "nobody" not found`}, object: "Deployment",
		},
		{
			name: "a-job-that-fails", cr: func(cr harness.CR) harness.CR {
				return cr.Set("job.enabled", true).Set("job.outcome", "failure")
			},
			reason: "ObjectFailed", wantText: []string{"1 of 2 objects are ready", "Job", "BackoffLimitExceeded"}, object: "Job",
		},
		{
			name: "a-claim-that-is-not-bound", cr: func(cr harness.CR) harness.CR { return cr.Set("claim", true) },
			reason: "Progressing", wantText: []string{"1 of 2 objects are ready", "PersistentVolumeClaim", "there-is-no-such-class"}, object: "PersistentVolumeClaim",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			env := env.For(t)
			// Without this, the reference to the service account would remain,
			// as with kubectl.
			good := harness.MakeCR(kind, test.name).Set("account", "default").Obj()
			bad := test.cr(harness.MakeCR(kind, test.name)).Obj()
			env.Create(bad)
			status := waitNotReady(env, bad, test.reason, test.wantText...)
			if status.Resources == nil || len(status.Resources.NotReady) != 1 || status.Resources.NotReady[0].Kind != test.object {
				t.Errorf("resources are %+v", status.Resources)
			}
			if deployed := harness.Condition(status, "Deployed"); deployed == nil || deployed.Status != metav1.ConditionTrue {
				t.Errorf("Deployed is %+v", deployed)
			}
			if stalled := harness.Condition(status, "Stalled") != nil; stalled != (test.reason == "ObjectFailed") {
				t.Errorf("unexpected condition Stalled: %v", stalled)
			}
			env.SetSpec(good)
			if test.object == "PersistentVolumeClaim" {
				approve(env, good, "delete PersistentVolumeClaim")
			}
			status = env.WaitReady(good)
			if status.Resources == nil || status.Resources.Ready != 1 || len(status.Resources.NotReady) != 0 {
				t.Errorf("afterwards resources are %+v", status.Resources)
			}
			env.WaitEvent(good, "Ready")
		})
	}
}

// TestProgressDeadline: an event and the condition Stalled report that the
// release was not ready in time.
func TestProgressDeadline(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(workloadsWithin3s)
	cr := harness.MakeCR(kind, "late").Set("outcome", "image-pull").Obj()
	env.Create(cr)
	status := waitNotReady(env, cr, "ProgressDeadlineExceeded", "ImagePullBackOff")
	if harness.Condition(status, "Stalled") == nil {
		t.Error("condition Stalled is missing")
	}
	env.WaitEvent(cr, "ProgressDeadlineExceeded")
}

// TestRollback_OfReleaseThatIsNeverReady: with onFailure: Rollback, the
// operator rolls back to the last revision that was ready.
func TestRollback_OfReleaseThatIsNeverReady(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(workloadsRolledBack)
	cr := harness.MakeCR(kind, "web").Obj()
	env.Create(cr)
	env.WaitReady(cr)
	env.SetSpec(harness.MakeCR(kind, "web").Set("outcome", "image-pull").Obj())
	status := env.WaitCondition(cr, "Held", metav1.ConditionTrue, "RolledBackAfterFailure")
	if status.Rollback == nil || status.Rollback.To != 1 || status.Rollback.From != 2 {
		t.Errorf("the rollback is %+v", status.Rollback)
	}
	env.WaitReady(cr)
}

func TestRollback_PreviousSkipsRevisionsNeverReady(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(workloadsKind)
	cr := harness.MakeCR(kind, "web").Obj()
	env.Create(cr)
	env.WaitReady(cr)
	env.SetSpec(harness.MakeCR(kind, "web").Set("outcome", "image-pull").Obj())
	waitNotReady(env, cr, "Progressing")
	env.SetSpec(harness.MakeCR(kind, "web").Set("replicas", 2).Obj())
	env.WaitRevision(cr, 3)
	env.Kubectl("annotate", kind.Resource(), "web", api.AnnotationRollbackTo+"=previous")
	status := env.WaitCondition(cr, "Held", metav1.ConditionTrue, "RolledBack")
	if status.Rollback == nil || status.Rollback.To != 1 {
		t.Errorf("the rollback is %+v", status.Rollback)
	}
}

// An object that a user paused or scaled to zero is ready.
func TestReady_PausedAndScaledToZero(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(workloadsKind)
	crs := []*unstructured.Unstructured{
		harness.MakeCR(kind, "nothing").Set("replicas", 0).Obj(),
		harness.MakeCR(kind, "paused").Set("paused", true).Set("outcome", "image-pull").Obj(),
		harness.MakeCR(kind, "job").Set("job.enabled", true).Obj(),
	}
	env.Create(crs...)
	env.WaitReady(crs...)
	// kubectl, Argo CD and Flux read the same condition.
	for _, cr := range crs {
		env.Kubectl("wait", "--for=condition=Ready", kind.Resource()+"/"+cr.GetName(), harness.Timeout)
	}
}
