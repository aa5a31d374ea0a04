package crdwatch

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/testenv"
)

func TestCompact_KeepsLittleOfOversizedCRDs(t *testing.T) {
	testenv.ExpectRetained(t, 8<<10, func(int) any {
		data := testenv.Oversized("apiextensions.k8s.io/v1", "CustomResourceDefinition", "a", nil, api.AnnotationRolloutPaused)
		kept, err := compact(testenv.Decode[metav1.PartialObjectMetadata](t, data))
		if err != nil {
			t.Fatal(err)
		}
		return kept
	})
}
