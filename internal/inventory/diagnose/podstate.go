package diagnose

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// state returns why a pod is not ready, in a word and in a sentence.
func state(p *corev1.Pod) (reason, message string) {
	if p.DeletionTimestamp != nil {
		return "Terminating", "it is being deleted"
	}
	if c := unscheduled(p); c != nil {
		return c.Reason, c.Message
	}
	// A node that evicts a pod says so here, and ends its containers.
	if p.Status.Reason != "" {
		return p.Status.Reason, p.Status.Message
	}
	if reason, message = containerState(p); reason != "" {
		return reason, message
	}
	if p.Status.Phase == corev1.PodRunning {
		if c := podCondition(p, corev1.PodReady); c != nil && c.Reason != "" {
			return c.Reason, join("; ", c.Message, lastEnd(p))
		}
		return "NotReady", "it runs and does not say that it is ready"
	}
	return string(p.Status.Phase), join("; ", waiting(p), p.Status.Message)
}

// waiting says what a pod that was told no reason waits for.
func waiting(p *corev1.Pod) string {
	switch {
	case p.Status.Phase == corev1.PodFailed:
		return ""
	case p.Spec.NodeName == "":
		return "it is not scheduled to a node yet"
	}
	for _, s := range p.Status.InitContainerStatuses {
		if s.State.Running != nil && !isSidecar(p, s.Name) {
			return "its init container " + s.Name + " has not ended yet"
		}
	}
	return "node " + p.Spec.NodeName + " has not started it yet"
}

// isSidecar tells whether an init container is one that goes on running.
func isSidecar(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// containerState returns what keeps the first container that is kept from
// running. What a container itself wrote when it ended is not told.
func containerState(p *corev1.Pod) (reason, message string) {
	for _, s := range statuses(p) {
		switch {
		case s.State.Waiting != nil && !onItsWay(s.State.Waiting):
			return s.State.Waiting.Reason, join("; ", of(p, s.Name)+s.State.Waiting.Message, end(s.LastTerminationState.Terminated))
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			ended := s.State.Terminated
			return either(ended.Reason, "Error"), of(p, s.Name) + fmt.Sprintf("exit code %d", ended.ExitCode)
		}
	}
	return "", ""
}

// lastEnd tells how a container that runs again ended before.
func lastEnd(p *corev1.Pod) string {
	for _, s := range statuses(p) {
		if last := end(s.LastTerminationState.Terminated); last != "" && !s.Ready {
			return of(p, s.Name) + last
		}
	}
	return ""
}

func end(ended *corev1.ContainerStateTerminated) string {
	if ended == nil {
		return ""
	}
	return fmt.Sprintf("it last ended with %s, exit code %d", either(ended.Reason, "Error"), ended.ExitCode)
}

// stuck tells whether a pod says why it will not run by itself.
func stuck(p *corev1.Pod) bool {
	reason, _ := containerState(p)
	return reason != "" || unscheduled(p) != nil
}

// unscheduled returns the condition by which a pod says why it has no node.
func unscheduled(p *corev1.Pod) *corev1.PodCondition {
	if c := podCondition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return c
	}
	return nil
}

// onItsWay tells whether a container waits for no more than its turn.
func onItsWay(w *corev1.ContainerStateWaiting) bool {
	return w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing"
}

// of names a container where there are several.
func of(p *corev1.Pod, name string) string {
	if len(containers(&p.Spec)) < 2 {
		return ""
	}
	return "container " + name + ": "
}

func containers(spec *corev1.PodSpec) []corev1.Container {
	return slices.Concat(spec.InitContainers, spec.Containers)
}

func statuses(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

func podCondition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

func either(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}
