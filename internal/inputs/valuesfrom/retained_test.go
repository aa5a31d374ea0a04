package valuesfrom

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/testenv"
)

func TestCompact_KeepsLittleOfOversizedObjects(t *testing.T) {
	testenv.ExpectRetained(t, 8<<10, func(int) any {
		kept, err := Compact(testenv.Decode[metav1.PartialObjectMetadata](t, testenv.Oversized("v1", "ConfigMap", "a", nil)))
		if err != nil {
			t.Fatal(err)
		}
		return kept
	})
}
