package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// ErrDeleted reports that an object was deleted while Watch waited for it.
var ErrDeleted = errors.New("deleted while running")

// errInterrupted reports a watch that cannot continue from its resource version. An API
// server that has restarted does not know older versions, and rejects all requests until it
// has loaded its roles. Neither says anything about the object.
var errInterrupted = errors.New("watch interrupted")

// Watch calls done with every state of an object, beginning with the given one, until done
// returns true or an error, or the context ends. If the API server restarts, states may be
// missed, but never the newest one.
func (c Client) Watch(ctx context.Context, o Object, done func(*unstructured.Unstructured) (bool, error)) error {
	for {
		if finished, err := done(o.Unstructured); finished || err != nil {
			return err
		}
		err := c.watchOnce(ctx, o, done)
		if errors.Is(err, errInterrupted) {
			o, err = c.reread(ctx, o)
			if err == nil {
				continue
			}
		}
		if err != nil && ctx.Err() != nil {
			// Until returns the same error for every end of the context.
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("wait for %s: %w", Describe(o), err)
		}
		return nil
	}
}

// watchOnce calls done with the states that follow the given one. The error is errInterrupted
// if some of them cannot be received.
func (c Client) watchOnce(ctx context.Context, o Object, done func(*unstructured.Unstructured) (bool, error)) error {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, o.GetName()).String()
	began := false
	watcher := &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			events, err := c.dynamic(o).Watch(ctx, options)
			if isInterruption(err, began) {
				// Otherwise Until repeats the same request again and again.
				failing := watch.NewFakeWithChanSize(1, false)
				failing.Error(&apierrors.NewResourceExpired("watch interrupted").ErrStatus)
				return failing, nil
			}
			began = began || err == nil
			return events, err
		},
	}
	_, err := toolswatch.Until(ctx, o.GetResourceVersion(), watcher, func(event watch.Event) (bool, error) {
		switch event.Type {
		case watch.Deleted:
			return false, ErrDeleted
		case watch.Error:
			err := apierrors.FromObject(event.Object)
			if isInterruption(err, false) {
				return false, errInterrupted
			}
			return false, fmt.Errorf("watch: %w", err)
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return false, nil
		}
		return done(object)
	})
	return err
}

// isInterruption reports whether an error of a watch is caused by a restart of the API server.
// If the watch had begun before, a missing permission is temporary.
func isInterruption(err error, began bool) bool {
	return AnswerOf(err) == Expired ||
		began && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err))
}

// reread reads an object whose watch was interrupted, and retries until that succeeds.
func (c Client) reread(ctx context.Context, o Object) (Object, error) {
	var live *unstructured.Unstructured
	err := wait.PollUntilContextCancel(ctx, pollInterval, false, func(ctx context.Context) (bool, error) {
		var err error
		live, err = c.Read(ctx, o)
		// The API server may still be starting, and the context limits the wait.
		return err == nil, nil
	})
	if err != nil {
		return o, err
	}
	if live == nil || live.GetUID() != o.GetUID() {
		return o, ErrDeleted
	}
	o.Unstructured = live
	return o, nil
}

// Until reads the object and calls done with every state of it, like Watch. A planning
// client waits for nothing.
func (c Client) Until(ctx context.Context, o Object, done func(*unstructured.Unstructured) (bool, error)) error {
	if c.Plan != nil {
		return nil
	}
	live, err := c.Read(ctx, o)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("wait for %s: object not found", Describe(o))
	}
	return c.Watch(ctx, Object{Unstructured: live, Mapping: o.Mapping}, done)
}
