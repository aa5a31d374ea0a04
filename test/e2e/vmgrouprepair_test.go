package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The status shows what the newest run of the CronJob observed, until a Job makes
// the machines again.
func TestVmGroup_StatusOfRepairs(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	group := vmGroup("web").Obj()
	env.Create(group)
	env.WaitReady(group)
	const message = "2 running, of 2 CPU and 4 GiB each, from vm-operator-template"
	waitGroup(env, group, "RUNNING 2 2 "+message)
	before := lastChecked(env, "web")

	// No container runs here that could write the message of its pod.
	runRepair(env, "repaired", nil, message+"\nturned web-1 on\n")
	waitGroup(env, group, "RUNNING 2 2 "+message+"; turned web-1 on")
	if after := lastChecked(env, "web"); after <= before {
		t.Errorf("lastChecked was %q, and is %q", before, after)
	}
	runRepair(env, "failed", failingPods, "1 of 2 running\ngovc: vm 'vm-operator-template' not found\n")
	waitGroup(env, group, "ERROR 1 2 1 of 2 running; govc: vm 'vm-operator-template' not found")
	runRepair(env, "again", nil, message+"\n")
	waitGroup(env, group, "RUNNING 2 2 "+message)
	runRepair(env, "lost", failingPods, "govc: dial tcp: i/o timeout\n")
	waitGroup(env, group, "ERROR 2 2 govc: dial tcp: i/o timeout")

	// An edit starts a Job, whose result replaces that of the CronJob.
	waitNextSecond(env)
	env.SetSpec(vmGroup("web").Set("replicas", 3).Obj())
	waitGroup(env, group, "RUNNING 3 3 3 running, of 2 CPU and 4 GiB each, from vm-operator-template")
	env.Delete(group)
	env.WaitGone(group, harness.ConfigMap("web-location"), harness.ConfigMap("web-state"), harness.ConfigMap("web-deletion"))
}

// runRepair starts the CronJob's Job, and sets the termination message of its pod.
func runRepair(env *harness.Env, name string, annotations map[string]any, message string) {
	env.T().Helper()
	waitNextSecond(env)
	jobs := env.Typed.BatchV1().Jobs(env.Namespace)
	cron, err := env.Typed.BatchV1().CronJobs(env.Namespace).Get(env.T().Context(), "web-repair", metav1.GetOptions{})
	if err != nil {
		env.T().Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: cron.Spec.JobTemplate.Spec}
	for key, value := range annotations {
		metav1.SetMetaDataAnnotation(&job.Spec.Template.ObjectMeta, key, fmt.Sprint(value))
	}
	if _, err := jobs.Create(env.T().Context(), job, metav1.CreateOptions{}); err != nil {
		env.T().Fatal(err)
	}
	env.Wait("the pod of Job "+name, func(ctx context.Context) error {
		pods, err := env.Typed.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + name})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 || pods.Items[0].Status.ContainerStatuses[0].State.Terminated == nil {
			return fmt.Errorf("%d pods, or not finished", len(pods.Items))
		}
		patch := fmt.Sprintf(`[{"op": "add", "path": "/status/containerStatuses/0/state/terminated/message", "value": %q}]`, message)
		_, err = env.Typed.CoreV1().Pods(env.Namespace).Patch(ctx, pods.Items[0].Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err
	})
}

// waitNextSecond waits until new objects and containers have later times than all
// that the status depends on. The times have a precision of one second.
func waitNextSecond(env *harness.Env) {
	env.T().Helper()
	state, err := env.Typed.CoreV1().ConfigMaps(env.Namespace).Get(env.T().Context(), "web-state", metav1.GetOptions{})
	if err != nil {
		env.T().Fatal(err)
	}
	newest := state.CreationTimestamp.Time
	pods, err := env.Typed.CoreV1().Pods(env.Namespace).List(env.T().Context(), metav1.ListOptions{})
	if err != nil {
		env.T().Fatal(err)
	}
	for _, pod := range pods.Items {
		for _, container := range pod.Status.ContainerStatuses {
			if ended := container.State.Terminated; ended != nil && ended.FinishedAt.After(newest) {
				newest = ended.FinishedAt.Time
			}
		}
	}
	env.Wait("the second after "+newest.String(), func(context.Context) error {
		if now := time.Now().Truncate(time.Second); !now.After(newest) {
			return fmt.Errorf("it is %s", now)
		}
		return nil
	})
}

func lastChecked(env *harness.Env, name string) string {
	env.T().Helper()
	return env.Kubectl("get", "vg", name, "-o", "jsonpath={.status.lastChecked}")
}

// The location of the machines cannot change once the group's folder exists.
func TestVmGroup_RejectsAnotherLocation(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)

	// The first Job fails, so the location can be corrected.
	wrong := vmGroup("web").Set("jobs.retries", 0).Set("vcenter.folder", "wrong").Set("podAnnotations", failingPods).Obj()
	env.Create(wrong)
	env.WaitCondition(wrong, "Ready", metav1.ConditionFalse, "InstallFailed")
	right := vmGroup("web").Set("vcenter.folder", "right/").Obj()
	env.SetSpec(right)
	env.WaitReady(right)

	for field, value := range map[string]string{"vcenter.folder": "other", "vcenter.datacenter": "DC1", "credentials.secretName": "other"} {
		env.SetSpec(vmGroup("web").Set("vcenter.folder", "right").Set(field, value).Obj())
		status := env.WaitCondition(right, "Ready", metav1.ConditionFalse, "RenderFailed")
		if message := harness.Condition(status, "Ready").Message; !strings.Contains(message, field+": cannot change from ") || !strings.Contains(message, "ConfigMap web-location") {
			t.Errorf("the message is %q", message)
		}
		env.SetSpec(vmGroup("web").Set("vcenter.folder", "right").Obj())
		env.WaitReady(right)
	}
	// The place of new machines can change.
	env.SetSpec(vmGroup("web").Set("vcenter.folder", "right").Set("vcenter.datastore", "fast").Obj())
	env.WaitReady(right)

	// A check of everything does not create a revision.
	revision := env.Kubectl("get", "vg", "web", "-o", "jsonpath={.status.release.revision}")
	env.Annotate(right, "reconcile-requested-at", "now")
	env.WaitStatus(right, "the request to be processed", func(status api.Status) error {
		if status.Answered == nil || status.Answered.ReconcileRequestedAt != "now" {
			return fmt.Errorf("answered is %+v", status.Answered)
		}
		return nil
	})
	env.WaitReady(right)
	env.Consistently("at revision "+revision, 3*time.Second, func(context.Context) error {
		if now := env.Kubectl("get", "vg", "web", "-o", "jsonpath={.status.release.revision}"); now != revision {
			return fmt.Errorf("revision %s", now)
		}
		return nil
	})
}
