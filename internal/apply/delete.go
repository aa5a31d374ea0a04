package apply

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// DeleteUID deletes the object if it still has the given UID. Otherwise the object has been
// deleted already and another object has its name.
func (c Client) DeleteUID(ctx context.Context, o Object, uid types.UID, policy metav1.DeletionPropagation) error {
	return c.DeleteVersion(ctx, o, uid, nil, policy)
}

// DeleteVersion is DeleteUID. Given a resourceVersion, it returns a conflict if the object has
// changed since.
func (c Client) DeleteVersion(ctx context.Context, o Object, uid types.UID, version *string, policy metav1.DeletionPropagation) error {
	if planned, err := c.planned(ctx, Remove, o, nil); planned {
		return err
	}
	_, err := served(c, o, func(o Object) (any, error) {
		return nil, c.metadata(o).Delete(ctx, o.GetName(), metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: version},
			PropagationPolicy: &policy,
		})
	})
	if o.answerOf(err) == Conflict {
		// A precondition is not the only possible cause of a conflict.
		live, readErr := c.Get(ctx, o)
		if readErr == nil && (live == nil || live.GetUID() != uid) {
			return nil
		}
	}
	if err != nil && AnswerOf(err) != Gone {
		return fmt.Errorf("delete %s: %w", Describe(o), err)
	}
	return nil
}

// pollInterval is the interval between reads of an object that is being deleted.
const pollInterval = 200 * time.Millisecond

// WaitGone waits until the object no longer exists or the context ends. With a UID, it waits
// for no other object of that name.
func (c Client) WaitGone(ctx context.Context, o Object, uid types.UID) error {
	if c.Plan != nil {
		return nil
	}
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		live, err := c.Get(ctx, o)
		return err == nil && (live == nil || uid != "" && live.GetUID() != uid), err
	})
	if err != nil {
		return fmt.Errorf("wait for the deletion of %s: %w", Describe(o), err)
	}
	return nil
}
