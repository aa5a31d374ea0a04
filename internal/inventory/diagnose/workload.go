package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/chartwright/chartwright/internal/apply"
)

// workload is an object that makes pods, as far as that is the same for all.
type workload struct {
	// own is what the object says itself.
	own      Cause
	uid      types.UID
	selector *metav1.LabelSelector
	template *corev1.PodTemplateSpec
	// behind tells that the controller has not acted on the spec that is
	// stored: what there is of pods is from before.
	behind bool
}

func newWorkload(own Cause, set metav1.Object, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec, observed int64) *workload {
	return &workload{own: own, uid: set.GetUID(), selector: selector, template: template, behind: observed < set.GetGeneration()}
}

// podCause asks the pods of an object, then the object.
func (s *search) podCause(ctx context.Context, w *workload) (Cause, error) {
	// What keeps pods from being made may quote their template.
	s.redactor.add(&w.template.ObjectMeta, &w.template.Spec)
	if w.behind {
		w.own.Reason, w.own.Message = "NotObserved", "its controller has not acted on it yet"
		return s.withWarning(ctx, w.own, w.uid)
	}
	pods, err := s.podsOf(ctx, w)
	if err != nil {
		return w.own, err
	}
	if p := culprit(pods, rank); p != nil {
		return s.causeOfPod(ctx, p)
	}
	return s.withWarning(ctx, w.own, w.uid)
}

func (s *search) replicaSet(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	set, err := s.client.AppsV1().ReplicaSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.notReadable(ctx, key, uid, "get replicasets.apps", err)
	}
	cause, err := s.podCause(ctx, replicaSet(set))
	return counted(cause, set.Status.AvailableReplicas, set.Status.Replicas, ptr.Deref(set.Spec.Replicas, 1)), err
}

// replicaSet says by a condition why it cannot make pods.
func replicaSet(set *appsv1.ReplicaSet) *workload {
	own := Cause{Object: apply.Key{Group: appsv1.GroupName, Kind: "ReplicaSet", Namespace: set.Namespace, Name: set.Name}}
	for _, c := range set.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			own.Reason, own.Message = c.Reason, c.Message
		}
	}
	return newWorkload(own, set, set.Spec.Selector, &set.Spec.Template, set.Status.ObservedGeneration)
}

func (s *search) statefulSet(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	set, err := s.client.AppsV1().StatefulSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.notReadable(ctx, key, uid, "get statefulsets.apps", err)
	}
	cause, err := s.podCause(ctx, newWorkload(Cause{Object: key}, set, set.Spec.Selector, &set.Spec.Template, set.Status.ObservedGeneration))
	return counted(cause, set.Status.AvailableReplicas, set.Status.UpdatedReplicas, ptr.Deref(set.Spec.Replicas, 1)), err
}

func (s *search) daemonSet(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	set, err := s.client.AppsV1().DaemonSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.notReadable(ctx, key, uid, "get daemonsets.apps", err)
	}
	cause, err := s.podCause(ctx, newWorkload(Cause{Object: key}, set, set.Spec.Selector, &set.Spec.Template, set.Status.ObservedGeneration))
	return counted(cause, set.Status.NumberAvailable, set.Status.UpdatedNumberScheduled, set.Status.DesiredNumberScheduled), err
}

// counted lets the numbers speak where nothing else does: pods are ready and
// have to stay so for minReadySeconds, say, or are too few.
func counted(cause Cause, available, updated, want int32) Cause {
	if cause.Reason == "" && cause.Message == "" && (available < want || updated < want) {
		cause.Message = fmt.Sprintf("available: %d of %d pods, up to date: %d", available, want, updated)
	}
	return cause
}

// revision is the annotation by which the ReplicaSets of a Deployment are
// numbered.
const revision = "deployment.kubernetes.io/revision"

func (s *search) deployment(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	d, err := s.client.AppsV1().Deployments(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.notReadable(ctx, key, uid, "get deployments.apps", err)
	}
	s.redactor.add(&d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec)
	own := Cause{Object: key}
	own.Reason, own.Message = rollout(d)
	own = counted(own, d.Status.AvailableReplicas, d.Status.UpdatedReplicas, ptr.Deref(d.Spec.Replicas, 1))
	if old := d.Status.Replicas - d.Status.UpdatedReplicas; old > 0 && !own.Known() {
		own.Message = fmt.Sprintf("pods from before its rollout that are still there: %d", old)
	}
	// A rollout that has not begun is not what the ReplicaSets tell of.
	if begun := d.Status.ObservedGeneration >= d.Generation && !d.Spec.Paused; begun {
		set, err := s.newestSet(ctx, d)
		if err != nil {
			return own, err
		}
		if set != nil {
			if cause, err := s.podCause(ctx, replicaSet(set)); err != nil || cause.Known() {
				return cause, err
			}
		}
	}
	return s.withWarning(ctx, own, d.UID)
}

// rollout returns what a Deployment says of its rollout.
func rollout(d *appsv1.Deployment) (reason, message string) {
	if d.Status.ObservedGeneration < d.Generation {
		return "NotObserved", "its controller has not acted on it yet"
	}
	if d.Spec.Paused {
		return "Paused", "its rollout is paused by spec.paused"
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

// newestSet returns the ReplicaSet that a rollout leads to, nil if there is
// none or it may not be known.
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
	var newest *appsv1.ReplicaSet
	for i := range list.Items {
		set := &list.Items[i]
		if controls(d.UID, set) && (newest == nil || number(set) > number(newest)) {
			newest = set
		}
	}
	return newest, nil
}

// number returns the revision of a ReplicaSet, 0 for one that has none.
func number(set *appsv1.ReplicaSet) int64 {
	// The API server stores any text.
	n, _ := strconv.ParseInt(set.Annotations[revision], 10, 64)
	return n
}

// job answers for a Job: that it failed, and what its last pod says of that.
func (s *search) job(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	job, err := s.client.BatchV1().Jobs(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.notReadable(ctx, key, uid, "get jobs.batch", err)
	}
	s.redactor.add(&job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec)
	own := Cause{Object: key}
	own.Reason, own.Message = failure(job)
	pods, err := s.podsOf(ctx, &workload{own: own, uid: job.UID, selector: job.Spec.Selector})
	if err != nil {
		return own, err
	}
	// Each try has a pod of its own.
	slices.Reverse(pods)
	last := culprit(pods, rankOfJobPod)
	if last == nil {
		return s.withWarning(ctx, own, job.UID)
	}
	cause, err := s.causeOfPod(ctx, last)
	if own.Reason == "" {
		return cause, err
	}
	own.Message = join("; ", own.Message, cause.Object.String()+": "+cause.said())
	own.Event = cause.Event
	return own, err
}

// failure returns why a Job has failed or does not run.
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

// waitsFor are reasons of events that are no warnings and yet say what a claim
// waits for.
var waitsFor = []string{"FailedBinding", "WaitForFirstConsumer", "WaitForPodScheduled", "ExternalProvisioning"}

// claim answers for a PersistentVolumeClaim, which tells by events alone why it
// gets no volume.
func (s *search) claim(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	claim, err := s.client.CoreV1().PersistentVolumeClaims(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.notReadable(ctx, key, uid, "get persistentvolumeclaims", err)
	}
	cause := Cause{Object: key}
	switch {
	case claim.DeletionTimestamp != nil:
		cause.Reason, cause.Message = "Terminating", "it is being deleted"
		return cause, nil
	case claim.Status.Phase == corev1.ClaimBound:
		return cause, nil
	case claim.Status.Phase == corev1.ClaimLost:
		cause.Reason, cause.Message = "Lost", "its volume "+claim.Spec.VolumeName+" is gone"
		return s.withWarning(ctx, cause, claim.UID)
	}
	events, err := s.events(ctx, key, claim.UID)
	last := newest(events, func(e *corev1.Event) bool {
		return e.Type == corev1.EventTypeWarning || slices.Contains(waitsFor, e.Reason)
	})
	if last == nil {
		cause.Reason, cause.Message = string(corev1.ClaimPending), "it has no volume yet"
		return cause, err
	}
	cause.Reason, cause.Message = last.Reason, last.Message
	return cause, err
}
