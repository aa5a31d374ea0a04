package inventory

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/apply"
)

// dependent is what a cache stores of an object: its state, and of its
// metadata what the cache itself needs.
type dependent struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	state apply.State
}

// DeepCopyObject returns a copy.
func (d *dependent) DeepCopyObject() runtime.Object {
	copied := *d
	d.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// compact is the transform of the caches: managed fields, labels and
// annotations are most of an object's metadata and go once they were read.
func compact(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &dependent{
		TypeMeta: m.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		},
		state: apply.StateOf(m.GroupVersionKind().GroupKind(), m),
	}, nil
}

// handler feeds the index from a cache.
func (x *Index) handler() cache.ResourceEventHandler {
	observe := func(object any) {
		if d, ok := object.(*dependent); ok {
			x.observe(d.state)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, object any) { observe(object) },
		DeleteFunc: func(object any) {
			unknown, missed := object.(cache.DeletedFinalStateUnknown)
			if missed {
				// A list did not hold it; the state is the last one seen.
				object = unknown.Obj
			}
			if d, ok := object.(*dependent); ok {
				x.gone(d.state, missed)
			}
		},
	}
}
