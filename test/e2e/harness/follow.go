package harness

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Follow returns the objects of a client, and watches their changes. Unlike a single watch, which
// ends with its connection, it continues until the end of the test or until it is stopped. Of the
// options, it uses the selectors.
func (e *Env) Follow(client dynamic.ResourceInterface, options metav1.ListOptions) ([]unstructured.Unstructured, watch.Interface) {
	e.t.Helper()
	ctx := e.t.Context()
	list, err := client.List(ctx, options)
	if err != nil {
		e.t.Fatal(err)
	}
	changes, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.FieldSelector = options.LabelSelector, options.FieldSelector
			return client.Watch(ctx, o)
		},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return list.Items, changes
}
