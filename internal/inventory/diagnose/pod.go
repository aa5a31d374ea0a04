package diagnose

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// pod answers for a pod that was asked about itself.
func (s *search) pod(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	pod, err := s.client.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.unread(ctx, key, uid, "get pods", err)
	}
	if settled(pod) {
		return Cause{Object: key}, nil
	}
	return s.ofPod(ctx, pod)
}

// ofPod is what a pod that is not ready says, and the last warning about it.
func (s *search) ofPod(ctx context.Context, pod *corev1.Pod) (Cause, error) {
	s.private.keep(&pod.ObjectMeta, &pod.Spec)
	cause := Cause{Object: apply.Key{Kind: kindPod.Kind, Namespace: pod.Namespace, Name: pod.Name}}
	cause.Reason, cause.Message = state(pod)
	return s.warned(ctx, cause, pod.UID)
}

// podsOf returns the pods that an object controls, the oldest first.
func (s *search) podsOf(ctx context.Context, w *workload) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return nil, err
	}
	options := metav1.ListOptions{LabelSelector: selector.String(), Limit: most}
	list, err := s.client.CoreV1().Pods(w.own.Object.Namespace).List(ctx, options)
	if s.lacks("list pods", err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// Labels select the pods of others, too.
	mine := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !controls(w.uid, &p) })
	slices.SortStableFunc(mine, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return mine, nil
}

// culprit returns the pod that is not ready and has the lowest rank, the first
// of several.
func culprit(pods []corev1.Pod, rank func(*corev1.Pod) int) *corev1.Pod {
	var worst *corev1.Pod
	for i := range pods {
		if p := &pods[i]; !settled(p) && (worst == nil || rank(p) < rank(worst)) {
			worst = p
		}
	}
	return worst
}

// standing ranks the pods of those that replace pods: one that is over, or on
// its way out, has a successor that tells more.
func standing(p *corev1.Pod) int {
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

// tried ranks the pods of Jobs, where one that is over is what counts.
func tried(p *corev1.Pod) int {
	if p.Status.Phase == corev1.PodFailed {
		return 0
	}
	return standing(p)
}

// settled tells whether nothing is wrong with a pod: it is ready, or done. The
// conditions of one that failed may be from when it ran.
func settled(p *corev1.Pod) bool {
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return true
	case corev1.PodFailed:
		return false
	}
	ready := podCondition(p, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// controls tells whether an object is the controller of another.
func controls(uid types.UID, o metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(o)
	return controller != nil && controller.UID == uid
}
