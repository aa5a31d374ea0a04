package reconcile

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chartwright/chartwright/internal/api"
)

// HasStatus reports whether a custom resource has a status, packed or not.
func HasStatus(cr *unstructured.Unstructured) bool {
	switch status := cr.Object["status"].(type) {
	case string:
		return status != ""
	case map[string]any:
		return len(status) > 0
	default:
		return false
	}
}

// statusFields returns a status, packed or not, field by field. One that is
// neither has none.
func statusFields(status any) map[string]any {
	switch status := status.(type) {
	case map[string]any:
		return status
	case string:
		var content map[string]any
		// This package, unlike encoding/json, leaves whole numbers whole.
		if utiljson.Unmarshal([]byte(status), &content) == nil {
			return content
		}
	}
	return nil
}

// decodeStatus reads our part of a status, packed or not. What somebody broke in
// it counts as absent, and is written anew.
func decodeStatus(status any) api.Status {
	var decoded api.Status
	var err error
	switch status := status.(type) {
	case string:
		err = json.Unmarshal([]byte(status), &decoded)
	case map[string]any:
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(status, &decoded)
	}
	if err != nil {
		return api.Status{}
	}
	return decoded
}
