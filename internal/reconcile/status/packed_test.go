package status

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/customresource"
)

// pack packs a custom resource as in the cache.
func pack(t *testing.T, cr *unstructured.Unstructured) {
	t.Helper()
	data, err := json.Marshal(cr.Object)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := customresource.Decoder{}.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	cr.Object = packed.Object
}

func TestPack(t *testing.T) {
	whole := map[string]any{
		"state":              "Ready",
		"observedGeneration": int64(9007199254740993),
		"replicas":           int64(3),
		"share":              0.5,
		"conditions":         []any{map[string]any{"type": "Ready", "status": "True"}},
		"release":            map[string]any{"name": "web", "revision": int64(2)},
	}
	cr := &unstructured.Unstructured{Object: map[string]any{"status": whole}}
	before := Read(cr)
	pack(t, cr)
	if text, ok := cr.Object["status"].(string); !ok || text == "" {
		t.Fatalf("packed it is %T", cr.Object["status"])
	}
	if diff := cmp.Diff(whole, readFields(cr)); diff != "" {
		t.Errorf("the fields (-before +packed):\n%s", diff)
	}
	if diff := cmp.Diff(before, Read(cr)); diff != "" || before.Release.Revision != 2 {
		t.Errorf("the status (-before +packed):\n%s", diff)
	}
	if !Exists(cr) {
		t.Error("the packed status does not exist")
	}
}

// TestPack_InvalidStatus: an invalid status counts as empty, packed or not.
func TestPack_InvalidStatus(t *testing.T) {
	for name, object := range map[string]map[string]any{
		"none":       {},
		"an empty":   {"status": map[string]any{}},
		"a null":     {"status": nil},
		"a list":     {"status": []any{"a"}},
		"a wrong":    {"status": map[string]any{"conditions": "none"}},
		"a cut text": {"status": `{"state": "Rea`},
	} {
		cr := &unstructured.Unstructured{Object: object}
		pack(t, cr)
		if diff := cmp.Diff(api.Status{}, Read(cr)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got, want := Exists(cr), name == "a wrong"; got != want {
			t.Errorf("%s: there is a status: %v, want %v", name, got, want)
		}
	}
}
