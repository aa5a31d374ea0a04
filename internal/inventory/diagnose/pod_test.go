package diagnose

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestState_OfPods(t *testing.T) {
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
		{"being deleted", []func(*corev1.Pod){deleted, crashLoop}, "Terminating", "being deleted"},
		{"gated", []func(*corev1.Pod){pending, condition(corev1.PodScheduled, corev1.ConditionFalse, "SchedulingGated", "Scheduling is blocked")}, "SchedulingGated", "Scheduling is blocked"},
		{"evicted", []func(*corev1.Pod){phase(corev1.PodFailed), ended("Error", 137), func(p *corev1.Pod) {
			p.Status.Reason, p.Status.Message = "Evicted", "the node was low on memory"
		}}, "Evicted", "the node was low on memory"},
		{"key of a Secret missing", []func(*corev1.Pod){pending, waits("CreateContainerConfigError", `secret "db" not found`)}, "CreateContainerConfigError", `secret "db" not found`},
		{"one of several containers waiting", []func(*corev1.Pod){second, crashLoop}, "CrashLoopBackOff", "container web: back-off 5m0s restarting failed container"},
		{"crashing", []func(*corev1.Pod){status(corev1.ContainerStatus{
			Name:                 "web",
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}},
			LastTerminationState: crashed,
		})}, "CrashLoopBackOff", "back-off; last terminated with Error, exit code 3"},
		{"running again after a crash", []func(*corev1.Pod){
			condition(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [web]"),
			status(corev1.ContainerStatus{Name: "web", State: running, LastTerminationState: crashed}),
		}, "ContainersNotReady", "containers with unready status: [web]; last terminated with Error, exit code 3"},
		{"ready again after a crash", []func(*corev1.Pod){
			condition(corev1.PodReady, corev1.ConditionFalse, "ReadinessGatesNotReady", "gate"),
			status(corev1.ContainerStatus{Name: "web", Ready: true, State: running, LastTerminationState: crashed}),
		}, "ReadinessGatesNotReady", "gate"},
		{"terminated, without its termination message", []func(*corev1.Pod){phase(corev1.PodFailed), ended("OOMKilled", 137)}, "OOMKilled", "exit code 137"},
		{"one container completed, one failed", []func(*corev1.Pod){second, pending, ended("Completed", 0), func(p *corev1.Pod) {
			status(corev1.ContainerStatus{Name: "proxy", State: crashed})(p)
		}}, "Error", "container proxy: exit code 3"},
		{"init container failed", []func(*corev1.Pod){pending, initially("migrate", crashed, nil), waits("PodInitializing", "")}, "Error", "container migrate: exit code 3"},
		{"init container running", []func(*corev1.Pod){pending, initially("migrate", running, nil), waits("PodInitializing", "")}, "Pending", "waiting for init container migrate"},
		{"sidecar running", []func(*corev1.Pod){pending, initially("proxy", running, &always), waits("PodInitializing", "")}, "Pending", "waiting for node node-1 to start the pod"},
		{"container being created", []func(*corev1.Pod){pending, waits("ContainerCreating", "")}, "Pending", "waiting for node node-1 to start the pod"},
		{"no scheduler", []func(*corev1.Pod){pending, func(p *corev1.Pod) { p.Spec.NodeName = "" }}, "Pending", "not scheduled to a node yet"},
		{"no message", nil, "NotReady", "running but not ready"},
		{"failed without message", []func(*corev1.Pod){phase(corev1.PodFailed)}, "Failed", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			reason, message := state(makePod("a", "", test.with...))
			if reason != test.reason || message != test.message {
				t.Errorf("got  %s: %s\nwant %s: %s", reason, message, test.reason, test.message)
			}
		})
	}
}

func TestWorstPod_PrefersMostInformativePod(t *testing.T) {
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
		if got := worstPod(pods[test.from:], test.rank); got == nil || got.Name != test.want {
			t.Errorf("from %d: got %v, want %s", test.from, got, test.want)
		}
	}
	// Each of these is chosen if no pod with a lower rank exists.
	for n, want := range map[int]string{6: "unready", 5: "starting", 4: "evicted", 3: "leaving"} {
		if got := worstPod(pods[:n], rank); got == nil || got.Name != want {
			t.Errorf("first %d pods: got %v, want %s", n, got, want)
		}
	}
	if got := worstPod(pods[:2], rank); got != nil {
		t.Errorf("ready pods: got %s", got.Name)
	}
}
