package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

func TestTTLJob_RunsOncePerRevision(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serve(env, "Once", "once")
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

	// The next process reads it from the record.
	env.Wait("the record to contain the finished Job", func(context.Context) error {
		for _, record := range env.Records("web") {
			if record.Labels["status"] == "deployed" && strings.Contains(record.Annotations["chartwright.dev/inventory"], env.Namespace+"/web-migrate") {
				return nil
			}
		}
		return errors.New("not yet")
	})
	operator.Kill()
	audit := env.Audit(operator.User())
	operator.Start()
	fenceOf(env, kind)
	staysReady(env, web, runs, 2)
	for _, request := range audit.Writes("") {
		if request.ObjectRef.Name == "web-migrate" || request.ObjectRef.Name == "web" {
			t.Errorf("after a restart the operator sent %s", request)
		}
	}
	env.Annotate(web, "reconcile-requested-at", "now")
	env.WaitStatus(web, "the request to be processed", func(status api.Status) error {
		if status.Answered == nil || status.Answered.ReconcileRequestedAt != "now" {
			return fmt.Errorf("answered is %+v", status.Answered)
		}
		return nil
	})
	staysReady(env, web, runs, 2)
	if n := env.CountEvents(web, "DriftCorrected"); n > 0 {
		t.Errorf("%d events DriftCorrected", n)
	}
}

// The operator did not observe that the Job finished, but its TTL may have
// deleted it.
func TestTTLJob_FinishedWhileOperatorWasStopped(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serve(env, "Once", "once")
	node := newNodeLabel(env)
	web := harness.MakeCR(kind, "web").Set("node", node).Obj()
	runs := watchTries(env, "web-migrate")
	env.Create(web)
	env.WaitRevision(web, 1)
	operator.Kill()
	labelNode(env, node)
	env.WaitGone(ttlJob("web"))
	operator.Start()
	fenceOf(env, kind)
	env.WaitReady(web)
	staysReady(env, web, runs, 1)
}

func TestTTLJob_DeletedBeforeFinishedIsRecreated(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serve(env, "Once", "once")
	web := harness.MakeCR(kind, "web").Set("node", newNodeLabel(env)).Set("ttl", 3600).Obj()
	runs := watchTries(env, "web-migrate")
	env.Create(web)
	env.WaitRevision(web, 1)
	env.Kubectl("delete", "job", "web-migrate")
	waitTries(env, runs, 2)
	// Also if the operator did not observe the deletion, because the TTL cannot
	// have elapsed.
	operator.Kill()
	env.Kubectl("delete", "job", "web-migrate")
	operator.Start()
	waitTries(env, runs, 3)
}

func TestTTLJob_FailureIsKeptAfterDeletion(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serve(env, "Once", "once")
	web := harness.MakeCR(kind, "web").Set("fail", true).Obj()
	runs := watchTries(env, "web-migrate")
	env.Create(web)
	env.WaitCondition(web, "Deployed", metav1.ConditionTrue, "InstallSuccessful")
	env.WaitGone(ttlJob("web"))
	env.WaitCondition(web, "Ready", metav1.ConditionFalse, "ObjectFailed")
	operator.Kill()
	operator.Start()
	fenceOf(env, kind)
	env.Consistently("the failure is reported and the Job does not run again", 3*time.Second, func(context.Context) error {
		if ready := harness.Condition(env.Status(web), "Ready"); ready.Reason != "ObjectFailed" || runs() != 1 {
			return fmt.Errorf("%+v, and %d runs", ready, runs())
		}
		return nil
	})
}
