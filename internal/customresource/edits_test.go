package customresource

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
)

// TestDecode_EditsAreThoseOfDecodedManagedFields compares the edits with those
// that are read from managedFields as maps.
func TestDecode_EditsAreThoseOfDecodedManagedFields(t *testing.T) {
	paths := []string{"f:spec", "f:replicas", "f:message", "f:metadata", "f:annotations", "f:" + api.AnnotationRollbackTo, "."}
	var fields func(depth int) *rapid.Generator[any]
	fields = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return rapid.Just[any](map[string]any{})
		}
		return rapid.Custom(func(t *rapid.T) any {
			return rapid.MapOfN(rapid.SampledFrom(paths), fields(depth-1), 0, 4).Draw(t, "fields")
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		entries := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "entries") {
			entry := map[string]any{"manager": "m", "fieldsV1": fields(3).Draw(t, "fieldsV1")}
			if subresource := rapid.SampledFrom([]string{"none", "", "scale", "status"}).Draw(t, "subresource"); subresource != "none" {
				entry["subresource"] = subresource
			}
			if second := rapid.IntRange(-1, 3).Draw(t, "time"); second >= 0 {
				entry["time"] = time.Unix(int64(1000+second), 0).UTC().Format(time.RFC3339)
			}
			entries = append(entries, entry)
		}
		metadata := map[string]any{"managedFields": entries}
		asked := rapid.Bool().Draw(t, "asked")
		if asked {
			metadata["annotations"] = map[string]any{api.AnnotationRollbackTo: "1"}
		}
		scale := rapid.SampledFrom([][]string{nil, {"spec", "replicas"}}).Draw(t, "scale")
		data, err := json.Marshal(map[string]any{"apiVersion": "g/v1", "kind": "K", "metadata": metadata})
		if err != nil {
			t.Fatal(err)
		}
		cr, err := Decoder{Scale: scale}.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		got, known := EditsOf(cr)
		want, wanted := Edits{}, len(entries) > 0 && (asked || scale != nil)
		if wanted {
			want = expected(entries, scale, asked)
		}
		if diff := cmp.Diff(want, got); diff != "" || known != wanted {
			t.Errorf("known %v, want %v (-want +got):\n%s", known, wanted, diff)
		}
	})
}

// expected is another implementation of the function under test: it reads the edits from
// managedFields that are decoded to maps.
func expected(entries []any, scale []string, asked bool) Edits {
	var e Edits
	scaled := false
	for _, each := range entries {
		entry := each.(map[string]any)
		fields := entry["fieldsV1"].(map[string]any)
		switch entry["subresource"] {
		case "scale":
			scaled = scaled || has(fields, scale)
			continue
		case "status":
			continue
		}
		e.Scale = e.Scale || has(fields, scale)
		if !asked {
			continue
		}
		text, _ := entry["time"].(string)
		at := int64(0)
		if noted, err := time.Parse(time.RFC3339, text); err == nil {
			at = noted.Unix()
		}
		if _, spec := fields["f:spec"]; spec {
			e.EditedAt = max(e.EditedAt, at)
		}
		if at > 0 && has(fields, []string{"metadata", "annotations", api.AnnotationRollbackTo}) && (e.AskedAt == 0 || at < e.AskedAt) {
			e.AskedAt = at
		}
	}
	e.Scale = e.Scale && !scaled
	return e
}

func has(fields map[string]any, path []string) bool {
	for _, name := range path {
		below, is := fields["f:"+name].(map[string]any)
		if !is {
			return false
		}
		fields = below
	}
	return len(path) > 0
}

// TestDecode_LargeManagedFields: the API server writes a field into managedFields
// for each field of a spec.
func TestDecode_LargeManagedFields(t *testing.T) {
	text := `{"apiVersion":"g/v1","kind":"K","metadata":{"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{` +
		strings.Repeat(`"f:a":{},`, 100_000) + `"f:replicas":{}}}}]},"spec":{}}`
	if e, known := EditsOf(decode(t, text)); !known || !e.Scale {
		t.Errorf("%+v, known %v", e, known)
	}
}
