package observed

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/testenv"
)

func TestTransform_KeepsLittleOfOversizedObjects(t *testing.T) {
	labels := map[string]string{"app": "podset", "release": strings.Repeat("x", 250<<10)}
	data := testenv.Oversized("v1", "Pod", "a", labels)
	for _, paths := range [][][]string{{{}}, {{"data", "key"}}, {{"data", "absent"}, {"status", "phase"}}} {
		store := NewStore(nil, func(types.UID) {})
		transform := store.Feed(pods.Reading(paths)).Transform
		testenv.ExpectRetained(t, 8<<10, func(int) any {
			kept, err := transform(testenv.Decode[unstructured.Unstructured](t, data))
			if err != nil {
				t.Fatal(err)
			}
			return kept
		})
	}
}
