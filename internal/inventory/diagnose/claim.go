package diagnose

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// waitsFor are reasons of events that are no warnings and yet say what a claim
// waits for.
var waitsFor = []string{"FailedBinding", "WaitForFirstConsumer", "WaitForPodScheduled", "ExternalProvisioning"}

// claim answers for a PersistentVolumeClaim, which tells by events alone why it
// gets no volume.
func (s *search) claim(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	claim, err := s.client.CoreV1().PersistentVolumeClaims(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return s.unread(ctx, key, uid, "get persistentvolumeclaims", err)
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
		return s.warned(ctx, cause, claim.UID)
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
