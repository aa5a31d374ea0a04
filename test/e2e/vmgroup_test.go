package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The custom resource of the tutorial on VmGroups. No image runs here:
// test/charts/vmgroup tests what the Jobs do in vSphere.
func TestVmGroup_Tutorial(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	before := waitNamespace(env)
	env.Kubectl("create", "secret", "generic", "vc-credentials",
		"--from-literal=VC_USER=administrator@vsphere.local", "--from-literal=VC_PASS=Admin!23", "--from-literal=VC_HOST=10.78.126.237")
	env.KubectlWith(`
apiVersion: vm.codeconnect.vmworld.com/v1alpha1
kind: VmGroup
metadata: {name: vmgroup-sample}
spec: {cpu: 2, memory: 4, template: vm-operator-template, replicas: 2}
`, "apply", "-f", "-")
	group := harness.MakeCR(harness.VMGroup, "vmgroup-sample").Obj()
	env.WaitRevision(group, 1)
	waitGroup(env, group, "RUNNING 2 2 2 running, of 2 CPU and 4 GiB each, from vm-operator-template")
	expectTable(t, env, "vg", `
NAME             PHASE     CURRENT   DESIRED   CPU   MEMORY   TEMPLATE               LAST_MESSAGE
vmgroup-sample   RUNNING   2         2         2     4        vm-operator-template   2 running, of 2 CPU and 4 GiB each, from vm-operator-template
`)
	if described := env.Kubectl("describe", "vg", "vmgroup-sample"); !strings.Contains(described, "RUNNING") {
		t.Errorf("kubectl describe prints\n%s", described)
	}

	// A size that is not available is refused immediately.
	for _, wrong := range []string{`{"cpu":5}`, `{"cpu":0}`, `{"memory":9}`, `{"memory":0}`, `{"replicas":0}`, `{"template":""}`, `{"template":null}`} {
		if output, err := env.TryKubectl("patch", "vg", "vmgroup-sample", "--type=merge", "-p", `{"spec":`+wrong+`}`); err == nil {
			t.Errorf("%s is not refused: %s", wrong, output)
		}
	}

	env.Kubectl("scale", "vg", "vmgroup-sample", "--replicas=3")
	env.WaitRevision(group, 2)
	waitGroup(env, group, "RUNNING 3 3 3 running, of 2 CPU and 4 GiB each, from vm-operator-template")
	if scale := env.Kubectl("get", "vg", "vmgroup-sample", "--subresource=scale", "-o", "jsonpath={.spec.replicas} {.status.replicas}"); scale != "3 3" {
		t.Errorf("the scale is %s", scale)
	}
	env.Kubectl("patch", "vg", "vmgroup-sample", "--type=merge", "-p", `{"spec":{"template":"vm-operator-template-2","cpu":1}}`)
	env.WaitRevision(group, 3)
	waitGroup(env, group, "RUNNING 3 3 3 running, of 1 CPU and 4 GiB each, from vm-operator-template-2")

	// The machines are destroyed before the group is deleted.
	destroyed := watchJobs(env)
	env.Kubectl("delete", "vg", "vmgroup-sample", harness.Timeout)
	if words := destroyed(); !slices.Equal(words, []string{"destroy"}) {
		t.Errorf("Jobs of the deletion were %v", words)
	}
	env.Kubectl("delete", "secret", "vc-credentials")
	waitNothingLeft(env, before)
}

// The failure of a Job is reported, and the running machines are still listed.
func TestVmGroup_ReportsFailures(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	group := vmGroup("web").Set("jobs.retries", 0)
	env.Create(group.Obj())
	env.WaitRevision(group.Obj(), 1)

	env.SetSpec(vmGroup("web").Set("jobs.retries", 0).Set("replicas", 4).Set("podAnnotations", failingPods).Obj())
	env.WaitCondition(group.Obj(), "Ready", metav1.ConditionFalse, "UpgradeFailed")
	env.Wait("the group to report the reason", func(ctx context.Context) error {
		// No container runs here that could print it.
		if err := say(ctx, env, "vms: turned web-0 on\ngovc: vm 'vm-operator-template' not found\n"); err != nil {
			return err
		}
		live := env.Get(group.Obj())
		if got, want := fmt.Sprint(field(live, "lastMessage")), "vms: turned web-0 on; govc: vm 'vm-operator-template' not found"; got != want {
			return fmt.Errorf("lastMessage is %q", got)
		}
		return nil
	})
	live := env.Get(group.Obj())
	if field(live, "currentReplicas") != int64(2) || field(live, "desiredReplicas") != int64(4) {
		t.Errorf("the status is %v", live.Object["status"])
	}
	env.Wait("the group to be in phase ERROR", func(context.Context) error {
		if phase := field(env.Get(group.Obj()), "phase"); phase != "ERROR" {
			return fmt.Errorf("its phase is %v", phase)
		}
		return nil
	})

	env.SetSpec(vmGroup("web").Set("replicas", 4).Obj())
	env.WaitReady(group.Obj())
	waitGroup(env, group.Obj(), "RUNNING 4 4 4 running, of 2 CPU and 4 GiB each, from vm-operator-template")
}

// A failing cleanup blocks the deletion of the group, and is retried until it
// succeeds.
func TestVmGroup_DeletionWaitsForMachines(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	before := waitNamespace(env)
	node := newNodeLabel(env)
	group := vmGroup("web").Obj()
	hangs := vmGroup("web").Set("jobs.retries", 0).Set("jobs.deadlineSeconds", 5).Set("nodeSelector", map[string]any{node: ""}).Obj()
	withoutHooks(env, group, hangs)

	env.Delete(group)
	status := env.WaitCondition(group, "Ready", metav1.ConditionFalse, "UninstallFailed")
	printed := harness.Condition(status, "Ready").Message
	for _, part := range []string{"web-vms", "DeadlineExceeded", "uninstall-disable-hooks"} {
		if !strings.Contains(printed, part) {
			t.Errorf("the condition's message is %q, without %s", printed, part)
		}
	}
	// The objects that identify the machines still exist, too.
	env.Get(harness.ConfigMap("web"))
	env.ExpectRevisions("web", "1 superseded, 2 uninstalling")
	labelNode(env, node)
	env.WaitGone(group)
	waitNothingLeft(env, before)
}

// A user can skip the cleanup if there is nothing to destroy.
func TestVmGroup_CleanupCanBeSkipped(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	group := vmGroup("web").Obj()
	withoutHooks(env, group, vmGroup("web").Set("jobs.retries", 0).Set("podAnnotations", failingPods).Obj())
	env.Delete(group)
	env.WaitCondition(group, "Ready", metav1.ConditionFalse, "UninstallFailed")
	env.Kubectl("annotate", "vg", "web", "chartwright.dev/uninstall-disable-hooks=true")
	env.WaitGone(group, harness.ConfigMap("web"))
}

// If a group is deleted while its machines are being created, the deletion
// waits until that Job ends, and then destroys them.
func TestVmGroup_DeletedDuringInstall(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	before := waitNamespace(env)
	node := newNodeLabel(env)
	group := vmGroup("web").Set("jobs.deadlineSeconds", 5).Set("nodeSelector", map[string]any{node: ""}).Obj()
	env.Create(group)
	uid := waitRunningHook(env, "web-vms")
	waitGroup(env, group, "PENDING 0 2 making the machines")
	env.Delete(group)
	env.Wait("the Job to be replaced", func(ctx context.Context) error {
		job, err := env.Typed.BatchV1().Jobs(env.Namespace).Get(ctx, "web-vms", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if job.UID == uid || job.Labels["app.kubernetes.io/component"] != "destroy" {
			return errors.New("it is still the Job of the install")
		}
		return nil
	})
	labelNode(env, node)
	env.WaitGone(group)
	waitNothingLeft(env, before)
}

// The machines are those of the deployed revision, also after a rollback.
func TestVmGroup_RollbackRestoresMachines(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	group := vmGroup("web").Obj()
	env.Create(group)
	env.WaitRevision(group, 1)
	env.SetSpec(vmGroup("web").Set("replicas", 5).Obj())
	env.WaitRevision(group, 2)
	env.Kubectl("annotate", "vg", "web", "chartwright.dev/rollback-to=1")
	env.WaitRevision(group, 3)
	waitGroup(env, group, "RUNNING 2 5 2 running, of 2 CPU and 4 GiB each, from vm-operator-template")

	env.Annotate(group, "test", "now")
	env.WaitCondition(group, "Tested", metav1.ConditionTrue, "TestsPassed")
}

// vmGroup returns a builder for a VmGroup of two machines.
func vmGroup(name string) harness.CR {
	return harness.MakeCR(harness.VMGroup, name).Set("cpu", 2).Set("memory", 4).Set("template", "vm-operator-template").Set("replicas", 2)
}

// failingPods are annotations that make pods fail.
var failingPods = map[string]any{"test.chartwright.dev/outcome": "failure"}

// withoutHooks creates a group, and then changes its spec so that Jobs fail, by
// an upgrade without hooks.
func withoutHooks(env *harness.Env, group, fails *unstructured.Unstructured) {
	env.T().Helper()
	env.Create(group)
	env.WaitRevision(group, 1)
	env.Annotate(group, "upgrade-disable-hooks", "true")
	env.SetSpec(fails)
	env.WaitRevision(group, 2)
}

// waitGroup waits until phase, current and desired number, and the last message
// are as given.
func waitGroup(env *harness.Env, group *unstructured.Unstructured, want string) {
	env.T().Helper()
	env.Wait("the group to report "+want, func(context.Context) error {
		live := env.Get(group)
		got := fmt.Sprint(field(live, "phase"), " ", field(live, "currentReplicas"), " ", field(live, "desiredReplicas"), " ", field(live, "lastMessage"))
		if got != want {
			return fmt.Errorf("the status is %s", got)
		}
		return nil
	})
}

// expectTable compares the output of kubectl get word by word.
func expectTable(t *testing.T, env *harness.Env, resource, want string) {
	t.Helper()
	if got := env.Kubectl("get", resource); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("kubectl get %s prints\n%s\nwant\n%s", resource, got, want)
	}
}

// say sets the termination message of the failed pods.
func say(ctx context.Context, env *harness.Env, words string) error {
	pods, err := env.Typed.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=vmgroup"})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		statuses := pods.Items[i].Status.ContainerStatuses
		if pods.Items[i].Status.Phase != corev1.PodFailed || len(statuses) != 1 || statuses[0].State.Terminated == nil || statuses[0].State.Terminated.Message == words {
			continue
		}
		patch := fmt.Sprintf(`[{"op": "add", "path": "/status/containerStatuses/0/state/terminated/message", "value": %q}]`, words)
		_, err := env.Typed.CoreV1().Pods(env.Namespace).Patch(ctx, pods.Items[i].Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if err != nil {
			return err
		}
	}
	return nil
}

// watchJobs starts to watch Jobs. The returned function stops the watch and
// returns the purposes of the Jobs that were created meanwhile.
func watchJobs(env *harness.Env) func() []string {
	env.T().Helper()
	_, changes := env.Follow(env.At(harness.Object("batch/v1", "Job", "any")), metav1.ListOptions{})
	var words []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range changes.ResultChan() {
			if event.Type != "ADDED" {
				continue
			}
			// The CronJob may start at any time.
			if object, ok := event.Object.(metav1.Object); ok && object.GetLabels()["app.kubernetes.io/component"] != "repair" {
				words = append(words, object.GetLabels()["app.kubernetes.io/component"])
			}
		}
	}()
	return func() []string {
		changes.Stop()
		<-done
		return words
	}
}
