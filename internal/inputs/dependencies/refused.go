package dependencies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inputs"
)

// refused is what remains of an object that exceeds the budget. Its state and its labels are
// unknown, so that it is never ready, and every selector matches it.
type refused struct {
	metav1.PartialObjectMetadata
	message string
}

// smallMetadata is the largest size of labels without a charge. The identity of each object is
// kept in any case, and ordinary labels take little more.
const smallMetadata = 2 << 10

// Transform is the transform of the informer of a kind that is not served. It removes what
// readiness does not depend on, and the content of objects that exceed the budget.
func (f *Feed) Transform(obj any) (any, error) {
	var identity metav1.PartialObjectMetadata
	var size int
	switch o := obj.(type) {
	case *metav1.PartialObjectMetadata:
		kept := api.Identity(o)
		kept.Labels, kept.Generation, kept.DeletionTimestamp = o.Labels, o.Generation, o.DeletionTimestamp
		identity, obj = *api.Identity(o), kept
		for key, value := range o.Labels {
			size += 64 + len(key) + len(value)
		}
		if size <= smallMetadata {
			size = 0
		}
	case *unstructured.Unstructured:
		unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
		identity.Namespace, identity.Name, identity.UID, identity.ResourceVersion = o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion()
		size = inputs.Weigh(o.Object, f.store.limits.Object)
	default:
		return obj, nil
	}
	item := inputs.Item{Of: f, NamespacedName: types.NamespacedName{Namespace: identity.Namespace, Name: identity.Name}}
	if why := f.store.budget.Charge(item, identity.UID, size); why.Message != "" {
		message := fmt.Sprintf("the operator does not read it: %s", why.Message)
		if !why.Permanent {
			// The informer delivers the content with the next change only.
			message += ", and then set an annotation on this object"
		}
		return &refused{identity, message}, nil
	}
	return obj, nil
}
