package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/apply"
)

// pod returns the cause of a pod that belongs to the release itself.
func (s *search) pod(ctx context.Context, own Cause, pod *corev1.Pod) (Cause, error) {
	if isReadyOrDone(pod) {
		return own, nil
	}
	return s.causeOfPod(ctx, pod)
}

// causeOfPod returns the cause why a pod is not ready, with the last warning about it.
func (s *search) causeOfPod(ctx context.Context, pod *corev1.Pod) (Cause, error) {
	s.redactor.add(&pod.ObjectMeta, &pod.Spec)
	cause := Cause{Object: apply.Key{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}}
	cause.Reason, cause.Message = state(pod)
	return s.withWarning(ctx, cause, pod.UID)
}

// podsOf returns the pods that an object controls, oldest first.
func (s *search) podsOf(ctx context.Context, object metav1.Object, labels *metav1.LabelSelector) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(labels)
	if err != nil {
		return nil, err
	}
	options := metav1.ListOptions{LabelSelector: selector.String(), Limit: listLimit}
	list, err := s.client.CoreV1().Pods(object.GetNamespace()).List(ctx, options)
	if err != nil {
		return nil, s.unlessForbidden("list pods", err)
	}
	// The labels may also select pods of other objects.
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, object) })
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pods, nil
}

// worstPod returns the first pod with the lowest rank among those that are not ready, or nil.
func worstPod(pods []corev1.Pod, rank func(*corev1.Pod) int) *corev1.Pod {
	var worst *corev1.Pod
	for i := range pods {
		if p := &pods[i]; !isReadyOrDone(p) && (worst == nil || rank(p) < rank(worst)) {
			worst = p
		}
	}
	return worst
}

// rank returns the rank of a pod whose controller replaces pods. A failed or deleted pod
// ranks last, because its successor reports more.
func rank(p *corev1.Pod) int {
	switch {
	case p.DeletionTimestamp != nil:
		return 4
	case p.Status.Phase == corev1.PodFailed:
		return 3
	case stuck(p):
		return 0
	case p.Status.Phase == corev1.PodRunning:
		return 1
	}
	return 2
}

// rankOfJobPod returns the rank of a pod of a Job. A failed pod ranks first.
func rankOfJobPod(p *corev1.Pod) int {
	if p.Status.Phase == corev1.PodFailed {
		return 0
	}
	return rank(p)
}

// isReadyOrDone reports whether a pod is ready or has succeeded. The conditions of a failed
// pod may be from the time when it was running.
func isReadyOrDone(p *corev1.Pod) bool {
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return true
	case corev1.PodFailed:
		return false
	}
	ready := podCondition(p, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// state returns the reason and the message why a pod is not ready.
func state(p *corev1.Pod) (reason, message string) {
	if p.DeletionTimestamp != nil {
		return "Terminating", "being deleted"
	}
	if c := unscheduled(p); c != nil {
		return c.Reason, c.Message
	}
	// A node that evicts a pod sets this reason, and terminates the containers.
	if p.Status.Reason != "" {
		return p.Status.Reason, p.Status.Message
	}
	if reason, message = containerState(p); reason != "" {
		return reason, message
	}
	if p.Status.Phase == corev1.PodRunning {
		if c := podCondition(p, corev1.PodReady); c != nil && c.Reason != "" {
			return c.Reason, join("; ", c.Message, lastTermination(p))
		}
		return "NotReady", "running but not ready"
	}
	return string(p.Status.Phase), join("; ", waiting(p), p.Status.Message)
}

// waiting returns the reason why a pod without a message does not run yet.
func waiting(p *corev1.Pod) string {
	switch {
	case p.Status.Phase == corev1.PodFailed:
		return ""
	case p.Spec.NodeName == "":
		return "not scheduled to a node yet"
	}
	for _, s := range p.Status.InitContainerStatuses {
		if s.State.Running != nil && !isSidecar(p, s.Name) {
			return "waiting for init container " + s.Name
		}
	}
	return "waiting for node " + p.Spec.NodeName + " to start the pod"
}

// isSidecar reports whether an init container keeps running next to the other containers.
func isSidecar(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// containerState returns the reason and message of the first container that cannot run. It
// never returns the termination message, which the container itself has written.
func containerState(p *corev1.Pod) (reason, message string) {
	for _, s := range statuses(p) {
		switch {
		case s.State.Waiting != nil && !isStarting(s.State.Waiting):
			return s.State.Waiting.Reason, join("; ", containerPrefix(p, s.Name)+s.State.Waiting.Message, end(s.LastTerminationState.Terminated))
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			ended := s.State.Terminated
			return cmp.Or(ended.Reason, "Error"), containerPrefix(p, s.Name) + fmt.Sprintf("exit code %d", ended.ExitCode)
		}
	}
	return "", ""
}

// lastTermination returns how a container that is restarting terminated the last time.
func lastTermination(p *corev1.Pod) string {
	for _, s := range statuses(p) {
		if last := end(s.LastTerminationState.Terminated); last != "" && !s.Ready {
			return containerPrefix(p, s.Name) + last
		}
	}
	return ""
}

func end(ended *corev1.ContainerStateTerminated) string {
	if ended == nil {
		return ""
	}
	return fmt.Sprintf("last terminated with %s, exit code %d", cmp.Or(ended.Reason, "Error"), ended.ExitCode)
}

// stuck reports whether the status of a pod has a reason why the pod does not run.
func stuck(p *corev1.Pod) bool {
	reason, _ := containerState(p)
	return reason != "" || unscheduled(p) != nil
}

// unscheduled returns the condition with the reason why a pod has no node, or nil.
func unscheduled(p *corev1.Pod) *corev1.PodCondition {
	if c := podCondition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return c
	}
	return nil
}

// isStarting reports whether a container is waiting in the normal course of a start.
func isStarting(w *corev1.ContainerStateWaiting) bool {
	return w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing"
}

// containerPrefix returns the name of a container as a prefix if the pod has several.
func containerPrefix(p *corev1.Pod, name string) string {
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
