package e2e

import (
	"context"
	"errors"
	"strings"
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
				env.WaitEvent(cr, "Installed")
			}

			how.end(operator)
			audit := env.Audit(operator.User())
			operator.Start()
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

func TestRestart_ProcessesMissedChanges(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	operator := env.NewOperator(harness.Options{}).Start()
	edited, deleted, created := harness.MakePodSet("edited").Obj(), harness.MakePodSet("deleted").Obj(), harness.MakePodSet("created").Obj()
	env.Create(edited, deleted)
	env.WaitReady(edited, deleted)

	operator.Stop()
	env.SetSpec(harness.MakePodSet("edited").Replicas(2).Obj())
	env.Delete(deleted)
	env.Create(created)
	operator.Start()

	env.WaitRevision(edited, 2)
	env.WaitGone(deleted)
	env.WaitRevision(created, 1)
	env.ExpectRevisions("edited", "1 superseded, 2 deployed")
	env.ExpectRevisions("deleted", "")
}

// An install is interrupted while its pre-install hook waits for a node.
func TestRestart_ContinuesInterruptedInstall(t *testing.T) {
	t.Parallel()
	for _, how := range []struct {
		name string
		end  func(*harness.Operator)
		// left are the release's revisions after the process has ended.
		left     string
		wantText string
	}{
		{"stopped", (*harness.Operator).Stop, "1 failed", "the operator is shutting down"},
		{"killed", (*harness.Operator).Kill, "1 pending-install", ""},
	} {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			env := harness.New(t)
			kind, operator := serve(env, "Hooks", "hooks")
			node := newNodeLabel(env)
			web := harness.MakeCR(kind, "web").Set("hooks.pre-install.node", node).Obj()
			env.Create(web)
			first := waitRunningHook(env, "web-pre-install")
			env.ExpectRevisions("web", "1 pending-install")
			env.WaitCondition(web, "Ready", metav1.ConditionUnknown, "Installing")

			how.end(operator)
			env.ExpectRevisions("web", how.left)
			if how.wantText != "" {
				if history := env.Helm("history", "web"); !strings.Contains(history, how.wantText) {
					t.Errorf("helm history does not contain %q:\n%s", how.wantText, history)
				}
			}

			operator.Start()
			waitRecreated(env, "web-pre-install", first)
			labelNode(env, node)
			env.WaitRevision(web, 1)
			env.WaitRevisions("web", "1 deployed")
			env.Get(harness.ConfigMap("web"))
		})
	}
}

func TestRestart_InterruptedInstallCanBeEditedAndDeleted(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serve(env, "Hooks", "hooks")
	node := newNodeLabel(env)
	edited := harness.MakeCR(kind, "edited").Set("hooks.pre-install.node", node).Obj()
	deleted := harness.MakeCR(kind, "deleted").Set("hooks.pre-install.node", node).Obj()
	env.Create(edited, deleted)
	waitRunningHook(env, "edited-pre-install")
	waitRunningHook(env, "deleted-pre-install")
	operator.Kill()
	env.SetSpec(harness.MakeCR(kind, "edited").Set("message", "no hook").Obj())
	env.Delete(deleted)
	operator.Start()

	env.WaitReady(edited)
	expectData(t, env, "edited", "message", "no hook")
	env.WaitGone(deleted)
	env.ExpectRevisions("deleted", "")
}

// An upgrade is interrupted while its post-upgrade hook waits for a node.
func TestRestart_ContinuesInterruptedUpgrade(t *testing.T) {
	t.Parallel()
	for _, how := range ends {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			env := harness.New(t)
			kind, operator := serve(env, "Hooks", "hooks")
			node := newNodeLabel(env)
			web := harness.MakeCR(kind, "web").Obj()
			env.Create(web)
			env.WaitReady(web)
			env.SetSpec(harness.MakeCR(kind, "web").Set("message", "two").Set("hooks.post-upgrade.node", node).Obj())
			waitRunningHook(env, "web-post-upgrade")

			how.end(operator)
			operator.Start()
			labelNode(env, node)
			env.WaitReady(web)
			expectData(t, env, "web", "message", "two")
			// The interrupted attempt has no revision of its own.
			env.WaitRevisions("web", "1 superseded, 2 deployed")
		})
	}
}

func TestRestart_ContinuesInterruptedUninstall(t *testing.T) {
	t.Parallel()
	for _, how := range ends {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			env := harness.New(t)
			kind, operator := serve(env, "Hooks", "hooks")
			node := newNodeLabel(env)
			web := harness.MakeCR(kind, "web").Set("hooks.pre-delete.node", node).Obj()
			env.Create(web)
			env.WaitReady(web)
			env.Delete(web)
			waitRunningHook(env, "web-pre-delete")
			// The objects still exist while the hook runs.
			env.Get(harness.ConfigMap("web"))

			how.end(operator)
			operator.Start()
			labelNode(env, node)
			env.WaitGone(web, harness.ConfigMap("web"))
			env.ExpectRevisions("web", "")
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
