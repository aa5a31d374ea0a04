package status

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chartwright/chartwright/internal/api"
)

// Patch returns the merge patch from the stored status of a custom resource to the
// wanted one and the kind's own fields, nil if they are equal. It does not change the
// fields of other controllers.
func Patch(cr *unstructured.Unstructured, wanted api.Status, fields Fields) (map[string]any, error) {
	patch, err := difference(Read(cr), wanted)
	if err != nil {
		return nil, err
	}
	patch = fields.addTo(patch, cr)
	return dropManifest(patch, cr), nil
}

// difference returns the merge patch from one status to another, nil if they are
// equal. It replaces each top-level field that differs.
func difference(from, to api.Status) (map[string]any, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&from)
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&to)
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	patch := map[string]any{}
	for key := range before {
		if _, stays := after[key]; !stays {
			patch[key] = nil
		}
	}
	for key, value := range after {
		if !apiequality.Semantic.DeepEqual(before[key], value) {
			patch[key] = replace(before[key], value)
		}
	}
	if len(patch) == 0 {
		return nil, nil
	}
	return patch, nil
}

// addTo adds the fields to the patch of a status if they differ from the stored ones.
func (f *Fields) addTo(patch map[string]any, cr *unstructured.Unstructured) map[string]any {
	if len(f.Values) == 0 {
		return patch
	}
	before := readFields(cr)
	for name, value := range f.Values {
		was, is := before[name]
		if value == nil && !is || apiequality.Semantic.DeepEqual(was, value) {
			continue
		}
		if patch == nil {
			patch = map[string]any{}
		}
		patch[name] = replace(was, value)
	}
	return patch
}

// replace returns a value with which a merge patch replaces a nested map instead of
// merging into it: removed keys are set to null.
func replace(before, after any) any {
	old, wasMap := before.(map[string]any)
	fresh, isMap := after.(map[string]any)
	if !wasMap || !isMap {
		return after
	}
	merged := make(map[string]any, len(fresh))
	for key, value := range fresh {
		merged[key] = replace(old[key], value)
	}
	for key := range old {
		if _, stays := fresh[key]; !stays {
			merged[key] = nil
		}
	}
	return merged
}

// dropManifest adds to the patch of a status the removal of the manifest that the
// operator-sdk has stored in deployedRelease, because it may contain secrets.
func dropManifest(patch map[string]any, cr *unstructured.Unstructured) map[string]any {
	if !mayHaveManifest(cr) {
		return patch
	}
	deployed, _ := readFields(cr)["deployedRelease"].(map[string]any)
	if _, there := deployed["manifest"]; !there {
		return patch
	}
	if patch == nil {
		patch = map[string]any{}
	}
	is, written := patch["deployedRelease"]
	wanted, stays := is.(map[string]any)
	switch {
	case !written:
		patch["deployedRelease"] = map[string]any{"manifest": nil}
	case stays:
		wanted["manifest"] = nil
	}
	return patch
}
