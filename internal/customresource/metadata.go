package customresource

import (
	"bytes"
	"cmp"
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

// Limits for each field of the metadata of a custom resource. The API server limits
// annotations to 256 KiB and does not limit the other fields.
const (
	maxMetadataBytes  = 256 << 10
	maxMetadataValues = 2_000
	// maxNeededBytes limits what the operator reads in a field. If the annotations exceed it,
	// those with a value of at most maxShortAnnotation bytes still count.
	maxNeededBytes     = 8 << 10
	maxShortAnnotation = 256
)

const (
	fieldAnnotations     = "annotations"
	fieldFinalizers      = "finalizers"
	fieldManagedFields   = "managedFields"
	fieldOwnerReferences = "ownerReferences"
)

// packMetadata decodes the metadata. It replaces managedFields by the edits, and removes
// the annotation of kubectl apply. It shortens a field that exceeds the size to keep, and
// returns a message about a field that exceeds a limit.
func (d Decoder) packMetadata(packed map[string]any, raw json.RawMessage, keep int) (tooLarge string, err error) {
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
			value, err = filterAnnotations(value, func(name, _ string) bool { return name != corev1.LastAppliedConfigAnnotation })
			if err != nil {
				return "", fmt.Errorf("decode the annotations of a custom resource: %w", err)
			}
			if value == nil {
				continue
			}
		}
		if len(value) > keep || exceedsLimits(value) {
			var problem string
			if value, problem, err = shortened(packed, key, value); err != nil {
				return "", fmt.Errorf("decode metadata.%s of a custom resource: %w", key, err)
			}
			if tooLarge = cmp.Or(problem, tooLarge); value == nil {
				continue
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

// filterAnnotations returns the annotations that the function accepts, nil for none.
func filterAnnotations(raw json.RawMessage, keep func(name, value string) bool) (json.RawMessage, error) {
	var all map[string]string
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(name, value string) bool { return !keep(name, value) })
	if len(all) == 0 {
		return nil, nil
	}
	return json.Marshal(all)
}

func exceedsLimits(value json.RawMessage) bool {
	return len(value) > maxMetadataBytes || boundedyaml.JSONValues(value) > maxMetadataValues
}

// shortened returns the part of a large metadata field that the operator needs, nil for none,
// and a message if the field exceeds a limit. It marks what is missing in the packed custom
// resource.
func shortened(packed map[string]any, key string, value json.RawMessage) (needed json.RawMessage, problem string, err error) {
	if key == fieldOwnerReferences {
		return nil, "", nil
	}
	if needed, err = neededOf(key, value); err != nil {
		return nil, "", err
	}
	if key == fieldFinalizers {
		packed[keyFinalizersCut] = "true"
	}
	switch {
	case exceedsLimits(value):
		problem = fmt.Sprintf("metadata.%s has %d bytes, but the limits are %d bytes and %d entries: remove entries", key, len(value), maxMetadataBytes, maxMetadataValues)
	case len(needed) > maxNeededBytes:
		problem = fmt.Sprintf("the annotations for the operator have %d bytes, but the limit is %d bytes: shorten them", len(needed), maxNeededBytes)
	default:
		packed[keyPartial] = false
	}
	if len(needed) > maxNeededBytes {
		needed, err = filterAnnotations(needed, func(name, value string) bool { return annotations.IsRead(name) && len(value) <= maxShortAnnotation })
	}
	return needed, problem, err
}

// neededOf returns the part of a metadata field that the operator needs: its own annotations
// and finalizers, and nothing of other fields.
func neededOf(key string, raw json.RawMessage) (json.RawMessage, error) {
	switch key {
	case fieldAnnotations:
		return filterAnnotations(raw, func(name, _ string) bool { return isNeeded(name) })
	case fieldFinalizers:
		var all []string
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, err
		}
		slices.Sort(all)
		return json.Marshal(slices.DeleteFunc(slices.Compact(all), func(name string) bool { return !isNeeded(name) }))
	default:
		return nil, nil
	}
}

// isNeeded reports whether the operator needs a finalizer or an annotation: its own, those
// of the operator-sdk that it continues to honor, and the finalizer of deletions that
// orphan.
func isNeeded(name string) bool {
	return name == api.Finalizer || name == metav1.FinalizerOrphanDependents ||
		slices.Contains(api.FinalizersOperatorSDK, name) || annotations.IsKnown(name)
}
