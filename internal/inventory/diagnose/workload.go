package diagnose

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// ask asks the pods of an object, then the object.
func (s *search) ask(ctx context.Context, w *workload) (Cause, error) {
	// What keeps pods from being made may quote their template.
	s.private.keep(&w.template.ObjectMeta, &w.template.Spec)
	if w.behind {
		w.own.Reason, w.own.Message = "NotObserved", "its controller has not acted on it yet"
		return s.warned(ctx, w.own, w.uid)
	}
	pods, err := s.podsOf(ctx, w)
	if err != nil {
		return w.own, err
	}
	if p := culprit(pods, standing); p != nil {
		return s.ofPod(ctx, p)
	}
	return s.warned(ctx, w.own, w.uid)
}

func (s *search) replicaSet(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	set, err := s.client.AppsV1().ReplicaSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.unread(ctx, key, uid, "get replicasets.apps", err)
	}
	cause, err := s.ask(ctx, replicaSet(set))
	return counted(cause, set.Status.AvailableReplicas, set.Status.Replicas, replicas(set.Spec.Replicas)), err
}

// replicaSet says by a condition why it cannot make pods.
func replicaSet(set *appsv1.ReplicaSet) *workload {
	own := Cause{Object: apply.Key{Group: kindReplicaSet.Group, Kind: kindReplicaSet.Kind, Namespace: set.Namespace, Name: set.Name}}
	for _, c := range set.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			own.Reason, own.Message = c.Reason, c.Message
		}
	}
	behind := set.Status.ObservedGeneration < set.Generation
	return &workload{own: own, uid: set.UID, selector: set.Spec.Selector, template: &set.Spec.Template, behind: behind}
}

func (s *search) statefulSet(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	set, err := s.client.AppsV1().StatefulSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.unread(ctx, key, uid, "get statefulsets.apps", err)
	}
	behind := set.Status.ObservedGeneration < set.Generation
	cause, err := s.ask(ctx, &workload{own: Cause{Object: key}, uid: set.UID, selector: set.Spec.Selector, template: &set.Spec.Template, behind: behind})
	return counted(cause, set.Status.AvailableReplicas, set.Status.UpdatedReplicas, replicas(set.Spec.Replicas)), err
}

func (s *search) daemonSet(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	set, err := s.client.AppsV1().DaemonSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.unread(ctx, key, uid, "get daemonsets.apps", err)
	}
	behind := set.Status.ObservedGeneration < set.Generation
	cause, err := s.ask(ctx, &workload{own: Cause{Object: key}, uid: set.UID, selector: set.Spec.Selector, template: &set.Spec.Template, behind: behind})
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

// replicas returns how many pods are wanted: one, if nothing is said.
func replicas(wanted *int32) int32 {
	if wanted == nil {
		return 1
	}
	return *wanted
}
