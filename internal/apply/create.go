package apply

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
)

// Create creates the object, and fails if it exists. Hooks are created rather than applied,
// so that an object of an earlier run does not count as the new hook.
//
// It repeats the request while the API server is overloaded or unreachable. The annotation
// api.AnnotationApplied shows whether an earlier request was processed. A hook, which has no
// digest, gets a random value.
func (c Client) Create(ctx context.Context, o Object) (*unstructured.Unstructured, error) {
	o, _ = o.inServedVersion(nil)
	if planned, err := c.planned(ctx, Create, o, o.Unstructured); planned {
		return o.Unstructured, err
	}
	if o.GetAnnotations()[api.AnnotationApplied] == "" {
		o.Unstructured = o.DeepCopy()
		annotate(o.Unstructured, api.AnnotationApplied, rand.Text())
	}
	var until time.Time
	limit := repeatsFor
	for delay := MinPause; ; delay = min(2*delay, MaxPause) {
		created, err := c.createOnce(ctx, o)
		if err == nil {
			return created, nil
		}
		if AnswerOf(err) == Unavailable && !apierrors.IsTooManyRequests(err) {
			limit = repeatsForPart
		}
		if until.IsZero() {
			until = time.Now().Add(limit)
		}
		if !Retryable(err) || time.Now().Add(delay).After(until) || Pause(ctx, delay) != nil {
			return nil, fmt.Errorf("create %s: %w", Describe(o), err)
		}
	}
}

// createOnce creates the object, or returns the one that an earlier request has created.
func (c Client) createOnce(ctx context.Context, o Object) (*unstructured.Unstructured, error) {
	created, err := c.dynamic(o).Create(ctx, o.Unstructured, metav1.CreateOptions{FieldManager: api.FieldManager})
	if Retryable(err) || o.answerOf(err) == Conflict {
		live, unread := c.Read(ctx, o)
		if unread == nil && live != nil && live.GetAnnotations()[api.AnnotationApplied] == o.GetAnnotations()[api.AnnotationApplied] {
			return live, nil
		}
	}
	return created, err
}
