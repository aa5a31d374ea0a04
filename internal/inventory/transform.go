package inventory

import (
	"fmt"
	"strings"

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

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory/health"
)

// cachedObject is the part of an object that a cache stores. The state is shared with the
// index, since several objects of each release are cached.
type cachedObject struct {
	state *apply.State
	// health is nil for kinds that have no health.
	health *Health
	// expiry is nil except for Jobs with ttlSecondsAfterFinished.
	expiry *expiry
}

// GetObjectMeta returns the metadata that the cache itself needs.
func (d cachedObject) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: d.state.Namespace, Name: d.state.Name, UID: d.state.UID, ResourceVersion: d.state.ResourceVersion,
	}
}

// HealthConfig is the configuration on which the health of objects depends. The zero value
// is valid.
type HealthConfig struct {
	// Rules are the health rules of watches entries.
	Rules *RuleSet
	// NoStatus reports whether the API server serves no status for a kind. It is nil if
	// this is not known.
	NoStatus func(schema.GroupVersionKind) bool
}

// watchedWhole reports whether the watch of a kind needs whole objects to compute their
// health.
func (j HealthConfig) watchedWhole(gk schema.GroupKind) bool {
	return j.hasRule(gk) || !health.AlwaysReady(gk)
}

// hasRule reports whether a watches entry has a health rule for objects of a kind.
func (j HealthConfig) hasRule(gk schema.GroupKind) bool { return j.Rules.has(gk) }

// healthOf returns the health of an object. It recovers from panics, because an object
// may have any content and a panic here would end the process.
func (j HealthConfig) healthOf(o *unstructured.Unstructured) (found *Health) {
	defer func() {
		if p := recover(); p != nil {
			found = &Health{OpenEnded: true, Reason: "Unreadable", Message: fmt.Sprintf("cannot read the status: internal error: %v", p)}
		}
	}()
	gvk := o.GroupVersionKind()
	kind := health.Kind{NoStatus: j.NoStatus}
	if !j.Rules.empty() {
		owner, _, _ := strings.Cut(o.GetAnnotations()[api.AnnotationOwner], "/")
		kind.Rule = j.Rules.of(schema.ParseGroupKind(owner))[gvk.GroupKind()]
	}
	return intern(health.Evaluate(o, kind))
}

// transform reduces objects to what the index needs before a cache stores them. Managed
// fields, labels, annotations, spec and status make up most of the size of an object.
func (j HealthConfig) transform(object any) (any, error) {
	switch o := object.(type) {
	case *metav1.PartialObjectMetadata:
		return newCachedObject(o.GroupVersionKind().GroupKind(), o, nil), nil
	case *unstructured.Unstructured:
		return newCachedObject(o.GroupVersionKind().GroupKind(), o, j.healthOf(o)), nil
	case client.Object:
		return j.transformTyped(o)
	default:
		return object, nil
	}
}

// transformTyped reduces an object of a built-in kind. It converts the object to
// unstructured content first, because the health rules read fields by name.
func (j HealthConfig) transformTyped(o client.Object) (any, error) {
	gvk, err := apiutil.GVKForObject(o, watchedTypes)
	if err != nil {
		return nil, err
	}
	known := newCachedObject(gvk.GroupKind(), o, nil)
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
	known.health = j.healthOf(whole)
	return known, nil
}

// trim removes parts of an object on which its health does not depend.
func trim(o client.Object) {
	o.SetManagedFields(nil)
	o.SetLabels(nil)
	o.SetOwnerReferences(nil)
	if _, isClaim := o.(*corev1.PersistentVolumeClaim); !isClaim {
		o.SetAnnotations(nil)
	}
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

// intern returns a shared copy of the most common results.
func intern(found Health) *Health {
	for _, common := range []*Health{&healthy, &healthyReported, &silent} {
		if found == *common {
			return common
		}
	}
	return &found
}

func newCachedObject(gk schema.GroupKind, m metav1.Object, known *Health) cachedObject {
	state := apply.StateOf(gk, m)
	return cachedObject{state: &state, health: known}
}

// handler returns the event handler that updates the index from a cache.
func (x *Index) handler() cache.ResourceEventHandler {
	observe := func(object any) {
		if d, ok := object.(cachedObject); ok {
			x.observeJob(d.state, d.expiry, false)
			x.observe(d.state, d.health)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, object any) { observe(object) },
		DeleteFunc: func(object any) {
			unknown, missed := object.(cache.DeletedFinalStateUnknown)
			if missed {
				// The deletion was missed, and the state is the last one observed.
				object = unknown.Obj
			}
			if d, ok := object.(cachedObject); ok {
				x.observeJob(d.state, d.expiry, missed)
				x.observeDeletion(d.state, missed)
			}
		},
	}
}
