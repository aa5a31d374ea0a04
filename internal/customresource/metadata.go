package customresource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
)

// Limits for each field of the metadata of a custom resource. The API server
// limits annotations to 256 KiB, and the other fields not at all.
const (
	maxMetadataBytes  = 256 << 10
	maxMetadataValues = 2_000
)

const (
	fieldAnnotations     = "annotations"
	fieldFinalizers      = "finalizers"
	fieldManagedFields   = "managedFields"
	fieldOwnerReferences = "ownerReferences"
)

// packMetadata decodes the metadata without managedFields, which it replaces by
// the edits, and without the annotation of kubectl apply. A field that exceeds a
// limit is left out, and named in the message that it returns.
func (d Decoder) packMetadata(packed map[string]any, raw json.RawMessage) (tooLarge string, err error) {
	var fields map[string]json.RawMessage
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &fields); err != nil {
			return "", fmt.Errorf("decode the metadata of a custom resource: %w", err)
		}
	}
	metadata := make(map[string]any, len(fields))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		value := fields[key]
		if key == fieldManagedFields {
			continue
		}
		if key == fieldAnnotations && bytes.Contains(value, []byte(corev1.LastAppliedConfigAnnotation)) {
			value, err = filterAnnotations(value, func(name string) bool { return name != corev1.LastAppliedConfigAnnotation })
			if err != nil {
				return "", fmt.Errorf("decode the annotations of a custom resource: %w", err)
			}
			if value == nil {
				continue
			}
		}
		if len(value) > maxMetadataBytes || boundedyaml.JSONValues(value) > maxMetadataValues {
			if key == fieldOwnerReferences {
				continue
			}
			tooLarge = fmt.Sprintf("metadata.%s takes %d bytes, and the limits are %d bytes and %d entries: remove entries", key, len(value), maxMetadataBytes, maxMetadataValues)
			if value, err = shortened(key, value); err != nil {
				return "", fmt.Errorf("decode metadata.%s of a custom resource: %w", key, err)
			}
			if value == nil {
				continue
			}
			if key == fieldFinalizers {
				packed[keyFinalizersCut] = "true"
			}
		}
		var decoded any
		if err := utiljson.Unmarshal(value, &decoded); err != nil {
			return "", fmt.Errorf("decode metadata.%s of a custom resource: %w", key, err)
		}
		metadata[unique.Make(key).Value()] = decoded
	}
	if raw != nil {
		packed[fieldMetadata] = metadata
	}
	_, asked := (&unstructured.Unstructured{Object: packed}).GetAnnotations()[api.AnnotationRollbackTo]
	if edits := readEdits(fields[fieldManagedFields], d.Scale, asked); edits != "" {
		packed[keyEdits] = edits
	}
	return tooLarge, nil
}

// filterAnnotations returns the annotations whose names a function keeps, nil if
// none is left.
func filterAnnotations(raw json.RawMessage, keep func(name string) bool) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return !keep(name) })
	if len(all) == 0 {
		return nil, nil
	}
	return json.Marshal(all)
}

// shortened returns what is left of a field of the metadata that exceeds a
// limit: the operator's annotations and finalizers, and nothing of other fields.
func shortened(key string, raw json.RawMessage) (json.RawMessage, error) {
	switch key {
	case fieldAnnotations:
		return filterAnnotations(raw, ours)
	case fieldFinalizers:
		var all []string
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, err
		}
		return json.Marshal(slices.DeleteFunc(all, func(name string) bool { return !ours(name) }))
	default:
		return nil, nil
	}
}

// ours reports whether a finalizer or an annotation belongs to the operator, to
// the operator-sdk whose work it continues, or to a deletion that orphans.
func ours(name string) bool {
	return name == api.Finalizer || name == metav1.FinalizerOrphanDependents ||
		slices.Contains(api.FinalizersOperatorSDK, name) || annotations.IsKnown(name)
}
