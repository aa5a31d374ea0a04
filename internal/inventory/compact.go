package inventory

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	// health is nil for kinds that have none.
	health *Health
}

// DeepCopyObject returns a copy.
func (d *dependent) DeepCopyObject() runtime.Object {
	copied := *d
	d.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// compact is the transform of the caches: managed fields, labels, annotations,
// spec and status are most of an object and go once they were read.
func compact(object any) (any, error) {
	switch o := object.(type) {
	case *metav1.PartialObjectMetadata:
		return reduced(o.TypeMeta, o, nil), nil
	case *unstructured.Unstructured:
		health := healthOf(o)
		kind := metav1.TypeMeta{APIVersion: o.GetAPIVersion(), Kind: o.GetKind()}
		return reduced(kind, o, &health), nil
	default:
		return object, nil
	}
}

func reduced(kind metav1.TypeMeta, m metav1.Object, health *Health) *dependent {
	return &dependent{
		TypeMeta: kind,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(),
		},
		state:  apply.StateOf(kind.GroupVersionKind().GroupKind(), m),
		health: health,
	}
}

// handler feeds the index from a cache.
func (x *Index) handler() cache.ResourceEventHandler {
	observe := func(object any) {
		if d, ok := object.(*dependent); ok {
			x.observe(d.state, d.health)
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
