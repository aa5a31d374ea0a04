package customresource

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// Limits above which a custom resource is rejected before its spec is decoded. Both count
// all fields except metadata and status.
const (
	// MaxBytes is the largest size of a custom resource as JSON.
	MaxBytes = 256 << 10
	// MaxValues is the largest number of values: fields, items of lists, lists
	// and maps.
	MaxValues = 50_000
)

// Fields of a packed custom resource that no API object has.
const (
	// keyDigest holds the digest of every field but metadata and status.
	keyDigest = api.Domain + "/digest"
	// keyTooLarge holds the reason why the custom resource is rejected.
	keyTooLarge = api.Domain + "/too-large"
	// keyEdits holds the Edits, as JSON.
	keyEdits = api.Domain + "/edits"
	// keyFinalizersCut is set if the list of finalizers is not complete.
	keyFinalizersCut = api.Domain + "/finalizers-cut"
)

const (
	fieldSpec     = "spec"
	fieldStatus   = "status"
	fieldMetadata = "metadata"
)

// ErrTooLarge marks a custom resource that exceeds MaxBytes or MaxValues, or
// whose metadata exceeds the limits for metadata.
var ErrTooLarge = errors.New("the custom resource is too large")

// Decoder decodes custom resources of one kind into packed ones.
type Decoder struct {
	// Scale is the path of the field that the scale subresource sets, nil if the kind has
	// no scale subresource.
	Scale []string
}

// Decode returns a packed custom resource.
func (d Decoder) Decode(data []byte) (*unstructured.Unstructured, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("decode a custom resource: %w", err)
	}
	packed := make(map[string]any, len(fields)+2)
	for _, key := range []string{"apiVersion", "kind"} {
		var text string
		if raw, found := fields[key]; found {
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, fmt.Errorf("decode %s of a custom resource: %w", key, err)
			}
			packed[key] = unique.Make(text).Value()
		}
		delete(fields, key)
	}
	tooLarge, err := d.packMetadata(packed, fields[fieldMetadata])
	if err != nil {
		return nil, err
	}
	delete(fields, fieldMetadata)
	if status := packStatus(fields[fieldStatus]); status != "" {
		packed[fieldStatus] = status
	}
	delete(fields, fieldStatus)

	size, count, parts := 0, 0, make([]string, 0, 2*len(fields))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		size += len(fields[key])
		count += boundedyaml.JSONValues(fields[key])
		parts = append(parts, key, string(fields[key]))
	}
	packed[keyDigest] = values.DigestOf(parts...)
	if size > MaxBytes || count > MaxValues {
		tooLarge = fmt.Sprintf("the spec has %d bytes and %d values, but the limits are %d bytes and %d values: "+
			"shorten the spec, or move large files to a ConfigMap or Secret that the chart's pods read", size, count, MaxBytes, MaxValues)
	}
	if tooLarge != "" {
		packed[keyTooLarge] = tooLarge
		return &unstructured.Unstructured{Object: packed}, nil
	}
	for key, raw := range fields {
		packed[unique.Make(key).Value()] = string(raw)
	}
	return &unstructured.Unstructured{Object: packed}, nil
}

// Packed reports whether a custom resource is packed.
func Packed(cr *unstructured.Unstructured) bool {
	_, packed := cr.Object[keyDigest]
	return packed
}

// Digest returns the digest of the text of all fields except metadata and status, "" if the
// custom resource is not packed. Different texts can hold equal values, so that a different
// digest does not prove a different spec.
func Digest(cr *unstructured.Unstructured) string {
	digest, _ := cr.Object[keyDigest].(string)
	return digest
}

// TooLarge returns an error that wraps ErrTooLarge if the custom resource exceeds a limit.
func TooLarge(cr *unstructured.Unstructured) error {
	if why, is := cr.Object[keyTooLarge].(string); is {
		return fmt.Errorf("%w: %s", ErrTooLarge, why)
	}
	return nil
}

// AllFinalizers reports whether the list of finalizers is complete, so that it can be
// written back.
func AllFinalizers(cr *unstructured.Unstructured) bool {
	_, cut := cr.Object[keyFinalizersCut]
	return !cut
}

// Expand returns the content of a custom resource, without its status. The result shares
// the metadata with the custom resource. A custom resource that is not packed is returned
// unchanged.
func Expand(cr *unstructured.Unstructured) (map[string]any, error) {
	if !Packed(cr) {
		return cr.Object, nil
	}
	if err := TooLarge(cr); err != nil {
		return nil, err
	}
	if Large(cr) {
		expandsLarge.Lock()
		defer expandsLarge.Unlock()
	}
	object := make(map[string]any, len(cr.Object))
	for key, value := range cr.Object {
		switch key {
		case keyDigest, keyEdits, keyFinalizersCut, fieldStatus:
		case "apiVersion", "kind", fieldMetadata:
			object[key] = value
		default:
			text, _ := value.(string)
			var decoded any
			if err := utiljson.Unmarshal([]byte(text), &decoded); err != nil {
				return nil, fmt.Errorf("decode %s: %w", key, err)
			}
			object[key] = decoded
		}
	}
	return object, nil
}

// Metadata returns apiVersion, kind and metadata of a custom resource, for templates over a
// custom resource that is too large to expand.
func Metadata(cr *unstructured.Unstructured) map[string]any {
	return map[string]any{"apiVersion": cr.GetAPIVersion(), "kind": cr.GetKind(), fieldMetadata: cr.Object[fieldMetadata]}
}

// Custom resources above one of these sizes are expanded one at a time in the process,
// because each temporarily takes tens of megabytes.
const (
	largeBytes  = 64 << 10
	largeValues = 5_000
)

var expandsLarge sync.Mutex

// Large reports whether a custom resource is so large that its content must not be kept
// longer than needed.
func Large(cr *unstructured.Unstructured) bool {
	size, count := 0, 0
	for key, value := range cr.Object {
		if text, is := value.(string); is && key != fieldStatus {
			size += len(text)
			count += boundedyaml.JSONValues(text)
		}
	}
	return size > largeBytes || count > largeValues
}
