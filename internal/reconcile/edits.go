package reconcile

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
)

// edits is what is kept of a custom resource's managedFields: by whom the field
// of the scale subresource was set last, and, while there is a rollback request,
// when what was written. Times are in seconds, as the API server notes them; 0
// means unknown.
type edits struct {
	// Scale reports whether the field is owned by a writer of the resource, and by
	// none of the scale subresource (kubectl scale, autoscalers). The API server
	// takes the field from its owner when it is scaled. It notes no new owner where
	// there was none before, and never the time.
	Scale bool `json:"scale,omitempty"`
	// EditedAt is when a writer of the spec last wrote, and AskedAt when the writer
	// of the annotation rollback-to did. A writer that owns other fields, too, may
	// have written those.
	EditedAt int64 `json:"editedAt,omitempty"`
	AskedAt  int64 `json:"askedAt,omitempty"`
}

// keyEdits is the field of a cached custom resource that holds its edits, as
// JSON. No API object has a field of that name.
const keyEdits = api.Domain + "/edits"

// PackEdits replaces the managedFields of a custom resource by its edits. Scale
// is the path of the field that is scaled, nil where the kind has no scale. A
// resource without managedFields stays as it is: it may have been packed before.
func PackEdits(cr *unstructured.Unstructured, scale []string) {
	metadata, _ := cr.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	delete(metadata, "managedFields")
	if len(entries) == 0 {
		return
	}
	_, asked := cr.GetAnnotations()[api.AnnotationRollbackTo]
	if scale == nil && !asked {
		// No decision needs them.
		delete(cr.Object, keyEdits)
		return
	}
	// Booleans and numbers encode without an error.
	text, _ := json.Marshal(readEdits(entries, scale, asked))
	cr.Object[keyEdits] = string(text)
}

// readEdits goes by the decoded managedFields: GetManagedFields copies and
// encodes them first.
func readEdits(entries []any, scale []string, asked bool) edits {
	var e edits
	scaled := false
	annotation := []string{"metadata", "annotations", api.AnnotationRollbackTo}
	for _, each := range entries {
		entry, _ := each.(map[string]any)
		fields, _ := entry["fieldsV1"].(map[string]any)
		switch entry["subresource"] {
		case "scale":
			scaled = scaled || owns(fields, scale)
			continue
		case nil, "":
			e.Scale = e.Scale || owns(fields, scale)
		default:
			continue
		}
		if !asked {
			continue
		}
		at := seconds(entry["time"])
		if _, spec := fields["f:spec"]; spec {
			e.EditedAt = max(e.EditedAt, at)
		}
		if at > 0 && owns(fields, annotation) && (e.AskedAt == 0 || at < e.AskedAt) {
			// Applying the same value again is not another request.
			e.AskedAt = at
		}
	}
	e.Scale = e.Scale && !scaled
	return e
}

// seconds reads the time of an entry, 0 where it has none.
func seconds(noted any) int64 {
	text, _ := noted.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0
	}
	return at.Unix()
}

// owns reports whether a set of fields holds the field at a path.
func owns(fields map[string]any, path []string) bool {
	for _, name := range path {
		below, ok := fields["f:"+name].(map[string]any)
		if !ok {
			return false
		}
		fields = below
	}
	return len(path) > 0
}

// editsOf returns the edits of a packed custom resource, and false where its
// managedFields were missing.
func editsOf(cr *unstructured.Unstructured) (edits, bool) {
	var e edits
	text, _ := cr.Object[keyEdits].(string)
	return e, text != "" && json.Unmarshal([]byte(text), &e) == nil
}
