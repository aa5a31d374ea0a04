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
// API server closes a watch that is too slow, for example on a busy machine;
// watchAll resumes it immediately from the last event. An informer would resume
// after a delay, which would be part of the measurement.
func watchAll(ctx context.Context, all dynamic.NamespaceableResourceInterface, observe func(cr *unstructured.Unstructured, gone bool)) error {
	list, err := all.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		observe(&list.Items[i], false)
	}
	seconds := int64(watchLimit.Seconds())
	from := list.GetResourceVersion()
	for {
		events, err := all.Watch(ctx, metav1.ListOptions{ResourceVersion: from, TimeoutSeconds: &seconds})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the context has ended
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
			observe(cr, event.Type == watch.Deleted)
		}
	}
}
