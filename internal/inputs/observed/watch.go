package observed

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
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
	// fields are the paths of the fields that expressions read, as JSON. It is empty if they
	// read objects as a whole.
	fields string
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

// Reading returns a Watch of the same objects that keeps only the fields at the paths. An empty
// path means whole objects. A path names fields of maps. Name and namespace are always kept.
func (w Watch) Reading(paths [][]string) Watch {
	paths = slices.SortedFunc(slices.Values(append(paths, []string{"metadata", "name"}, []string{"metadata", "namespace"})), slices.Compare[[]string])
	paths = slices.CompactFunc(paths, slices.Equal[[]string])
	if len(paths[0]) == 0 {
		return w
	}
	// Strings are always encoded.
	text, _ := json.Marshal(paths)
	w.fields = string(text)
	return w
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
		// The API server accepts at most 63 bytes. A longer text is in no bucket that a custom
		// resource selects. Without the copy, the whole text would stay in memory.
		found[i] = strings.Clone(values[key][:min(len(values[key]), validation.LabelValueMaxLength+1)])
	}
	return bucket{watch: w, namespace: namespace, values: strings.Join(found, ",")}
}

// Object is what the informer and the Store keep of an object of a Watch. It is never
// changed, because they share it.
type Object struct {
	name            object
	uid             types.UID
	resourceVersion string
	bucket          bucket
	// content are the fields that expressions read, nil if the budget refuses the object.
	content map[string]any
	// bytes is the size of the content, and at least the limit of an object if it is larger.
	bytes   int
	refusal inputs.Refusal
}

// GetObjectMeta returns the metadata that the informer itself needs.
func (o *Object) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: o.name.Namespace, Name: o.name.Name, UID: o.uid, ResourceVersion: o.resourceVersion}
}

// item is the name of the object in the budget.
func (o *Object) item() inputs.Item {
	return inputs.Item{Of: o.name.watch, NamespacedName: o.name.NamespacedName}
}

// Feed passes the objects of a Watch to a Store.
type Feed struct {
	store  *Store
	watch  Watch
	fields tree
	// ended: the watch has ended.
	ended bool
}

// Feed returns the feed of a Watch.
func (s *Store) Feed(w Watch) *Feed { return &Feed{store: s, watch: w, fields: w.tree()} }

// Transform is the transform of the informer.
func (f *Feed) Transform(obj any) (any, error) {
	if o, ok := obj.(*unstructured.Unstructured); ok {
		return f.store.admit(f.watch, f.fields, o), nil
	}
	return obj, nil
}

// admit returns what is kept of an object.
func (s *Store) admit(w Watch, fields tree, o *unstructured.Unstructured) *Object {
	// managedFields and the annotation of kubectl apply can be half of an object, and
	// expressions do not need them.
	unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	kept := &Object{
		name: object{watch: w, NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}},
		uid:  o.GetUID(), resourceVersion: o.GetResourceVersion(),
		bucket:  w.bucket(o.GetNamespace(), o.GetLabels()),
		content: fields.of(o.Object),
	}
	kept.bytes = inputs.Weigh(kept.content, s.limits.Object)
	if kept.refusal = s.budget.Charge(kept.item(), kept.uid, kept.bytes); kept.refusal != (inputs.Refusal{}) {
		kept.content = nil
	}
	return kept
}

// tree are the fields of a map to keep, and those below each of them. An empty tree keeps
// everything.
type tree map[string]tree

// tree returns the fields that expressions read.
func (w Watch) tree() tree {
	var paths [][]string
	if w.fields == "" || json.Unmarshal([]byte(w.fields), &paths) != nil {
		return nil
	}
	root := tree{}
	// A path comes before the longer paths that begin with it.
	for _, path := range paths {
		at := root
		for i, name := range path {
			below, known := at[name]
			if known && len(below) == 0 {
				break
			}
			if !known {
				below = tree{}
				at[name] = below
			}
			if i < len(path)-1 {
				at = below
			}
		}
	}
	return root
}

// of returns the fields of a map. It never changes the map.
func (t tree) of(from map[string]any) map[string]any {
	if len(t) == 0 {
		return from
	}
	kept := map[string]any{}
	for name, below := range t {
		switch value := from[name].(type) {
		case nil:
			if _, found := from[name]; found {
				kept[name] = nil
			}
		case map[string]any:
			kept[name] = below.of(value)
		default:
			kept[name] = value
		}
	}
	return kept
}

// Handler returns the event handler of the informer. The informer must use Transform.
func (f *Feed) Handler() cache.ResourceEventHandler {
	return inputs.EventHandler(f.store.users, func(o *Object) []types.UID {
		if f.ended {
			return nil
		}
		return f.store.observe(o)
	}, f.store.remove)
}

// observe adds or updates an object. It returns the users of the bucket that the object was
// in and of its new bucket, and the users of refused objects that may fit now.
func (s *Store) observe(o *Object) []types.UID {
	before := s.at[o.name]
	var affected []types.UID
	if before != nil && before.bucket != o.bucket {
		affected = s.remove(before)
	}
	if s.objects[o.bucket] == nil {
		s.objects[o.bucket] = map[string]*Object{}
	}
	// The new object replaces an equal one, too. Otherwise the Store and the informer would
	// keep two copies.
	s.objects[o.bucket][o.name.Name] = o
	s.at[o.name] = o
	s.setRefused(o, o.refusal)
	if o.content != nil {
		s.budget.Set(o.item(), o.uid, o.bytes)
	} else {
		s.budget.Release(o.item(), o.uid)
	}
	if before != nil && before.bucket == o.bucket && before.refusal == o.refusal && equalContent(before.content, o.content) {
		return nil
	}
	if before != nil && before.content != nil && (o.content == nil || o.bytes < before.bytes) {
		affected = append(affected, s.waiting(o.name.Namespace)...)
	}
	return once(append(affected, s.users.Users(o.bucket)...))
}

// remove removes an object. It returns the users of its bucket, and the users of refused
// objects that may fit now.
func (s *Store) remove(o *Object) []types.UID {
	known := s.at[o.name]
	if known == nil {
		return nil
	}
	delete(s.at, o.name)
	delete(s.objects[known.bucket], o.name.Name)
	if len(s.objects[known.bucket]) == 0 {
		delete(s.objects, known.bucket)
	}
	s.setRefused(known, inputs.Refusal{})
	s.budget.Release(known.item(), known.uid)
	return once(append(s.users.Users(known.bucket), s.waiting(o.name.Namespace)...))
}

// once returns each user once.
func once(users []types.UID) []types.UID {
	slices.Sort(users)
	return slices.Compact(users)
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
	if object != nil {
		object["metadata"] = metadata
	}
	return object
}
