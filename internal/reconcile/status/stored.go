package status

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chartwright/chartwright/internal/api"
)

// The cache holds the status of a custom resource as JSON text, see package
// customresource. The result of a write may hold it as a map. Only this file depends
// on the difference.

// Exists reports whether a custom resource has a status.
func Exists(cr *unstructured.Unstructured) bool {
	switch stored := cr.Object["status"].(type) {
	case string:
		return stored != ""
	case map[string]any:
		return len(stored) > 0
	default:
		return false
	}
}

// Read returns our part of a custom resource's status. An invalid status counts as
// empty, and is replaced.
func Read(cr *unstructured.Unstructured) api.Status {
	var decoded api.Status
	var err error
	switch stored := cr.Object["status"].(type) {
	case string:
		err = json.Unmarshal([]byte(stored), &decoded)
	case map[string]any:
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(stored, &decoded)
	}
	if err != nil {
		return api.Status{}
	}
	return decoded
}

// readFields returns every field of a custom resource's status.
func readFields(cr *unstructured.Unstructured) map[string]any {
	switch stored := cr.Object["status"].(type) {
	case map[string]any:
		return stored
	case string:
		var content map[string]any
		// Unlike encoding/json, this package preserves integers.
		if utiljson.Unmarshal([]byte(stored), &content) == nil {
			return content
		}
	}
	return nil
}

// mayHaveManifest reports, without decoding the status, whether it may contain a
// manifest.
func mayHaveManifest(cr *unstructured.Unstructured) bool {
	text, isText := cr.Object["status"].(string)
	return !isText || strings.Contains(text, `"manifest"`)
}
