package diagnose

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// revision is the annotation by which the ReplicaSets of a Deployment are
// numbered.
const revision = "deployment.kubernetes.io/revision"

func (s *search) deployment(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	d, err := s.client.AppsV1().Deployments(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.unread(ctx, key, uid, "get deployments.apps", err)
	}
	s.private.keep(&d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec)
	own := Cause{Object: key}
	own.Reason, own.Message = rollout(d)
	own = counted(own, d.Status.AvailableReplicas, d.Status.UpdatedReplicas, replicas(d.Spec.Replicas))
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
			if cause, err := s.ask(ctx, replicaSet(set)); err != nil || cause.Known() {
				return cause, err
			}
		}
	}
	return s.warned(ctx, own, d.UID)
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
	options := metav1.ListOptions{LabelSelector: selector.String(), Limit: most}
	list, err := s.client.AppsV1().ReplicaSets(d.Namespace).List(ctx, options)
	if s.lacks("list replicasets.apps", err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
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
	n, err := strconv.ParseInt(set.Annotations[revision], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
