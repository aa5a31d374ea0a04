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

// ErrDeleted marks a hook that somebody deleted before it ended.
var ErrDeleted = errors.New("it was deleted while it ran")

// errInterrupted marks a watch that cannot go on from where it was. An API server that
// was restarted does not know what happened before, and refuses everybody until
// it has read its roles. Neither says anything of the object.
var errInterrupted = errors.New("the watch was cut short")

// Watch calls done with every state of a created object, beginning with the
// one given, until done returns true or an error, or the context ends. Where the
// API server was restarted, states may be missed, and the newest never is.
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
			// Until calls any end a timeout.
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("wait for %s: %w", Describe(o), err)
		}
		return nil
	}
}

// watchOnce calls done with the states after the one given. The error is errInterrupted
// where some of them cannot be had.
func (c Client) watchOnce(ctx context.Context, o Object, done func(*unstructured.Unstructured) (bool, error)) error {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, o.GetName()).String()
	began := false
	watcher := &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			events, err := c.dynamic(o).Watch(ctx, options)
			if isInterruption(err, began) {
				// Until would send the same request again and again.
				failing := watch.NewFakeWithChanSize(1, false)
				failing.Error(&apierrors.NewResourceExpired("the watch was cut short").ErrStatus)
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

// isInterruption reports whether an error of a watch comes of a restart of the API server.
// Who was let watch before has the right to, unless he is refused once more.
func isInterruption(err error, began bool) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		began && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err))
}

// reread reads an object whose watch was cut short, as soon as that can be done.
func (c Client) reread(ctx context.Context, o Object) (Object, error) {
	var live *unstructured.Unstructured
	err := wait.PollUntilContextCancel(ctx, pollInterval, false, func(ctx context.Context) (bool, error) {
		var err error
		live, err = c.Read(ctx, o)
		// The API server may still be on its way, and the context has an end.
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

// Until reads the object and calls done with every state of it, as Watch does.
func (c Client) Until(ctx context.Context, o Object, done func(*unstructured.Unstructured) (bool, error)) error {
	live, err := c.Read(ctx, o)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("wait for %s: it is gone", Describe(o))
	}
	return c.Watch(ctx, Object{Unstructured: live, Mapping: o.Mapping}, done)
}
