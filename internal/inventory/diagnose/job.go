package diagnose

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// job answers for a Job: that it failed, and what its last pod says of that.
func (s *search) job(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	job, err := s.client.BatchV1().Jobs(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.unread(ctx, key, uid, "get jobs.batch", err)
	}
	s.private.keep(&job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec)
	own := Cause{Object: key}
	own.Reason, own.Message = failure(job)
	pods, err := s.podsOf(ctx, &workload{own: own, uid: job.UID, selector: job.Spec.Selector})
	if err != nil {
		return own, err
	}
	// Each try has a pod of its own.
	slices.Reverse(pods)
	last := culprit(pods, tried)
	if last == nil {
		return s.warned(ctx, own, job.UID)
	}
	cause, err := s.ofPod(ctx, last)
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
