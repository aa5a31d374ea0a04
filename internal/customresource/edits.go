package customresource

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
)

// Edits are the parts of managedFields that the operator needs: who last set the field of
// the scale subresource and, during a rollback request, when the spec and the request were
// written. Times are in seconds, as in managedFields; 0 means unknown.
type Edits struct {
	// Scale reports whether a writer of the main resource owns the field, and no writer of
	// the scale subresource (kubectl scale, autoscalers). On scaling, the API server
	// removes the field from its owner. It records no new owner if the field had none
	// before, and never the time.
	Scale bool `json:"scale,omitempty"`
	// EditedAt is the last write of a client that owns fields of the spec, and AskedAt that
	// of the client that owns the annotation rollback-to. A client that owns other fields
	// may have written only those.
	EditedAt int64 `json:"editedAt,omitempty"`
	AskedAt  int64 `json:"askedAt,omitempty"`
}

// EditsOf returns the edits of a packed custom resource. It returns false if its
// managedFields were missing, or no decision needs them.
func EditsOf(cr *unstructured.Unstructured) (Edits, bool) {
	var e Edits
	text, _ := cr.Object[keyEdits].(string)
	return e, text != "" && json.Unmarshal([]byte(text), &e) == nil
}

// readEdits returns the edits as JSON, "" if no decision needs them. It does not decode the
// sets of fields, which can be as large as the spec.
func readEdits(managed json.RawMessage, scale []string, asked bool) string {
	if scale == nil && !asked {
		return ""
	}
	var entries []json.RawMessage
	if len(managed) == 0 || json.Unmarshal(managed, &entries) != nil || len(entries) == 0 {
		return ""
	}
	var e Edits
	scaled := false
	for _, raw := range entries {
		var entry struct {
			Subresource string
			Time        metav1.Time
			FieldsV1    json.RawMessage
		}
		// An entry that is invalid counts as far as it was decoded.
		_ = json.Unmarshal(raw, &entry)
		switch entry.Subresource {
		case "scale":
			scaled = scaled || owns(entry.FieldsV1, scale)
			continue
		case "":
			e.Scale = e.Scale || owns(entry.FieldsV1, scale)
		default:
			continue
		}
		if !asked {
			continue
		}
		at := max(0, entry.Time.Unix())
		if _, spec := fieldsOf(entry.FieldsV1, "f:spec")["f:spec"]; spec {
			e.EditedAt = max(e.EditedAt, at)
		}
		if at > 0 && owns(entry.FieldsV1, []string{fieldMetadata, fieldAnnotations, api.AnnotationRollbackTo}) && (e.AskedAt == 0 || at < e.AskedAt) {
			// Applying the same value again is not a new request.
			e.AskedAt = at
		}
	}
	e.Scale = e.Scale && !scaled
	text, _ := json.Marshal(e)
	return string(text)
}

// owns reports whether a set of fields contains the field at a path.
func owns(fields json.RawMessage, path []string) bool {
	for _, name := range path {
		fields = fieldsOf(fields, "f:"+name)["f:"+name]
		if len(fields) == 0 || fields[0] != '{' {
			return false
		}
	}
	return len(path) > 0
}
