package release

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Handler returns the handler that feeds the index from an informer on the
// metadata of release Secrets.
func (x *Index) Handler() cache.ResourceEventHandler {
	observe := func(object any) {
		if r := read(object); r != nil {
			x.observe(r)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, object any) { observe(object) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if r := read(object); r != nil {
				x.gone(r)
			}
		},
	}
}

// held is what the informer's store holds: the record that the Index holds, too.
type held struct{ record *Record }

// GetObjectMeta returns what the store itself reads.
func (h held) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: h.record.Namespace, Name: h.record.Secret, UID: h.record.UID, ResourceVersion: h.record.ResourceVersion,
	}
}

// Compact is the transform of that informer: the metadata of a Secret is several
// times the record that is read from it. What is no record is left as it is.
func Compact(object any) (any, error) {
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		if r, ok := FromMeta(m); ok {
			return held{&r}, nil
		}
	}
	return object, nil
}

// read returns the record that an object of the store, or a Secret's metadata,
// is; nil where it is none.
func read(object any) *Record {
	switch o := object.(type) {
	case held:
		return o.record
	case metav1.Object:
		if r, ok := FromMeta(o); ok {
			return &r
		}
	}
	return nil
}
