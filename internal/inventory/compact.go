package inventory

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/chartwright/chartwright/internal/apply"
)

// dependent is what a cache stores of an object: its state, which the index
// holds, too. There are several of them for each release.
type dependent struct {
	state *apply.State
	// health is nil for kinds that have none.
	health *Health
	// expiry is nil for all but Jobs with ttlSecondsAfterFinished.
	expiry *expiry
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
		return reduced(o.GroupVersionKind().GroupKind(), o, shared(readHealth(healthOf, o))), nil
	case client.Object:
		return typed(o)
	default:
		return object, nil
	}
}

// typed reduces an object of one of Kubernetes' own kinds, which is watched by
// its type. Whoever reads health reads fields by their names.
func typed(o client.Object) (any, error) {
	gvk, err := apiutil.GVKForObject(o, watchedTypes)
	if err != nil {
		return nil, err
	}
	known := reduced(gvk.GroupKind(), o, nil)
	if job, ok := o.(*batchv1.Job); ok {
		known.expiry = expiryOf(job)
	}
	trim(o)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", known.state.Key, err)
	}
	whole := &unstructured.Unstructured{Object: content}
	whole.SetGroupVersionKind(gvk)
	known.health = shared(readHealth(healthOf, whole))
	return known, nil
}

// trim takes away what is most of an object and tells nothing of its health.
func trim(o client.Object) {
	o.SetManagedFields(nil)
	o.SetLabels(nil)
	o.SetAnnotations(nil)
	o.SetOwnerReferences(nil)
	switch o := o.(type) {
	case *corev1.Service:
		o.Spec = corev1.ServiceSpec{Type: o.Spec.Type, ClusterIP: o.Spec.ClusterIP}
	case *appsv1.Deployment:
		o.Spec.Template = corev1.PodTemplateSpec{}
	case *appsv1.StatefulSet:
		o.Spec.Template = corev1.PodTemplateSpec{}
	case *appsv1.DaemonSet:
		o.Spec.Template = corev1.PodTemplateSpec{}
	case *appsv1.ReplicaSet:
		o.Spec.Template = corev1.PodTemplateSpec{}
	case *batchv1.Job:
		o.Spec.Template = corev1.PodTemplateSpec{}
	}
}

// readHealth reads the health of an object. An object may have any shape, and a
// panic here would end the process.
func readHealth(read func(*unstructured.Unstructured) Health, o *unstructured.Unstructured) (health Health) {
	defer func() {
		if r := recover(); r != nil {
			health = Health{Reason: "Unreadable", Message: fmt.Sprintf("its status cannot be read: internal error: %v", r)}
		}
	}()
	return read(o)
}

// shared spares a copy of what most have.
func shared(health Health) *Health {
	if health == healthy {
		return &healthy
	}
	return &health
}

func reduced(gk schema.GroupKind, m metav1.Object, health *Health) dependent {
	state := apply.StateOf(gk, m)
	return dependent{state: &state, health: health}
}

// handler feeds the index from a cache.
func (x *Index) handler() cache.ResourceEventHandler {
	observe := func(object any) {
		if d, ok := object.(dependent); ok {
			x.expires(d.state, d.expiry, false)
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
				x.expires(d.state, d.expiry, missed)
				x.gone(d.state, missed)
			}
		},
	}
}
