package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

func ttlJob(name string) *unstructured.Unstructured {
	return harness.Object("batch/v1", "Job", name+"-migrate")
}

// staysReady checks for some time that a resource is Ready and that its Job has
// run the given number of times.
func staysReady(env *harness.Env, cr *unstructured.Unstructured, runs func() int, want int) {
	env.T().Helper()
	env.Consistently(fmt.Sprintf("%s is Ready after %d runs", cr.GetName(), want), 3*time.Second, func(context.Context) error {
		if ready := harness.Condition(env.Status(cr), "Ready"); ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("the condition Ready is %+v", ready)
		}
		if n := runs(); n != want {
			return fmt.Errorf("the Job has run %d times", n)
		}
		return nil
	})
}

// requestVerification requests that all objects are verified, and waits until they are.
func requestVerification(env *harness.Env, cr *unstructured.Unstructured) {
	env.T().Helper()
	env.Annotate(cr, "reconcile-requested-at", "now")
	env.WaitStatus(cr, "the request to be processed", func(status api.Status) error {
		if status.Answered == nil || status.Answered.ReconcileRequestedAt != "now" {
			return fmt.Errorf("answered is %+v", status.Answered)
		}
		return nil
	})
}

func TestTTLJob_RunsOncePerRevision(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(onceKind)
	web := harness.MakeCR(kind, "web").Obj()
	runs := watchTries(env, "web-migrate")
	env.Create(web)
	env.WaitRevision(web, 1)
	env.WaitGone(ttlJob("web"))
	env.WaitReady(web)
	staysReady(env, web, runs, 1)

	env.SetSpec(harness.MakeCR(kind, "web").Set("message", "two").Obj())
	env.WaitRevision(web, 2)
	waitTries(env, runs, 2)
	env.WaitGone(ttlJob("web"))
	env.WaitReady(web)
	staysReady(env, web, runs, 2)

	requestVerification(env, web)
	staysReady(env, web, runs, 2)
	if n := env.CountEvents(web, "DriftCorrected"); n > 0 {
		t.Errorf("%d events DriftCorrected", n)
	}
}
