package observed

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/inputs"
)

// Watch identifies the objects of an informer. Custom resources with equal Watches share an
// informer.
type Watch struct {
	schema.GroupVersionKind
	// fixed are the labels that all objects have, and differing the label keys whose values
	// select the objects of a custom resource. Both are parts of a label selector, in
	// order.
	fixed, differing string
}

// NewWatch returns the Watch of a kind's objects with fixed label values, and with label
// keys of any value.
func NewWatch(gvk schema.GroupVersionKind, fixed map[string]string, differing []string) Watch {
	equal := make([]string, 0, len(fixed))
	for _, key := range slices.Sorted(maps.Keys(fixed)) {
		equal = append(equal, key+"="+fixed[key])
	}
	return Watch{
		GroupVersionKind: gvk,
		fixed:            strings.Join(equal, ","),
		differing:        strings.Join(slices.Sorted(slices.Values(differing)), ","),
	}
}

// Selector returns the label selector of the informer.
func (w Watch) Selector() (labels.Selector, error) {
	return labels.Parse(strings.Trim(w.fixed+","+w.differing, ","))
}

// Selection selects the objects of a Watch that one custom resource uses.
type Selection struct {
	Watch
	// Name is the name of the objects in expressions.
	Name      string
	Namespace string
	// Labels are the values of the labels that differ between custom resources.
	Labels map[string]string
}

// bucket holds the objects that have the same namespace and the same values of the
// differing labels. A label value cannot contain a comma.
type bucket struct {
	watch             Watch
	namespace, values string
}

func (w Watch) bucket(namespace string, values map[string]string) bucket {
	if w.differing == "" {
		return bucket{watch: w, namespace: namespace}
	}
	keys := strings.Split(w.differing, ",")
	found := make([]string, len(keys))
	for i, key := range keys {
		found[i] = values[key]
	}
	return bucket{watch: w, namespace: namespace, values: strings.Join(found, ",")}
}

// Handler returns the event handler of the informer that feeds the Store.
func (s *Store) Handler(w Watch) cache.ResourceEventHandler {
	return inputs.EventHandler(s.users,
		func(o *unstructured.Unstructured) []types.UID { return s.observe(w, o) },
		func(o *unstructured.Unstructured) []types.UID { return s.remove(nameOf(w, o)) },
	)
}

func nameOf(w Watch, o *unstructured.Unstructured) object {
	return object{watch: w, NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// observe adds or updates an object. It returns the users of the bucket that the object was
// in and of its new bucket.
func (s *Store) observe(w Watch, o *unstructured.Unstructured) []types.UID {
	name := nameOf(w, o)
	to := w.bucket(o.GetNamespace(), o.GetLabels())
	from, known := s.at[name]
	if known && from == to && equalContent(s.objects[to][name.Name].Object, o.Object) {
		return nil
	}
	var before []types.UID
	if known && from != to {
		before = s.remove(name)
	}
	if s.objects[to] == nil {
		s.objects[to] = map[string]*unstructured.Unstructured{}
	}
	s.objects[to][name.Name] = o
	s.at[name] = to
	return append(before, s.users.Users(to)...)
}

// remove removes an object and returns the users of its bucket.
func (s *Store) remove(name object) []types.UID {
	from, known := s.at[name]
	if !known {
		return nil
	}
	delete(s.at, name)
	delete(s.objects[from], name.Name)
	if len(s.objects[from]) == 0 {
		delete(s.objects, from)
	}
	return s.users.Users(from)
}

// equalContent reports whether two states of an object differ in nothing but the
// resourceVersion, as after an update without a change.
func equalContent(a, b map[string]any) bool {
	return reflect.DeepEqual(withoutVersion(a), withoutVersion(b))
}

func withoutVersion(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	object, metadata = maps.Clone(object), maps.Clone(metadata)
	delete(metadata, "resourceVersion")
	object["metadata"] = metadata
	return object
}

// Compact is the transform of the informers. It removes managedFields and the annotation of
// kubectl apply, which can be half of an object and which expressions do not need.
func Compact(obj any) (any, error) {
	o, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	return o, nil
}
