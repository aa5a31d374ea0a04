package inventory

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/apply"
)

// dependent is what a cache stores of an object: its state, which the index
// holds, too. There are several of them for each release.
type dependent struct {
	state *apply.State
	// health is nil for kinds that have none.
	health *Health
}

// GetObjectMeta returns what the cache itself reads.
func (d dependent) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: d.state.Namespace, Name: d.state.Name, UID: d.state.UID, ResourceVersion: d.state.ResourceVersion,
	}
}

// compact is the transform of the caches: managed fields, labels, annotations,
// spec and status are most of an object and go once they were read.
func compact(object any) (any, error) {
	switch o := object.(type) {
	case *metav1.PartialObjectMetadata:
		return reduced(o.GroupVersionKind().GroupKind(), o, nil), nil
	case *unstructured.Unstructured:
		health := healthOf(o)
		if health == healthy {
			return reduced(o.GroupVersionKind().GroupKind(), o, &healthy), nil
		}
		return reduced(o.GroupVersionKind().GroupKind(), o, &health), nil
	default:
		return object, nil
	}
}

func reduced(gk schema.GroupKind, m metav1.Object, health *Health) dependent {
	state := apply.StateOf(gk, m)
	return dependent{state: &state, health: health}
}

// handler feeds the index from a cache.
func (x *Index) handler() cache.ResourceEventHandler {
	observe := func(object any) {
		if d, ok := object.(dependent); ok {
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
			if d, ok := object.(dependent); ok {
				x.gone(d.state, missed)
			}
		},
	}
}
