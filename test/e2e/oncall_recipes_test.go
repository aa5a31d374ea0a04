package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// recipeTests are the tests of the recipes in docs/guides/troubleshooting.md by title.
var recipeTests = map[string]recipeTest{
	"Not Ready": {
		symptom: func(o *onCall) {
			o.podSet(2)
			o.env.Kubectl("patch", "podset", "web", "--type=merge", "-p", `{"spec":{"nodeSelector":{"disk":"ssd"}}}`)
			waitNotReady(o.env, o.cr, "Progressing", "node affinity/selector")
		},
		over: func(o *onCall) { o.env.WaitRevision(o.cr, 3) },
	},
	"Stuck in an action": {
		symptom: func(o *onCall) {
			o.sell("one")
			o.edit("two", unpullable("pre-upgrade"))
			o.env.WaitCondition(o.cr, "Ready", metav1.ConditionUnknown, "Upgrading")
			waitReadyMessage(o.env, o.cr, "cannot start", noImage)
		},
		over: func(o *onCall) {
			o.env.WaitRevision(o.cr, 3)
			expectData(o.t, o.env, "web", "message", "two")
		},
	},
	"A failed upgrade": {
		symptom: func(o *onCall) {
			o.sell("one")
			o.edit("two", failing())
			o.env.WaitCondition(o.cr, "Ready", metav1.ConditionFalse, "UpgradeFailed")
		},
		over: func(o *onCall) {
			o.env.WaitRevision(o.cr, 4)
			expectData(o.t, o.env, "web", "message", "two")
			if held := harness.Condition(o.env.WaitReady(o.cr), "Held"); held != nil {
				o.t.Errorf("condition Held: %+v", held)
			}
		},
	},
	"A drift fight": {
		symptom: func(o *onCall) {
			o.podSet(3)
			o.end = o.contest("night-shift")
			o.env.WaitCondition(o.cr, "Drifted", metav1.ConditionTrue, "DriftFight")
		},
		after: map[string]func(*onCall){"scale deployment night-shift": func(o *onCall) { o.end() }},
		over: func(o *onCall) {
			o.env.WaitStatus(o.cr, "without drift", func(status api.Status) error {
				if drifted := harness.Condition(status, "Drifted"); drifted != nil {
					return fmt.Errorf("Drifted is %+v", drifted)
				}
				return nil
			})
			waitPods(o.env, "web", 3)
			o.env.Kubectl("delete", "deployment", "night-shift")
		},
	},
	"Locked": {
		symptom: func(o *onCall) {
			o.sell("one")
			o.leaveLocked("one", "two")
			o.env.WaitCondition(o.cr, "Ready", metav1.ConditionUnknown, "Locked")
		},
		over: func(o *onCall) {
			o.env.WaitRevision(o.cr, 1)
			expectData(o.t, o.env, "web", "message", "one")
		},
	},
	"A rollout has stopped": {
		symptom: func(o *onCall) {
			for name, message := range map[string]string{"berlin": "new", "lyon": "old", "oslo": "new", "rome": "new"} {
				cr := harness.MakeCR(o.shop, name).Set("message", message).Obj()
				o.env.Create(cr)
				o.env.WaitRevision(cr, 1)
			}
			o.serveShops(o.shared, copyChart(o.shared, harness.Chart("hooks"), map[string][2]string{
				"Chart.yaml":           {"version: 0.1.0", "version: 0.2.0"},
				"templates/hooks.yaml": {"{{- range", migration + "{{- range"},
			}))
			o.cr = harness.MakeCR(o.shop, "lyon").Obj()
			o.env.WaitCondition(o.cr, "Ready", metav1.ConditionFalse, "UpgradeFailed")
			o.env.WaitCondition(harness.MakeCR(o.shop, "rome").Obj(), "UpdateAvailable", metav1.ConditionTrue, "RolloutStopped")
		},
		over: func(o *onCall) {
			for _, name := range []string{"berlin", "lyon", "oslo", "rome"} {
				o.env.WaitStatus(harness.MakeCR(o.shop, name).Obj(), "with the new chart", func(status api.Status) error {
					if ready := harness.Condition(status, "Ready"); ready == nil || ready.Status != metav1.ConditionTrue || status.Release == nil || status.Release.ChartVersion != "0.2.0" || status.Update != nil {
						return fmt.Errorf("release %+v, update %+v", status.Release, status.Update)
					}
					return nil
				})
			}
		},
	},
	"Deletion hangs": {
		symptom: func(o *onCall) {
			o.sell("one")
			o.edit("two", map[string]any{"pre-delete": map[string]any{"fail": true}})
			o.env.WaitRevision(o.cr, 2)
			o.env.Delete(o.cr)
			o.env.WaitCondition(o.cr, "Ready", metav1.ConditionFalse, "UninstallFailed")
		},
		over: func(o *onCall) {
			o.env.WaitGone(o.cr, harness.ConfigMap("web"))
			o.env.ExpectRevisions("web", "")
		},
	},
	"The operator is down": {
		symptom: func(o *onCall) {
			o.podSet(2)
			o.podSets.Stop()
			o.deploy(0)
			o.env.Kubectl("patch", "podset", "web", "--type=merge", "-p", `{"spec":{"replicas":3}}`)
			o.env.Kubectl("delete", "deployment", "web", "--cascade=foreground")
		},
		// The operator runs as a local process here, so the test simulates the
		// pod.
		after: map[string]func(*onCall){"scale deployment": func(o *onCall) { o.podSets.Start() }},
		over: func(o *onCall) {
			o.env.WaitRevision(o.cr, 2)
			waitPods(o.env, "web", 3)
		},
	},
	"A refused request": {
		symptom: func(o *onCall) {
			o.podSet(1)
			o.env.Annotate(o.cr, "rollback-to", "99")
			o.env.WaitCondition(o.cr, "RollbackRefused", metav1.ConditionTrue, api.ReasonNoSuchRevision)
		},
		over: func(o *onCall) {
			o.env.WaitStatus(o.cr, "without a refusal", func(status api.Status) error {
				if refused := harness.Condition(status, "RollbackRefused"); refused != nil {
					return fmt.Errorf("RollbackRefused is %+v", refused)
				}
				return nil
			})
			o.env.WaitRevision(o.cr, 1)
		},
	},
	"A wrong rollback": {
		symptom: func(o *onCall) {
			o.podSet(1)
			for replicas := 2; replicas <= 4; replicas++ {
				o.env.SetSpec(harness.MakePodSet("web").Replicas(replicas).Obj())
				o.env.WaitRevision(o.cr, int64(replicas))
			}
			o.env.Annotate(o.cr, "rollback-to", "1")
			waitHeld(o.env, o.cr, 5, 1)
		},
		over: func(o *onCall) {
			if held := harness.Condition(o.env.WaitReady(o.cr), "Held"); held != nil {
				o.t.Errorf("condition Held: %+v", held)
			}
			waitPods(o.env, "web", 4)
		},
	},
}

// migration is a hook that a newer version of the chart runs for an old
// message.
const migration = `{{- if eq .Values.message "old" }}{{ $_ := set .Values "hooks" (dict "pre-upgrade" (dict "fail" true)) }}{{ end }}
`

// podSet creates a PodSet and waits until it is Ready.
func (o *onCall) podSet(replicas int64) {
	o.t.Helper()
	o.cr = harness.MakePodSet("web").Replicas(int(replicas)).Obj()
	o.env.Create(o.cr)
	o.env.WaitRevision(o.cr, 1)
	waitPods(o.env, "web", replicas)
}

// sell creates a Shop and waits until it is Ready.
func (o *onCall) sell(message string) {
	o.t.Helper()
	o.cr = harness.MakeCR(o.shop, "web").Set("message", message).Obj()
	o.env.Create(o.cr)
	o.env.WaitRevision(o.cr, 1)
}

// edit changes the Shop's message and hooks.
func (o *onCall) edit(message string, hooks map[string]any) {
	o.t.Helper()
	o.env.SetSpec(harness.MakeCR(o.shop, "web").Set("message", message).Set("hooks", hooks).Obj())
}

// leaveLocked starts an upgrade by the helm CLI, which is killed while a hook
// runs.
func (o *onCall) leaveLocked(before, after string) {
	o.t.Helper()
	cmd := o.command("exec helm upgrade web "+harness.Chart("hooks")+" --set message="+after+" --set hooks.pre-upgrade.node=disk-ssd", o.kubeconfig)
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.env.WaitRevisions("web", "1 deployed, 2 pending-upgrade")
	waitPendingHook(o.env, "web-pre-upgrade")
	if err := cmd.Process.Kill(); err != nil {
		o.t.Fatal(err)
	}
	_ = cmd.Wait()
	expectData(o.t, o.env, "web", "message", before)
}

// contest changes the replicas of the Deployment each time they are corrected,
// with another field manager, until end is called.
func (o *onCall) contest(manager string) (end func()) {
	o.t.Helper()
	o.env.Kubectl("create", "deployment", manager, "--image=docker.io/library/busybox:1.37", "--replicas=1")
	ctx, cancel := context.WithCancel(o.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			// Recreate it if it was deleted.
			_, _ = o.env.Typed.AppsV1().Deployments(o.env.Namespace).Patch(ctx, "web", types.MergePatchType,
				[]byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{FieldManager: manager})
		}, 50*time.Millisecond)
	}()
	end = func() {
		cancel()
		<-done
	}
	o.t.Cleanup(end)
	return end
}

// deploy creates the operator's Deployment of config/default.
func (o *onCall) deploy(replicas int32) {
	o.t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(o.env.Kubectl("kustomize", harness.Root("config", "default"))), 4096)
	for {
		var deployment appsv1.Deployment
		if err := decoder.Decode(&deployment); err != nil {
			o.t.Fatalf("config/default has no Deployment: %v", err)
		}
		if deployment.Kind != "Deployment" {
			continue
		}
		deployment.Spec.Replicas = &replicas
		deployments := o.env.Typed.AppsV1().Deployments(deployment.Namespace)
		if _, err := deployments.Create(o.t.Context(), &deployment, metav1.CreateOptions{}); err != nil {
			o.t.Fatal(err)
		}
		ctx := context.WithoutCancel(o.t.Context())
		o.t.Cleanup(func() {
			if err := deployments.Delete(ctx, deployment.Name, metav1.DeleteOptions{}); err != nil {
				o.t.Errorf("delete the operator's Deployment: %v", err)
			}
		})
		return
	}
}

// waitPendingHook waits until the scheduler has reported that it finds no node
// for a hook's pod.
func waitPendingHook(env *harness.Env, job string) {
	env.T().Helper()
	env.Wait("pod of "+job+" to be pending", func(ctx context.Context) error {
		pods, err := env.Typed.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "job-name=" + job})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if len(pods.Items[i].Status.Conditions) > 0 {
				return nil
			}
		}
		return errors.New("no such pod")
	})
}
