package plugin

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inventory/diagnose"
)

// hooks returns the Jobs and Pods that hooks of the release have created and that
// have not succeeded. They are found by their label: the record of the revision
// may not be readable, and an earlier revision may have left some.
func (x *objectSearch) hooks(ctx context.Context) []objectOutput {
	namespace := x.status.Release.Namespace
	options := metav1.ListOptions{LabelSelector: api.LabelHookOwnerUID + "=" + string(x.cr.GetUID())}
	var hooks []objectOutput
	jobs, err := x.typed.BatchV1().Jobs(namespace).List(ctx, options)
	if x.listed("list jobs.batch", namespace, err) {
		for i := range jobs.Items {
			job := &jobs.Items[i]
			if succeeded, hook := hookOf(job); !succeeded {
				hooks = append(hooks, x.explainHook(ctx, hook, job.UID))
			}
		}
	}
	pods, err := x.typed.CoreV1().Pods(namespace).List(ctx, options)
	if x.listed("list pods", namespace, err) {
		for i := range pods.Items {
			pod := &pods.Items[i]
			// The pods of a Job have the labels of its template.
			if pod.Status.Phase == corev1.PodSucceeded || metav1.GetControllerOf(pod) != nil {
				continue
			}
			hook := objectOutput{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, Ready: metav1.ConditionUnknown}
			if pod.Status.Phase == corev1.PodFailed {
				hook.Ready, hook.Reason = metav1.ConditionFalse, string(corev1.PodFailed)
			}
			hooks = append(hooks, x.explainHook(ctx, hook, pod.UID))
		}
	}
	sortObjects(hooks)
	return hooks
}

// listed reports whether a list was read, and notes why where it was not.
func (x *objectSearch) listed(right, namespace string, err error) bool {
	switch {
	case err == nil:
		return true
	case apierrors.IsForbidden(err):
		need := rightOf(right, namespace)
		need.purpose = "to show the hooks that run or have failed"
		x.lacks(need.Error())
	default:
		x.lacks("the hooks cannot be listed: " + oneLine(err.Error()))
	}
	return false
}

// hookOf returns how the Job of a hook ended, if it has, and whether it succeeded.
func hookOf(job *batchv1.Job) (succeeded bool, hook objectOutput) {
	hook = objectOutput{Group: batchv1.GroupName, Kind: "Job", Namespace: job.Namespace, Name: job.Name, Ready: metav1.ConditionUnknown}
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return true, hook
		case c.Type == batchv1.JobFailed:
			hook.Ready, hook.Reason, hook.Message = metav1.ConditionFalse, c.Reason, oneLine(c.Message)
		}
	}
	return false, hook
}

// explainHook adds how far a hook is that has not ended, and why.
func (x *objectSearch) explainHook(ctx context.Context, hook objectOutput, uid types.UID) objectOutput {
	key := found{objectOutput: hook}.key()
	seen, err := diagnose.OfHook(ctx, x.typed, key, uid, time.Now())
	if err != nil {
		x.lacks(oneLine(err.Error()))
		return hook
	}
	if hook.Reason == "" {
		hook.Reason = string(seen.State)
		if seen.State.Idle() {
			hook.Ready = metav1.ConditionFalse
		}
	}
	if cause := seen.Cause; cause.Known() {
		hook.Cause = &causeOutput{
			Kind: cause.Object.Kind, Namespace: cause.Object.Namespace, Name: cause.Object.Name,
			Reason: cause.Reason, Message: oneLine(cause.Message), Warning: oneLine(cause.Event),
		}
	}
	return hook
}
