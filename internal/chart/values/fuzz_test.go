package values_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chartwright/chartwright/internal/chart/values"
)

// FuzzMerge checks that Merge and Coalesce accept any JSON and are deterministic, that merging
// twice changes nothing, and that the result shares no memory with the overrides.
func FuzzMerge(f *testing.F) {
	f.Add(`{"a": {"b": 1, "c": [1]}}`, `{"a": {"b": {"d": 2}, "c": null}}`)
	f.Add(`{"a": 1e300, "": {"": {}}}`, `{"a": 9007199254740993, "": {"": []}}`)
	f.Fuzz(func(t *testing.T, spec, overrides string) {
		read := func(text string) map[string]any {
			var object any
			if json.Unmarshal([]byte(text), &object) != nil {
				return nil
			}
			found, err := values.FromSpec(map[string]any{"spec": object})
			if err != nil {
				return nil
			}
			return found
		}
		base, over := read(spec), read(overrides)
		if base == nil || over == nil {
			return
		}
		before := runtime.DeepCopyJSON(over)
		merged := values.Merge(runtime.DeepCopyJSON(base), over)
		digest := values.Digest(merged)
		if again := values.Merge(runtime.DeepCopyJSON(base), over); values.Digest(again) != digest {
			t.Fatalf("a second merge of the same values differs:\n%s", cmp.Diff(merged, again))
		}
		if twice := values.Merge(runtime.DeepCopyJSON(merged), over); values.Digest(twice) != digest {
			t.Fatalf("merging the overrides twice changes the result:\n%s", cmp.Diff(merged, twice))
		}
		overwrite(merged)
		if diff := cmp.Diff(before, over); diff != "" {
			t.Fatalf("the result shares memory with the overrides:\n%s", diff)
		}
		coalesced := values.Coalesce(runtime.DeepCopyJSON(base), runtime.DeepCopyJSON(over))
		if values.Digest(coalesced) != values.Digest(values.Coalesce(runtime.DeepCopyJSON(base), runtime.DeepCopyJSON(over))) {
			t.Fatal("a second Coalesce of the same values differs")
		}
	})
}
