package reconcile

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/customresource"
)

// Fields in the format of managedFields.
const (
	ownsReplicas = `{"f:spec": {".": {}, "f:replicas": {}}}`
	ownsMessage  = `{"f:spec": {"f:message": {}}}`
	ownsRequest  = `{"f:metadata": {"f:annotations": {"f:chartwright.dev/rollback-to": {}}}}`
	ownsBoth     = `{"f:metadata": {"f:annotations": {".": {}, "f:chartwright.dev/rollback-to": {}}}, "f:spec": {"f:message": {}}}`
	ownsDeep     = `{"f:spec": {"f:web": {"f:replicas": {}}}}`
	ownsWhole    = `{"f:spec": {"f:web": {}}}`
	ownsParent   = `{"f:spec": {"f:web": {".": {}}}}`
	ownsStatus   = `{"f:status": {"f:state": {}}}`
)

// entryOf returns an entry of managedFields. second is the offset of its time.
func entryOf(subresource, fields string, second int) any {
	var decoded map[string]any
	if err := json.Unmarshal([]byte(fields), &decoded); err != nil {
		panic(err)
	}
	entry := map[string]any{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": decoded}
	if second >= 0 {
		entry["time"] = time.Unix(int64(1000+second), 0).UTC().Format(time.RFC3339)
	}
	if subresource != "" {
		entry["subresource"] = subresource
	}
	return entry
}

// crOf returns a custom resource with managedFields and, optionally, a rollback request.
func crOf(asked bool, entries ...any) *unstructured.Unstructured {
	metadata := map[string]any{"name": "web"}
	if len(entries) > 0 {
		metadata["managedFields"] = entries
	}
	cr := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	if asked {
		cr.SetAnnotations(map[string]string{api.AnnotationRollbackTo: "1"})
	}
	return cr
}

func TestPackEdits(t *testing.T) {
	top, deep := []string{"spec", "replicas"}, []string{"spec", "web", "replicas"}
	for _, test := range []struct {
		name  string
		scale []string
		cr    *unstructured.Unstructured
		want  customresource.Edits
		known bool
	}{
		{"no managedFields", top, crOf(true), customresource.Edits{}, false},
		{"a kind without scale, and no request", nil, crOf(false, entryOf("", ownsMessage, 0)), customresource.Edits{}, false},
		{"replicas without an owner", top, crOf(false, entryOf("", ownsMessage, 0)), customresource.Edits{}, true},
		{"replicas by an edit", top, crOf(false, entryOf("", ownsReplicas, 0)), customresource.Edits{Scale: true}, true},
		{"replicas by the scale subresource", top, crOf(false, entryOf("", ownsMessage, 0), entryOf("scale", ownsReplicas, -1)), customresource.Edits{}, true},
		{"replicas by both", top, crOf(false, entryOf("", ownsReplicas, 0), entryOf("scale", ownsReplicas, -1)), customresource.Edits{}, true},
		{"replicas by an edit, after they were scaled", deep, crOf(false, entryOf("scale", ownsParent, -1), entryOf("", ownsDeep, 1)), customresource.Edits{Scale: true}, true},
		{"nested replicas", deep, crOf(false, entryOf("scale", ownsDeep, -1)), customresource.Edits{}, true},
		{"replicas in another field", deep, crOf(false, entryOf("", ownsReplicas, 0)), customresource.Edits{}, true},
		{"replicas in a map with one owner", deep, crOf(false, entryOf("", ownsWhole, 0)), customresource.Edits{}, true},
		{"a status write", top, crOf(true, entryOf("status", ownsStatus, 9)), customresource.Edits{}, true},
		{"a request after an edit", nil, crOf(true, entryOf("", ownsMessage, 1), entryOf("", ownsRequest, 2)), customresource.Edits{EditedAt: 1001, AskedAt: 1002}, true},
		{"a request and two edits", nil, crOf(true, entryOf("", ownsMessage, 3), entryOf("", ownsDeep, 1), entryOf("", ownsRequest, 2)), customresource.Edits{EditedAt: 1003, AskedAt: 1002}, true},
		{"a request and an edit by one writer", nil, crOf(true, entryOf("", ownsBoth, 2)), customresource.Edits{EditedAt: 1002, AskedAt: 1002}, true},
		{"a request that another manager applies again", nil, crOf(true, entryOf("", ownsRequest, 1), entryOf("", ownsRequest, 5)), customresource.Edits{AskedAt: 1001}, true},
		{"entries without times", nil, crOf(true, entryOf("", ownsBoth, -1)), customresource.Edits{}, true},
		{"malformed entries", top, crOf(true, "text", map[string]any{"fieldsV1": "text", "time": int64(1)}), customresource.Edits{}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			cr := packed(test.cr, test.scale)
			e, known := customresource.EditsOf(cr)
			if diff := cmp.Diff(test.want, e); diff != "" || known != test.known {
				t.Errorf("known %v, want %v (-want +got):\n%s", known, test.known, diff)
			}
			if cr.GetManagedFields() != nil {
				t.Error("managedFields were not removed")
			}
		})
	}
}
