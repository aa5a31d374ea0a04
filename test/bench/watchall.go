package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// watchLimit is longer than any run.
const watchLimit = 24 * time.Hour

// watchAll lists and watches all custom resources until the context ends. The
// API server ends a watch that does not keep up, as on a machine with much else
// to do; it goes on at once from where it was. An informer would wait a moment,
// and that moment would be measured.
func watchAll(ctx context.Context, client dynamic.Interface, see func(cr *unstructured.Unstructured, gone bool)) error {
	all := client.Resource(benches)
	list, err := all.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		see(&list.Items[i], false)
	}
	seconds := int64(watchLimit.Seconds())
	from := list.GetResourceVersion()
	for {
		events, err := all.Watch(ctx, metav1.ListOptions{ResourceVersion: from, TimeoutSeconds: &seconds})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was to end
		}
		if err != nil {
			return fmt.Errorf("watch custom resources: %w", err)
		}
		for event := range events.ResultChan() {
			cr, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Error {
				return fmt.Errorf("watch custom resources: %v", event.Object)
			}
			from = cr.GetResourceVersion()
			see(cr, event.Type == watch.Deleted)
		}
	}
}
