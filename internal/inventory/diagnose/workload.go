package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/chartwright/chartwright/internal/apply"
)

// podCause returns the cause of a pod that a workload controls, or of the workload
// itself if none of its pods has one. The argument observed is the generation of
// the workload that its controller has acted on.
func (s *search) podCause(ctx context.Context, own Cause, workload metav1.Object, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec, observed int64) (Cause, error) {
	// The reason why pods cannot be created may quote their template.
	s.redactor.add(&template.ObjectMeta, &template.Spec)
	if observed < workload.GetGeneration() {
		// The pods are from an older spec.
		own.Reason, own.Message = "NotObserved", "latest generation not observed by the controller yet"
		return s.withWarning(ctx, own, workload.GetUID())
	}
	pods, err := s.podsOf(ctx, workload, selector)
	if err != nil {
		return own, err
	}
	if p := worstPod(pods, rank); p != nil {
		return s.causeOfPod(ctx, p)
	}
	return s.withWarning(ctx, own, workload.GetUID())
}

func (s *search) replicaSet(ctx context.Context, own Cause, set *appsv1.ReplicaSet) (Cause, error) {
	cause, err := s.replicaSetCause(ctx, own, set)
	return counted(cause, set.Status.AvailableReplicas, set.Status.Replicas, ptr.Deref(set.Spec.Replicas, 1)), err
}

// replicaSetCause returns the cause of a ReplicaSet, which reports by a condition
// why it cannot create pods.
func (s *search) replicaSetCause(ctx context.Context, own Cause, set *appsv1.ReplicaSet) (Cause, error) {
	for _, c := range set.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			own.Reason, own.Message = c.Reason, c.Message
		}
	}
	return s.podCause(ctx, own, set, set.Spec.Selector, &set.Spec.Template, set.Status.ObservedGeneration)
}

func (s *search) statefulSet(ctx context.Context, own Cause, set *appsv1.StatefulSet) (Cause, error) {
	cause, err := s.podCause(ctx, own, set, set.Spec.Selector, &set.Spec.Template, set.Status.ObservedGeneration)
	return counted(cause, set.Status.AvailableReplicas, set.Status.UpdatedReplicas, ptr.Deref(set.Spec.Replicas, 1)), err
}

func (s *search) daemonSet(ctx context.Context, own Cause, set *appsv1.DaemonSet) (Cause, error) {
	cause, err := s.podCause(ctx, own, set, set.Spec.Selector, &set.Spec.Template, set.Status.ObservedGeneration)
	return counted(cause, set.Status.NumberAvailable, set.Status.UpdatedNumberScheduled, set.Status.DesiredNumberScheduled), err
}

// counted adds the numbers of pods to a cause without reason and message: for example, if
// there are too few pods, or if ready pods wait for minReadySeconds.
func counted(cause Cause, available, updated, want int32) Cause {
	if cause.Reason == "" && cause.Message == "" && (available < want || updated < want) {
		cause.Message = fmt.Sprintf("available: %d of %d pods, up to date: %d", available, want, updated)
	}
	return cause
}

// revision is the annotation with the revision number of a ReplicaSet of a Deployment.
const revision = "deployment.kubernetes.io/revision"

func (s *search) deployment(ctx context.Context, own Cause, d *appsv1.Deployment) (Cause, error) {
	s.redactor.add(&d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec)
	own.Reason, own.Message = rollout(d)
	own = counted(own, d.Status.AvailableReplicas, d.Status.UpdatedReplicas, ptr.Deref(d.Spec.Replicas, 1))
	if old := d.Status.Replicas - d.Status.UpdatedReplicas; old > 0 && !own.Known() {
		own.Message = fmt.Sprintf("pods of older revisions that still exist: %d", old)
	}
	// Before the rollout has begun, the ReplicaSets are those of an older spec.
	if begun := d.Status.ObservedGeneration >= d.Generation && !d.Spec.Paused; begun {
		set, err := s.newestSet(ctx, d)
		if err != nil {
			return own, err
		}
		if set != nil {
			newest := Cause{Object: apply.Key{Group: appsv1.GroupName, Kind: "ReplicaSet", Namespace: set.Namespace, Name: set.Name}}
			if cause, err := s.replicaSetCause(ctx, newest, set); err != nil || cause.Known() {
				return cause, err
			}
		}
	}
	return s.withWarning(ctx, own, d.UID)
}

// rollout returns the reason and message of a rollout that does not progress.
func rollout(d *appsv1.Deployment) (reason, message string) {
	if d.Status.ObservedGeneration < d.Generation {
		return "NotObserved", "latest generation not observed by the controller yet"
	}
	if d.Spec.Paused {
		return "Paused", "rollout paused by spec.paused"
	}
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue:
			return c.Reason, c.Message
		case c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse:
			reason, message = c.Reason, c.Message
		}
	}
	return reason, message
}

// newestSet returns the ReplicaSet of the current rollout. It returns nil if it does not
// exist, or if the permission to list ReplicaSets is missing.
func (s *search) newestSet(ctx context.Context, d *appsv1.Deployment) (*appsv1.ReplicaSet, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, err
	}
	options := metav1.ListOptions{LabelSelector: selector.String(), Limit: listLimit}
	list, err := s.client.AppsV1().ReplicaSets(d.Namespace).List(ctx, options)
	if err != nil {
		return nil, s.unlessForbidden("list replicasets.apps", err)
	}
	sets := slices.DeleteFunc(list.Items, func(set appsv1.ReplicaSet) bool { return !metav1.IsControlledBy(&set, d) })
	if len(sets) == 0 {
		return nil, nil
	}
	return new(slices.MaxFunc(sets, func(a, b appsv1.ReplicaSet) int { return cmp.Compare(number(&a), number(&b)) })), nil
}

// number returns the revision number of a ReplicaSet, or 0.
func number(set *appsv1.ReplicaSet) int64 {
	// The API server accepts any string.
	n, _ := strconv.ParseInt(set.Annotations[revision], 10, 64)
	return n
}

// job returns the cause of a Job: its own failure, with the cause of its last pod.
func (s *search) job(ctx context.Context, own Cause, job *batchv1.Job) (Cause, error) {
	s.redactor.add(&job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec)
	own.Reason, own.Message = failure(job)
	pods, err := s.podsOf(ctx, job, job.Spec.Selector)
	if err != nil {
		return own, err
	}
	// Each attempt has its own pod.
	slices.Reverse(pods)
	last := worstPod(pods, rankOfJobPod)
	if last == nil {
		return s.withWarning(ctx, own, job.UID)
	}
	cause, err := s.causeOfPod(ctx, last)
	if own.Reason == "" {
		return cause, err
	}
	own.Message = join("; ", own.Message, cause.Object.String()+": "+cause.description())
	own.Event = cause.Event
	return own, err
}

// failure returns the reason and message of a Job that has failed or is suspended.
func failure(job *batchv1.Job) (reason, message string) {
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobFailed:
			return c.Reason, c.Message
		case batchv1.JobFailureTarget, batchv1.JobSuspended:
			reason, message = c.Reason, c.Message
		}
	}
	return reason, message
}

// waitsFor are the reasons of normal events that explain what a claim waits for.
var waitsFor = []string{"FailedBinding", "WaitForFirstConsumer", "WaitForPodScheduled", "ExternalProvisioning"}

// claim returns the cause of a PersistentVolumeClaim. Only events explain why a claim is
// not bound.
func (s *search) claim(ctx context.Context, cause Cause, claim *corev1.PersistentVolumeClaim) (Cause, error) {
	switch {
	case claim.DeletionTimestamp != nil:
		cause.Reason, cause.Message = "Terminating", "being deleted"
		return cause, nil
	case claim.Status.Phase == corev1.ClaimBound:
		return cause, nil
	case claim.Status.Phase == corev1.ClaimLost:
		cause.Reason, cause.Message = "Lost", "volume "+claim.Spec.VolumeName+" no longer exists"
		return s.withWarning(ctx, cause, claim.UID)
	}
	events, err := s.events(ctx, cause.Object, claim.UID)
	last := newest(events, func(e *corev1.Event) bool {
		return e.Type == corev1.EventTypeWarning || slices.Contains(waitsFor, e.Reason)
	})
	if last == nil {
		cause.Reason, cause.Message = string(corev1.ClaimPending), "no volume is bound yet"
		return cause, err
	}
	cause.Reason, cause.Message = last.Reason, last.Message
	return cause, err
}
