package apply

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// ErrDeletedWhileRunning marks a hook that somebody deleted before it ended.
var ErrDeletedWhileRunning = errors.New("it was deleted while it ran")

// Watch calls done with every state of a created object, beginning with the
// one given, until done returns true or an error, or the context ends.
func (c Client) Watch(ctx context.Context, o Object, done func(*unstructured.Unstructured) (bool, error)) error {
	if finished, err := done(o.Unstructured); finished || err != nil {
		return err
	}
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, o.GetName()).String()
	watcher := &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return c.dynamic(o).Watch(ctx, options)
		},
	}
	_, err := toolswatch.Until(ctx, o.GetResourceVersion(), watcher, func(event watch.Event) (bool, error) {
		switch event.Type {
		case watch.Deleted:
			return false, ErrDeletedWhileRunning
		case watch.Error:
			return false, fmt.Errorf("watch: %v", event.Object)
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return false, nil
		}
		return done(object)
	})
	if err != nil && ctx.Err() != nil {
		// Until calls any end a timeout.
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("wait for %s: %w", Describe(o.Unstructured), err)
	}
	return nil
}

// Until reads the object and calls done with every state of it, as Watch does.
func (c Client) Until(ctx context.Context, o Object, done func(*unstructured.Unstructured) (bool, error)) error {
	live, err := c.Read(ctx, o)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("wait for %s: it is gone", Describe(o.Unstructured))
	}
	return c.Watch(ctx, Object{Unstructured: live, Mapping: o.Mapping}, done)
}
