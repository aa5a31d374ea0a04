package reconcile

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chartwright/chartwright/internal/api"
)

// Pack makes text of the status of a custom resource that goes into a cache.
// As maps of maps it is most of what a custom resource takes there, eight times
// the text, and all that a pass does with it is to compare.
func Pack(cr *unstructured.Unstructured) {
	content, ok := cr.Object["status"].(map[string]any)
	if !ok || len(content) == 0 {
		return
	}
	// What was decoded from JSON is encoded without an error.
	if text, err := json.Marshal(content); err == nil {
		cr.Object["status"] = string(text)
	}
}

// HasStatus tells whether anything is reported, packed or not.
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
