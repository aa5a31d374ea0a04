package observed

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Watch is what one informer watches. Equal watches are one.
type Watch struct {
	schema.GroupVersionKind
	// fixed are the labels that every object has, and differing the keys of
	// those whose value tells whose it is: as a label selector has them, in
	// order.
	fixed, differing string
}

// NewWatch returns the watch of a kind's objects with labels of these values
// and with labels of these keys, whatever their values.
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

// Selector is what the API server is asked for.
func (w Watch) Selector() (labels.Selector, error) {
	return labels.Parse(strings.Trim(w.fixed+","+w.differing, ","))
}

// Selection is what one custom resource wants to see of a watch.
type Selection struct {
	Watch
	// Name is what its expressions call the objects.
	Name      string
	Namespace string
	// Labels are the values of the differing labels.
	Labels map[string]string
}

// place is where the objects are that have a namespace and the same values of
// the differing labels. No label's value has a comma.
type place struct {
	watch             Watch
	namespace, values string
}

func (w Watch) place(namespace string, values map[string]string) place {
	if w.differing == "" {
		return place{watch: w, namespace: namespace}
	}
	keys := strings.Split(w.differing, ",")
	found := make([]string, len(keys))
	for i, key := range keys {
		found[i] = values[key]
	}
	return place{watch: w, namespace: namespace, values: strings.Join(found, ",")}
}

func (s Selection) place() place { return s.Watch.place(s.Namespace, s.Labels) }
