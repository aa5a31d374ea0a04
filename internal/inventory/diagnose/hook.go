package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// stuckAfter is how long a pod may wait for a node, for a volume, or to be created before its
// hook counts as stuck. Shorter waits are normal in a busy cluster.
const stuckAfter = 20 * time.Second

// cannotStart are the reasons with which a kubelet reports that it cannot start a container.
// The kubelet retries, but without a change of the pod, or of an object that the pod refers
// to, every attempt fails.
var cannotStart = []string{
	"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}

// crashLoopBackOff is the reason with which a kubelet reports that a container has failed and
// will be restarted.
const crashLoopBackOff = "CrashLoopBackOff"

// cannotMount are the reasons of warnings about pods that wait for a volume, or for a Secret
// or ConfigMap that is mounted as a volume.
var cannotMount = []string{"FailedMount", "FailedAttachVolume"}

// Hook is the progress of a hook.
type Hook struct {
	State api.HookState
	// Cause is not Known if there is nothing to report, for example of a running hook.
	Cause Cause
}

// Why returns the cause in one line. It omits the name of the pod, because each attempt has
// another pod with the same cause.
func (h Hook) Why() string {
	if !h.Cause.Known() {
		return ""
	}
	return strings.TrimPrefix(h.Cause.String(), h.Cause.Object.String()+": ")
}

// CheckHook returns the progress of a Job or Pod that is a hook. It sends three or four
// requests. Pods that are being deleted count only if one of their containers still runs.
func CheckHook(ctx context.Context, clients kubernetes.Interface, key apply.Key, uid types.UID, now time.Time) (Hook, error) {
	s := &search{client: clients}
	hook, err := s.hook(ctx, key, uid, now)
	hook.Cause.Message, hook.Cause.Event = s.redactor.redact(hook.Cause.Message), s.redactor.redact(hook.Cause.Event)
	if err != nil {
		return hook, fmt.Errorf("check hook %s: %w", key, err)
	}
	return hook, nil
}

func (s *search) hook(ctx context.Context, key apply.Key, uid types.UID, now time.Time) (Hook, error) {
	if key.GroupKind() != kindJob {
		pod, err := s.client.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil || pod.UID != uid {
			return s.absentHook(key, "get pods", err)
		}
		return s.hookOfPods(ctx, []corev1.Pod{*pod}, now)
	}
	job, err := s.client.BatchV1().Jobs(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil || job.UID != uid {
		return s.absentHook(key, "get jobs.batch", err)
	}
	s.redactor.add(&job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec)
	pods, err := s.podsOf(ctx, job, job.Spec.Selector)
	if err != nil {
		return Hook{State: api.HookStarting}, err
	}
	if len(s.missing) > 0 {
		return s.unknown(key), nil
	}
	if len(pods) == 0 {
		return s.withoutPods(ctx, Cause{Object: key}, job.UID, now.Sub(job.CreationTimestamp.Time) >= stuckAfter)
	}
	// Each attempt has its own pod.
	slices.Reverse(pods)
	return s.hookOfPods(ctx, pods, now)
}

// absentHook returns the state of a hook that could not be read, or that another object has
// replaced.
func (s *search) absentHook(key apply.Key, permission string, err error) (Hook, error) {
	if s.isForbidden(permission, err) {
		return s.unknown(key), nil
	}
	if apply.AnswerOf(err) == apply.Gone {
		err = nil
	}
	return Hook{State: api.HookStarting}, err
}

// unknown returns the state of a hook whose pods cannot be read: a pod may be running.
func (s *search) unknown(key apply.Key) Hook {
	return Hook{State: api.HookRunning, Cause: Cause{Object: key, Message: "state unknown; missing permission: " + s.missing[0]}}
}

// withoutPods returns the state of a Job that has no pods. If pods cannot be created, a
// warning event has the reason.
func (s *search) withoutPods(ctx context.Context, own Cause, uid types.UID, late bool) (Hook, error) {
	hook := Hook{State: api.HookStarting, Cause: own}
	events, err := s.events(ctx, own.Object, uid)
	last := newest(events, func(e *corev1.Event) bool { return e.Type == corev1.EventTypeWarning })
	if last == nil {
		return hook, err
	}
	hook.Cause.Reason, hook.Cause.Message = last.Reason, last.Message
	if late && last.Reason == "FailedCreate" {
		hook.State = api.HookStuck
	}
	return hook, err
}

// hookOfPods returns the state of a hook with the given pods, newest first. If a container
// runs, the hook runs; if a pod may still start, the hook is starting.
func (s *search) hookOfPods(ctx context.Context, pods []corev1.Pod, now time.Time) (Hook, error) {
	hook := Hook{State: api.HookStarting}
	var alive []corev1.Pod
	in := map[api.HookState]int{}
	for i := range pods {
		p := &pods[i]
		if slices.ContainsFunc(statuses(p), func(c corev1.ContainerStatus) bool { return c.State.Running != nil }) {
			return Hook{State: api.HookRunning}, nil
		}
		if p.DeletionTimestamp == nil {
			alive = append(alive, *p)
			in[stateOf(p, now)]++
		}
	}
	// The pod of the current attempt ranks before the pods of failed attempts.
	worst := worstPod(alive, rank)
	if worst == nil {
		return hook, nil
	}
	cause, err := s.causeOfPod(ctx, worst)
	if cause.Reason == crashLoopBackOff {
		// The message and the warning of a kubelet contain the name of the pod and the
		// time until the next attempt.
		cause.Message, cause.Event = lastTermination(worst), ""
	}
	hook.Cause = cause
	switch {
	case in[api.HookStarting] == 1 && lacksVolume(worst, cause, now), in[api.HookStarting] == 0 && in[api.HookStuck] > 0:
		hook.State = api.HookStuck
	case in[api.HookStarting] == 0 && in[api.HookCrashing] > 0:
		hook.State = api.HookCrashing
	}
	return hook, err
}

// stateOf returns the state of a pod without a running container. A pod that succeeded
// counts as starting: the hook has ended, or other pods follow.
func stateOf(p *corev1.Pod, now time.Time) api.HookState {
	if p.Status.Phase == corev1.PodFailed {
		return api.HookCrashing
	}
	if c := unscheduled(p); c != nil && c.Reason == corev1.PodReasonUnschedulable {
		since := c.LastTransitionTime
		if since.IsZero() {
			since = p.CreationTimestamp
		}
		if now.Sub(since.Time) >= stuckAfter {
			return api.HookStuck
		}
	}
	for _, c := range statuses(p) {
		switch {
		case c.State.Waiting == nil:
		case slices.Contains(cannotStart, c.State.Waiting.Reason):
			return api.HookStuck
		case c.State.Waiting.Reason == crashLoopBackOff:
			return api.HookCrashing
		}
	}
	return api.HookStarting
}

// lacksVolume reports whether a scheduled pod has waited for a volume for stuckAfter. Only
// its last warning shows that.
func lacksVolume(p *corev1.Pod, cause Cause, now time.Time) bool {
	scheduled := podCondition(p, corev1.PodScheduled)
	reason, _, _ := strings.Cut(cause.Event, ":")
	return scheduled != nil && scheduled.Status == corev1.ConditionTrue && now.Sub(scheduled.LastTransitionTime.Time) >= stuckAfter &&
		slices.Contains(cannotMount, reason)
}
