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
	// keyPartial is set if the content is not kept. It holds whether the content is Large.
	keyPartial = api.Domain + "/partial"
	// keyFinalizersCut is set if the list of finalizers is not complete.
	keyFinalizersCut = api.Domain + "/finalizers-cut"
)

const (
	fieldSpec     = "spec"
	fieldStatus   = "status"
	fieldMetadata = "metadata"
)

// Limits in bytes above which a cache does not keep content, because the number of custom
// resources is not limited. Client.Complete reads it again.
const (
	keptBytes         = 8 << 10
	keptMetadataBytes = 4 << 10
)

// ErrPartial marks a custom resource whose content is not kept.
var ErrPartial = errors.New("the content of the custom resource is not in memory")

// ErrTooLarge marks a custom resource that exceeds MaxBytes or MaxValues, or
// whose metadata exceeds the limits for metadata.
var ErrTooLarge = errors.New("the custom resource is too large")

// Decoder decodes custom resources of one kind into packed ones.
type Decoder struct {
	// Scale is the path of the field that the scale subresource sets, nil if the kind has
	// no scale subresource.
	Scale []string
}

// Decode returns a packed custom resource for a cache. It is partial above some size.
func (d Decoder) Decode(data []byte) (*unstructured.Unstructured, error) {
	cr, err := d.decode(data, keptMetadataBytes)
	if err != nil {
		return nil, err
	}
	if bytes, count := sizeOf(cr); bytes > keptBytes || Partial(cr) {
		cr.Object[keyPartial] = isLarge(bytes, count)
		for _, name := range contentOf(cr) {
			delete(cr.Object, name)
		}
	}
	return cr, nil
}

// decode returns a packed custom resource, with fields of the metadata up to a size.
func (d Decoder) decode(data []byte, metadataBytes int) (*unstructured.Unstructured, error) {
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
	tooLarge, err := d.packMetadata(packed, fields[fieldMetadata], metadataBytes)
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

// contentOf returns the names of the fields that a packed custom resource holds as text, except
// the status.
func contentOf(cr *unstructured.Unstructured) (names []string) {
	for name := range cr.Object {
		switch name {
		case keyDigest, keyTooLarge, keyEdits, keyPartial, keyFinalizersCut, fieldStatus, "apiVersion", "kind", fieldMetadata:
		default:
			names = append(names, name)
		}
	}
	return names
}

// sizeOf returns the bytes and the number of values of the content.
func sizeOf(cr *unstructured.Unstructured) (bytes, count int) {
	for _, name := range contentOf(cr) {
		if text, is := cr.Object[name].(string); is {
			bytes += len(text)
			count += boundedyaml.JSONValues(text)
		}
	}
	return bytes, count
}

// Partial reports whether the content of a custom resource is not kept.
func Partial(cr *unstructured.Unstructured) bool {
	_, partial := cr.Object[keyPartial]
	return partial
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
	if Partial(cr) {
		return nil, ErrPartial
	}
	if Large(cr) {
		expandsLarge.Lock()
		defer expandsLarge.Unlock()
	}
	object := Metadata(cr)
	for _, name := range contentOf(cr) {
		text, _ := cr.Object[name].(string)
		var decoded any
		if err := utiljson.Unmarshal([]byte(text), &decoded); err != nil {
			return nil, fmt.Errorf("decode %s: %w", name, err)
		}
		object[name] = decoded
	}
	return object, nil
}

// Metadata returns apiVersion, kind and metadata of a custom resource, for templates over a
// custom resource whose content is too large or not kept.
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
	if large, partial := cr.Object[keyPartial].(bool); partial {
		return large
	}
	return isLarge(sizeOf(cr))
}

func isLarge(bytes, count int) bool { return bytes > largeBytes || count > largeValues }
