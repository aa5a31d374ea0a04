package e2e

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The two ways to end a process.
var ends = []struct {
	name string
	end  func(*harness.Operator)
}{
	{"stopped", (*harness.Operator).Stop},
	{"killed", (*harness.Operator).Kill},
}

func TestRestart_WritesNothing(t *testing.T) {
	t.Parallel()
	for _, how := range ends {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			env := harness.New(t)
			operator := env.NewOperator(harness.Options{Account: env.NewAccount()}).Start()
			crs := []*unstructured.Unstructured{
				harness.MakePodSet("web").Replicas(2).Obj(),
				harness.MakePodSet("api").Obj(),
				harness.MakeOvhNginx("web").Obj(),
			}
			for _, cr := range crs {
				env.Create(cr)
				env.WaitReady(cr)
			}

			// The next process has an account of its own: the API server may complete
			// requests of a killed process after its end.
			next := env.NewOperator(harness.Options{Account: env.NewAccount()})
			how.end(operator)
			audit := env.Audit(next.User())
			next.Start()
			fence(env)
			if writes := audit.Writes("fence"); len(writes) > 0 {
				t.Errorf("the operator wrote %v", writes)
			}
			for _, release := range []string{"web", "api", "web-ovhnginx"} {
				env.ExpectRevisions(release, "1 deployed")
			}
		})
	}
}

// newNodeLabel returns a label that no node has before labelNode.
func newNodeLabel(env *harness.Env) string { return env.Namespace + ".test/shelf" }

// labelNode adds a label to a node, so that the pods that request it can run.
func labelNode(env *harness.Env, label string) {
	env.T().Helper()
	nodes, err := env.Typed.CoreV1().Nodes().List(env.T().Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		env.T().Fatalf("no nodes: %v", err)
	}
	env.Kubectl("label", "node", nodes.Items[0].Name, label+"=")
}

// waitRunningHook waits until a hook's Job has a pod that waits for a node, and
// returns the Job's UID.
func waitRunningHook(env *harness.Env, job string) (uid any) {
	env.T().Helper()
	env.Wait("hook "+job+" to wait for a node", func(ctx context.Context) error {
		pods, err := env.Typed.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodPending {
			return errors.New("no pending pod")
		}
		live, err := env.Typed.BatchV1().Jobs(env.Namespace).Get(ctx, job, metav1.GetOptions{})
		if err == nil {
			uid = live.UID
		}
		return err
	})
	return uid
}
