package observed

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Handler returns the handler that feeds the store from an informer.
func (s *Store) Handler(w Watch) cache.ResourceEventHandler {
	observe := func(obj any) {
		if o, ok := obj.(*unstructured.Unstructured); ok {
			s.tell(func() []types.UID { return s.observe(w, o) })
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, obj any) { observe(obj) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if o, ok := obj.(*unstructured.Unstructured); ok {
				s.tell(func() []types.UID { return s.gone(nameOf(w, o)) })
			}
		},
	}
}

func nameOf(w Watch, o *unstructured.Unstructured) object {
	return object{watch: w, NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// observe puts an object where its labels lead to, and returns who saw it before
// or sees it now.
func (s *Store) observe(w Watch, o *unstructured.Unstructured) []types.UID {
	name := nameOf(w, o)
	to := w.place(o.GetNamespace(), o.GetLabels())
	from, known := s.at[name]
	if known && from == to && same(s.objects[to][name.Name].Object, o.Object) {
		return nil
	}
	var before []types.UID
	if known && from != to {
		before = s.gone(name)
	}
	if s.objects[to] == nil {
		s.objects[to] = map[string]*unstructured.Unstructured{}
	}
	s.objects[to][name.Name] = o
	s.at[name] = to
	return append(before, s.users.Users(to)...)
}

// gone removes an object and returns who saw it.
func (s *Store) gone(name object) []types.UID {
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

// same tells whether two states of an object differ in nothing but that
// somebody wrote it, as when a controller repeats itself.
func same(a, b map[string]any) bool {
	return len(a) == len(b) && equal(a, b, func(key string, a, b any) bool {
		before, isMap := a.(map[string]any)
		after, areMaps := b.(map[string]any)
		if key != "metadata" || !isMap || !areMaps || len(before) != len(after) {
			return reflect.DeepEqual(a, b)
		}
		return equal(before, after, func(key string, a, b any) bool {
			return key == "resourceVersion" || reflect.DeepEqual(a, b)
		})
	})
}

// equal compares maps of one size, key by key.
func equal(a, b map[string]any, compare func(key string, a, b any) bool) bool {
	for key, value := range a {
		if other, ok := b[key]; !ok || !compare(key, value, other) {
			return false
		}
	}
	return true
}

// lastApplied is what kubectl apply keeps: the object once more.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Compact is the transform of the informers. It drops what is half of an object
// and what no status speaks of.
func Compact(obj any) (any, error) {
	o, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", lastApplied)
	return o, nil
}
