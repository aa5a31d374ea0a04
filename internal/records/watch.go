package records

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
)

// Handler returns the handler that feeds the index from an informer on the
// metadata of release Secrets.
func (x *Index) Handler() cache.ResourceEventHandler {
	observe := func(obj any) {
		if m, ok := obj.(metav1.Object); ok {
			if r, ok := FromMeta(m); ok {
				x.observe(r)
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, obj any) { observe(obj) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if m, ok := obj.(metav1.Object); ok {
				if r, ok := FromMeta(m); ok {
					x.gone(r)
				}
			}
		},
	}
}

// Compact is the transform of that informer: it drops what FromMeta does not
// read, since the store keeps every object that it has seen.
func Compact(obj any) (any, error) {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	annotations := map[string]string{}
	for _, key := range []string{api.AnnotationOwner, AnnotationRelease, AnnotationInventory, AnnotationTested} {
		if value, ok := m.Annotations[key]; ok {
			annotations[key] = value
		}
	}
	var references []metav1.OwnerReference
	if controller := metav1.GetControllerOfNoCopy(m); controller != nil {
		references = []metav1.OwnerReference{{UID: controller.UID, Controller: new(true)}}
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta: m.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         m.Namespace,
			Name:              m.Name,
			UID:               m.UID,
			ResourceVersion:   m.ResourceVersion,
			CreationTimestamp: m.CreationTimestamp,
			Labels:            m.Labels,
			Annotations:       annotations,
			OwnerReferences:   references,
		},
	}, nil
}
