package diagnose

import (
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// hookJob returns the Job of a hook.
func hookJob() *batchv1.Job {
	return &batchv1.Job{ObjectMeta: meta("migrate", ""), Spec: batchv1.JobSpec{Selector: selector}}
}

// hookPod returns a pod of hookJob whose container did not start yet.
func hookPod(name string, with ...func(*corev1.Pod)) *corev1.Pod {
	return makePod(name, "migrate", append([]func(*corev1.Pod){phase(corev1.PodPending)}, with...)...)
}

func runs(name string) func(*corev1.Pod) {
	return status(corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
}

func runsInit(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses,
			corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	}
}

// unplaced returns a change that makes a pod unschedulable since the given minute.
func unplaced(since int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName = ""
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available", LastTransitionTime: minute(since),
		})
	}
}

func placed(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: minute(0)})
}

// A hook is stuck or crashing only if no container runs or is starting.
func TestCheckHook_State(t *testing.T) {
	pulls := waits("ImagePullBackOff", `Back-off pulling image "postgres:18.99"`)
	for _, test := range []struct {
		name    string
		objects []runtime.Object
		// at is the time of the check, in minutes after the start.
		at    int
		state api.HookState
		cause string
	}{
		{"no Job yet", nil, 0, api.HookStarting, ""},
		{"no pod yet", []runtime.Object{hookJob()}, 0, api.HookStarting, ""},
		{"pods rejected, for a short time", []runtime.Object{hookJob(), warning("migrate", "FailedCreate", "exceeded quota", 0)}, 0, api.HookStarting, "Job default/migrate: FailedCreate: exceeded quota"},
		{"pods rejected", []runtime.Object{hookJob(), warning("migrate", "FailedCreate", "exceeded quota", 0)}, 1, api.HookStuck, "Job default/migrate: FailedCreate: exceeded quota"},
		{"other warning about the Job", []runtime.Object{hookJob(), warning("migrate", "Odd", "hm", 0)}, 1, api.HookStarting, "Job default/migrate: Odd: hm"},
		{"container being created", []runtime.Object{hookJob(), hookPod("a", waits("ContainerCreating", ""))}, 1, api.HookStarting, "Pod default/a: Pending: waiting for node node-1 to start the pod"},
		{"image pull back-off", []runtime.Object{hookJob(), hookPod("a", pulls)}, 0, api.HookStuck, `Pod default/a: ImagePullBackOff: Back-off pulling image "postgres:18.99"`},
		{"first image pull failed", []runtime.Object{hookJob(), hookPod("a", waits("ErrImagePull", "not found"))}, 0, api.HookStuck, "Pod default/a: ErrImagePull: not found"},
		{"Secret missing", []runtime.Object{hookJob(), hookPod("a", waits("CreateContainerConfigError", `secret "db" not found`))}, 0, api.HookStuck, `Pod default/a: CreateContainerConfigError: secret "db" not found`},
		{"unschedulable, for a short time", []runtime.Object{hookJob(), hookPod("a", unplaced(1))}, 1, api.HookStarting, "Pod default/a: Unschedulable: 0/2 nodes are available"},
		{"unschedulable", []runtime.Object{hookJob(), hookPod("a", unplaced(0))}, 1, api.HookStuck, "Pod default/a: Unschedulable: 0/2 nodes are available"},
		{"mounted Secret missing", []runtime.Object{hookJob(), hookPod("a", placed, waits("ContainerCreating", "")), warning("a", "FailedMount", `secret "tls" not found`, 0)}, 1, api.HookStuck,
			`Pod default/a: Pending: waiting for node node-1 to start the pod; last warning: FailedMount: secret "tls" not found`},
		{"volume mounted late, and image being pulled", []runtime.Object{hookJob(), hookPod("a", placed, waits("ContainerCreating", "")), warning("a", "FailedMount", "m", 0), warning("a", "Odd", "the disk is slow", 1)}, 1, api.HookStarting,
			"Pod default/a: Pending: waiting for node node-1 to start the pod; last warning: Odd: the disk is slow"},
		{"container crashes and is restarted", []runtime.Object{hookJob(), hookPod("a", func(p *corev1.Pod) {
			crashLoop(p)
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 3}
		}), warning("a", "BackOff", "Back-off restarting failed container web in pod a", 0)}, 0, api.HookCrashing, "Pod default/a: CrashLoopBackOff: last terminated with Error, exit code 3"},
		{"waiting for the next attempt", []runtime.Object{hookJob(), hookPod("a", phase(corev1.PodFailed), ended("Error", 3))}, 0, api.HookCrashing, "Pod default/a: Error: exit code 3"},
		{"newest of several attempts", []runtime.Object{hookJob(), hookPod("a", phase(corev1.PodFailed), ended("Error", 3)), hookPod("b", at(1), phase(corev1.PodFailed), ended("OOMKilled", 137))}, 0, api.HookCrashing, "Pod default/b: OOMKilled: exit code 137"},
		{"next attempt starting", []runtime.Object{hookJob(), hookPod("a", phase(corev1.PodFailed), ended("Error", 3)), hookPod("b", at(1), waits("ContainerCreating", ""))}, 1, api.HookStarting, "Pod default/b: Pending: waiting for node node-1 to start the pod"},
		{"next attempt cannot start", []runtime.Object{hookJob(), hookPod("a", phase(corev1.PodFailed), ended("Error", 3)), hookPod("b", at(1), pulls)}, 0, api.HookStuck, `Pod default/b: ImagePullBackOff: Back-off pulling image "postgres:18.99"`},

		{"running", []runtime.Object{hookJob(), hookPod("a", phase(corev1.PodRunning), runs("web"))}, 9, api.HookRunning, ""},
		{"init container running", []runtime.Object{hookJob(), hookPod("a", runsInit("wait"), waits("PodInitializing", ""))}, 9, api.HookRunning, ""},
		{"one container running, one cannot start", []runtime.Object{hookJob(), hookPod("a", runs("proxy"), pulls)}, 9, api.HookRunning, ""},
		{"one of two pods running", []runtime.Object{hookJob(), hookPod("a", pulls), hookPod("b", phase(corev1.PodRunning), runs("web"))}, 9, api.HookRunning, ""},
		{"running in a pod that is being deleted", []runtime.Object{hookJob(), hookPod("a", deleted, runs("web"))}, 9, api.HookRunning, ""},
		{"one of two pods starting", []runtime.Object{hookJob(), hookPod("a", pulls), hookPod("b", waits("ContainerCreating", ""))}, 9, api.HookStarting, `Pod default/a: ImagePullBackOff: Back-off pulling image "postgres:18.99"`},
		{"pod being deleted", []runtime.Object{hookJob(), hookPod("a", deleted, pulls)}, 9, api.HookStarting, ""},
		{"pod of another Job", []runtime.Object{hookJob(), makePod("a", "another", pulls)}, 9, api.HookStarting, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			hook, err := CheckHook(t.Context(), cluster(test.objects...), key(kindJob, "migrate"), "migrate", minute(test.at).Time)
			if err != nil {
				t.Fatal(err)
			}
			cause := ""
			if hook.Cause.Known() {
				cause = hook.Cause.String()
			}
			if hook.State != test.state || cause != test.cause {
				t.Errorf("got  %s: %s\nwant %s: %s", hook.State, cause, test.state, test.cause)
			}
		})
	}
}

func TestCheckHook_Pod(t *testing.T) {
	client := cluster(makePod("test", "", phase(corev1.PodPending), waits("InvalidImageName", "no")))
	hook, err := CheckHook(t.Context(), client, key(kindPod, "test"), "test", start)
	if err != nil || hook.State != api.HookStuck || hook.Cause.String() != "Pod default/test: InvalidImageName: no" || hook.Why() != "InvalidImageName: no" {
		t.Errorf("got %+v, %v", hook, err)
	}
	if hook, err = CheckHook(t.Context(), cluster(), key(kindPod, "test"), "test", start); err != nil || hook.State != api.HookStarting {
		t.Errorf("Pod does not exist: got %+v, %v", hook, err)
	}
}

func TestCheckHook_IgnoresObjectWithOtherUID(t *testing.T) {
	client := cluster(hookJob(), hookPod("a", waits("ImagePullBackOff", "m")), makePod("test", "", phase(corev1.PodPending), waits("InvalidImageName", "no")))
	for _, hook := range []apply.Key{key(kindJob, "migrate"), key(kindPod, "test")} {
		if got, err := CheckHook(t.Context(), client, hook, "earlier", start); err != nil || got.State != api.HookStarting || got.Cause.Known() {
			t.Errorf("%s: got %+v, %v", hook, got, err)
		}
	}
}

// A hook that cannot be read counts as running, so that it is not interrupted.
func TestCheckHook_ReadFails(t *testing.T) {
	for _, test := range []struct{ verb, resource string }{{"get", "jobs"}, {"list", "pods"}} {
		client := cluster(hookJob(), hookPod("a", waits("ImagePullBackOff", "m")))
		forbid(client, test.verb, test.resource)
		hook, err := CheckHook(t.Context(), client, key(kindJob, "migrate"), "migrate", start)
		if err != nil || hook.State != api.HookRunning || !strings.Contains(hook.Cause.Message, "missing permission: "+test.verb+" "+test.resource) {
			t.Errorf("%s %s is forbidden: got %+v, %v", test.verb, test.resource, hook, err)
		}
		client = cluster(hookJob(), hookPod("a", waits("ImagePullBackOff", "m")))
		fail(client, test.verb, test.resource, errors.New("away"))
		if hook, err := CheckHook(t.Context(), client, key(kindJob, "migrate"), "migrate", start); err == nil || hook.State.Idle() {
			t.Errorf("%s %s fails: got %+v, %v", test.verb, test.resource, hook, err)
		}
	}
}

func TestCheckHook_RedactsValuesOfPod(t *testing.T) {
	pod := hookPod("a", waits("RunContainerError", `exec: "run --password=hunter2222": not found`), func(p *corev1.Pod) {
		p.Spec.Containers[0].Args = []string{"--password=hunter2222"}
	})
	hook, err := CheckHook(t.Context(), cluster(hookJob(), pod), key(kindJob, "migrate"), "migrate", start.Add(time.Minute))
	if err != nil || strings.Contains(hook.Cause.String(), "hunter") || hook.State != api.HookStuck {
		t.Errorf("got %+v, %v", hook, err)
	}
}
