package diagnose

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestState(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	second := func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy"})
	}
	initially := func(name string, state corev1.ContainerState, policy *corev1.ContainerRestartPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name, RestartPolicy: policy})
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: name, State: state})
		}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	crashed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "what the container wrote"}}
	pending := phase(corev1.PodPending)
	for _, test := range []struct {
		name            string
		with            []func(*corev1.Pod)
		reason, message string
	}{
		{"on its way out", []func(*corev1.Pod){deleted, crashLoop}, "Terminating", "being deleted"},
		{"gated", []func(*corev1.Pod){pending, condition(corev1.PodScheduled, corev1.ConditionFalse, "SchedulingGated", "Scheduling is blocked")}, "SchedulingGated", "Scheduling is blocked"},
		{"evicted", []func(*corev1.Pod){phase(corev1.PodFailed), ended("Error", 137), func(p *corev1.Pod) {
			p.Status.Reason, p.Status.Message = "Evicted", "the node was low on memory"
		}}, "Evicted", "the node was low on memory"},
		{"a key is missing", []func(*corev1.Pod){pending, waits("CreateContainerConfigError", `secret "db" not found`)}, "CreateContainerConfigError", `secret "db" not found`},
		{"the container that waits is named among several", []func(*corev1.Pod){second, crashLoop}, "CrashLoopBackOff", "container web: back-off 5m0s restarting failed container"},
		{"it crashes", []func(*corev1.Pod){status(corev1.ContainerStatus{
			Name:                 "web",
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}},
			LastTerminationState: crashed,
		})}, "CrashLoopBackOff", "back-off; last terminated with Error, exit code 3"},
		{"it runs again after a crash", []func(*corev1.Pod){
			condition(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [web]"),
			status(corev1.ContainerStatus{Name: "web", State: running, LastTerminationState: crashed}),
		}, "ContainersNotReady", "containers with unready status: [web]; last terminated with Error, exit code 3"},
		{"one runs again and is ready: not its fault", []func(*corev1.Pod){
			condition(corev1.PodReady, corev1.ConditionFalse, "ReadinessGatesNotReady", "gate"),
			status(corev1.ContainerStatus{Name: "web", Ready: true, State: running, LastTerminationState: crashed}),
		}, "ReadinessGatesNotReady", "gate"},
		{"it is over: without what it wrote", []func(*corev1.Pod){phase(corev1.PodFailed), ended("OOMKilled", 137)}, "OOMKilled", "exit code 137"},
		{"one that ended well is passed over", []func(*corev1.Pod){second, pending, ended("Completed", 0), func(p *corev1.Pod) {
			status(corev1.ContainerStatus{Name: "proxy", State: crashed})(p)
		}}, "Error", "container proxy: exit code 3"},
		{"an init container fails", []func(*corev1.Pod){pending, initially("migrate", crashed, nil), waits("PodInitializing", "")}, "Error", "container migrate: exit code 3"},
		{"an init container runs", []func(*corev1.Pod){pending, initially("migrate", running, nil), waits("PodInitializing", "")}, "Pending", "init container migrate has not finished yet"},
		{"a sidecar runs", []func(*corev1.Pod){pending, initially("proxy", running, &always), waits("PodInitializing", "")}, "Pending", "node node-1 has not started the pod yet"},
		{"the node is slow", []func(*corev1.Pod){pending, waits("ContainerCreating", "")}, "Pending", "node node-1 has not started the pod yet"},
		{"there is no scheduler", []func(*corev1.Pod){pending, func(p *corev1.Pod) { p.Spec.NodeName = "" }}, "Pending", "not scheduled to a node yet"},
		{"it says nothing", nil, "NotReady", "running but not ready"},
		{"it failed and says nothing", []func(*corev1.Pod){phase(corev1.PodFailed)}, "Failed", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			reason, message := state(makePod("a", "", test.with...))
			if reason != test.reason || message != test.message {
				t.Errorf("got  %s: %s\nwant %s: %s", reason, message, test.reason, test.message)
			}
		})
	}
}

func TestCulprit(t *testing.T) {
	notReady := func(name string, with ...func(*corev1.Pod)) corev1.Pod { return *makePod(name, "", with...) }
	pods := []corev1.Pod{
		notReady("ready", ready), notReady("done", phase(corev1.PodSucceeded)),
		notReady("leaving", deleted, crashLoop), notReady("evicted", phase(corev1.PodFailed), ready),
		notReady("starting", phase(corev1.PodPending), waits("ContainerCreating", "")),
		notReady("unready"), notReady("crashing", crashLoop),
		notReady("homeless", phase(corev1.PodPending), condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "")),
	}
	for _, test := range []struct {
		rank func(*corev1.Pod) int
		from int
		want string
	}{
		{rank, 0, "crashing"},
		{rank, 7, "homeless"},
		{rankOfJobPod, 0, "evicted"},
		{rankOfJobPod, 4, "crashing"},
	} {
		if got := culprit(pods[test.from:], test.rank); got == nil || got.Name != test.want {
			t.Errorf("from %d: got %v, want %s", test.from, got, test.want)
		}
	}
	// Each is chosen as long as nothing says more.
	for n, want := range map[int]string{6: "unready", 5: "starting", 4: "evicted", 3: "leaving"} {
		if got := culprit(pods[:n], rank); got == nil || got.Name != want {
			t.Errorf("of the first %d: got %v, want %s", n, got, want)
		}
	}
	if got := culprit(pods[:2], rank); got != nil {
		t.Errorf("of pods that are all well: got %s", got.Name)
	}
}
