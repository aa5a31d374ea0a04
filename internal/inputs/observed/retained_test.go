package observed

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/inputs"
	"github.com/chartwright/chartwright/internal/testenv"
)

func TestTransform_KeepsLittleOfOversizedObjects(t *testing.T) {
	for _, paths := range [][][]string{{{}}, {{"data", "key"}}, {{"data", "absent"}, {"status", "phase"}}, {{"metadata", "labels", "release"}}} {
		store := NewStore(nil, inputs.DefaultLimits, func(types.UID) {})
		transform := store.Transform(pods.Reading(paths))
		for _, release := range []string{"web", strings.Repeat("x", 250<<10)} {
			testenv.ExpectRetained(t, 8<<10, func(int) any {
				labels := map[string]string{"app": "podset", "release": release}
				kept, err := transform(testenv.Decode[unstructured.Unstructured](t, testenv.Oversized("v1", "Pod", "a", labels)))
				if err != nil {
					t.Fatal(err)
				}
				return kept
			})
		}
	}
}
