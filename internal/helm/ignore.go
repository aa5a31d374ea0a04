package helm

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/watches"
)

// leaveToOthers takes the ignored fields out of an object that is about to be
// applied. They are set when the object is made, in the name of a manager of
// their own, which goes on holding them: a field that its only manager no
// longer applies would be removed.
func (k *kubeClient) leaveToOthers(o apply.Object) (apply.Object, error) {
	paths := ignored(k.ignore, o.Unstructured)
	if len(paths) == 0 {
		return o, nil
	}
	if err := k.objects.HandOver(k.ctx, o, paths); err != nil {
		return o, err
	}
	o.Unstructured = o.DeepCopy()
	for _, path := range paths {
		unstructured.RemoveNestedField(o.Object, path...)
	}
	return o, nil
}

// leftToOthers returns a prepared object as it would be after leaveToOthers and
// an apply, for a dry run: the ignored fields are as others have left them, and
// are set where the object is still to be made.
func (k *kubeClient) leftToOthers(o apply.Object) (apply.Object, error) {
	paths := ignored(k.ignore, o.Unstructured)
	if len(paths) == 0 {
		return o, nil
	}
	live, err := k.objects.Read(k.ctx, o)
	if err != nil || live == nil {
		return o, err
	}
	o.Unstructured = o.DeepCopy()
	for _, path := range paths {
		value, found, err := unstructured.NestedFieldCopy(live.Object, path...)
		if err != nil || !found {
			unstructured.RemoveNestedField(o.Object, path...)
			continue
		}
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			return o, fmt.Errorf("%s: %w", apply.Describe(o.Unstructured), err)
		}
	}
	return o, nil
}

// ignored returns the paths of an object that the rules name and it has.
func ignored(rules []watches.DriftIgnore, object *unstructured.Unstructured) [][]string {
	var paths [][]string
	for _, rule := range rules {
		if rule.APIVersion != "" && rule.APIVersion != object.GetAPIVersion() ||
			rule.Kind != "" && rule.Kind != object.GetKind() ||
			rule.Name != "" && rule.Name != object.GetName() {
			continue
		}
		for _, pointer := range rule.Paths {
			path := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
			for i, segment := range path {
				path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
			}
			if _, found, err := unstructured.NestedFieldNoCopy(object.Object, path...); found && err == nil {
				paths = append(paths, path)
			}
		}
	}
	return paths
}
