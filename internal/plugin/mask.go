package plugin

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What stands in place of a value of a Secret: whether it changes is told, and
// nothing else.
const (
	masked       = "***"
	maskedBefore = "*** (before)"
	maskedAfter  = "*** (after)"
)

// mask returns what may be printed of the two sides of an object. Either may be
// nil, and neither is changed. Of anything but a Secret that is everything.
func mask(before, after *unstructured.Unstructured) (shownBefore, shownAfter *unstructured.Unstructured) {
	if !isSecret(before) && !isSecret(after) {
		return before, after
	}
	shownBefore, shownAfter = before.DeepCopy(), after.DeepCopy()
	for _, field := range []string{"data", "stringData"} {
		maskField(shownBefore, shownAfter, field)
	}
	maskField(shownBefore, shownAfter, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	return shownBefore, shownAfter
}

func isSecret(o *unstructured.Unstructured) bool {
	return o != nil && o.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// maskField masks a value on both sides, key by key where it is a map.
func maskField(before, after *unstructured.Unstructured, path ...string) {
	was, had := valueAt(before, path)
	is, has := valueAt(after, path)
	// A null hides nothing, and a value that is no map may be anything.
	wasMap, wasKeys := was.(map[string]any)
	isMap, isKeys := is.(map[string]any)
	if wasKeys || isKeys {
		keys := map[string]bool{}
		for key := range wasMap {
			keys[key] = true
		}
		for key := range isMap {
			keys[key] = true
		}
		for key := range keys {
			one, inBefore := wasMap[key]
			other, inAfter := isMap[key]
			same := inBefore && inAfter && reflect.DeepEqual(one, other)
			if inBefore {
				wasMap[key] = maskOf(same, maskedBefore)
			}
			if inAfter {
				isMap[key] = maskOf(same, maskedAfter)
			}
		}
	}
	same := had && has && reflect.DeepEqual(was, is)
	if had && was != nil && !wasKeys {
		setAt(before, path, maskOf(same, maskedBefore))
	}
	if has && is != nil && !isKeys {
		setAt(after, path, maskOf(same, maskedAfter))
	}
}

func maskOf(same bool, otherwise string) string {
	if same {
		return masked
	}
	return otherwise
}

// valueAt returns the value itself, which is part of the object.
func valueAt(o *unstructured.Unstructured, path []string) (any, bool) {
	if o == nil {
		return nil, false
	}
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	return value, found && err == nil
}

func setAt(o *unstructured.Unstructured, path []string, text string) {
	// The value was found there, so that everything above it is a map.
	_ = unstructured.SetNestedField(o.Object, text, path...)
}
