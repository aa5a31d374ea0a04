package diagnose

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/chartwright/chartwright/internal/apply"
)

// most is how many objects one request may ask for. Who has more pods than that
// gets an answer from the first of them.
const most = 500

// search is one question, and what came up on the way to its answer.
type search struct {
	client kubernetes.Interface
	// lacked are the rights that were missing, as "list pods".
	lacked []string
	// private is what must not be told.
	private private
}

// lacks tells whether a read failed for want of a right, and notes which.
func (s *search) lacks(right string, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	if !slices.Contains(s.lacked, right) {
		s.lacked = append(s.lacked, right)
	}
	return true
}

// unread answers for an object that could not be read.
func (s *search) unread(ctx context.Context, key apply.Key, uid types.UID, right string, err error) (Cause, error) {
	switch {
	case apierrors.IsNotFound(err):
		return Cause{Object: key, Reason: "NotFound", Message: "it is gone"}, nil
	case s.lacks(right, err):
		return s.warned(ctx, Cause{Object: key}, uid)
	}
	return Cause{Object: key}, err
}
