package main

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// repairCommand returns the command line of the floor that corrects drift.
func repairCommand() (string, error) {
	command, err := floorCommand()
	return command + " --repair", err
}

// repairer watches the metadata of the floor's objects. It applies an object
// again if the object was deleted or if the floor no longer manages the same
// fields. It reports nothing.
type repairer struct {
	*floor
	metadata metadata.Interface

	mu  sync.Mutex
	crs map[name]*unstructured.Unstructured
	// held are the fields of each object that the floor managed at first.
	held map[object]string
}

func (r *repairer) run(ctx context.Context) error {
	if err := r.watch(ctx); err != nil {
		return err
	}
	return watchAll(ctx, r.client.Resource(benches), func(cr *unstructured.Unstructured, gone bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if about := (name{cr.GetNamespace(), cr.GetName()}); gone {
			delete(r.crs, about)
		} else {
			r.crs[about] = cr
		}
	})
}

// watch starts to watch the objects.
func (r *repairer) watch(ctx context.Context) error {
	factory := metadatainformer.NewSharedInformerFactory(r.metadata, 0)
	for _, t := range r.templates {
		_, err := factory.ForResource(t.resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { r.reconcile(ctx, t, o, false) },
			UpdateFunc: func(_, o any) { r.reconcile(ctx, t, o, false) },
			DeleteFunc: func(o any) { r.reconcile(ctx, t, o, true) },
		})
		if err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	return nil
}

// observe starts a correction if necessary.
func (r *repairer) reconcile(ctx context.Context, t template, seen any, gone bool) {
	live, ok := seen.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	of := object{t.resource.Group, t.resource.Resource, live.Namespace, live.Name}
	fields := heldFields(live)
	r.mu.Lock()
	defer r.mu.Unlock()
	first, known := r.held[of]
	if !known && fields != "" && !gone {
		r.held[of] = fields
	}
	if !known || !gone && fields == first {
		return
	}
	cr := r.crs[name{live.Namespace, live.Name}]
	if cr == nil || cr.GetDeletionTimestamp() != nil {
		return
	}
	go func() {
		r.slots <- struct{}{}
		defer func() { <-r.slots }()
		if err := r.apply(ctx, t, cr); err != nil && ctx.Err() == nil {
			fmt.Fprintf(r.out, "%s %s/%s: %v\n", t.resource.Resource, live.Namespace, live.Name, err) //nolint:errcheck // there is no other output
		}
	}()
}

// heldFields returns the fields that the floor manages, or "".
func heldFields(live metav1.Object) string {
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == floorManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			return string(entry.FieldsV1.GetRawBytes())
		}
	}
	return ""
}
