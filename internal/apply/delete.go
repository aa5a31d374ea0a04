package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Delete deletes the object unless it belongs to another owner. An object that
// is not there counts as deleted. The error is ErrForeign where the object is
// another's.
func (c Client) Delete(ctx context.Context, o Object, owner Owner, policy metav1.DeletionPropagation) error {
	live, err := c.Get(ctx, o)
	if err != nil || live == nil {
		return err
	}
	if err := Belongs(live, owner); err != nil {
		return fmt.Errorf("delete %s: %w", Describe(o.Unstructured), err)
	}
	return c.DeleteUID(ctx, o, live.GetUID(), policy)
}

// DeleteUID deletes the object if it still has that UID. One that has not is
// gone, and another has taken its name.
func (c Client) DeleteUID(ctx context.Context, o Object, uid types.UID, policy metav1.DeletionPropagation) error {
	err := c.metadata(o).Delete(ctx, o.GetName(), metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &policy,
	})
	if apierrors.IsConflict(err) {
		// The precondition is one cause of it, and not the only one.
		live, readErr := c.Get(ctx, o)
		if readErr == nil && (live == nil || live.GetUID() != uid) {
			return nil
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s: %w", Describe(o.Unstructured), err)
	}
	return nil
}

// pollInterval is how often a deletion that was asked for is looked at.
const pollInterval = 200 * time.Millisecond

// WaitGone waits until the object is gone or the context ends.
func (c Client) WaitGone(ctx context.Context, o Object) error {
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		live, err := c.Get(ctx, o)
		return live == nil && err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait until %s is gone: %w", Describe(o.Unstructured), err)
	}
	return nil
}
