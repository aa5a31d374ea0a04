package helm

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// isHook reports whether an object was built from a hook.
func isHook(info *resource.Info) bool { return info.Source == engine.HookSource }

// waitForHook waits until a Job is complete or a Pod succeeded. Hooks of other kinds
// are complete when they are created.
func (k *kubeClient) waitForHook(ctx context.Context, info *resource.Info, timeout time.Duration) error {
	var done func(*unstructured.Unstructured) (bool, error)
	switch info.Mapping.GroupVersionKind.GroupKind() {
	case batchv1.SchemeGroupVersion.WithKind("Job").GroupKind():
		done = jobDone
	case corev1.SchemeGroupVersion.WithKind("Pod").GroupKind():
		done = podDone
	default:
		return nil
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ended := k.Notifier.HookStarted(HookWait{Hook: apply.KeyOf(object(info)), UID: object(info).GetUID(), End: end})
	err := k.objects.Watch(ctx, object(info), done)
	// For an interruption, the cause is known.
	why := ended(err != nil && k.ctx.Err() == nil && !errors.Is(err, ErrInterrupted))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrInterrupted):
		// The container could start later, during the next revision. After a foreground
		// deletion, the name of the hook is free only when its pods no longer exist.
		if failed := k.objects.DeleteUID(k.ctx, object(info), object(info).GetUID(), metav1.DeletePropagationForeground); failed != nil {
			return errors.Join(err, fmt.Errorf("remove the interrupted hook: %w", failed))
		}
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("hook %s did not end within %s", apply.Describe(object(info).Unstructured), timeout)
	}
	if why != "" {
		err = fmt.Errorf("%w; %s", err, why)
	}
	return err
}

func jobDone(object *unstructured.Unstructured) (bool, error) {
	var job batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job); err != nil {
		return false, err
	}
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			return true, nil
		case batchv1.JobFailed:
			return true, fmt.Errorf("job failed: %s: %s", c.Reason, c.Message)
		}
	}
	return false, nil
}

func podDone(object *unstructured.Unstructured) (bool, error) {
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
		return false, err
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return true, nil
	case corev1.PodFailed:
		return true, fmt.Errorf("pod failed: %s: %s", pod.Status.Reason, pod.Status.Message)
	}
	return false, nil
}
