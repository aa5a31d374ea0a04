package chartkinds

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/testenv"
)

func TestOnlyIdentity_KeepsLittleOfOversizedCustomResources(t *testing.T) {
	testenv.ExpectRetained(t, 8<<10, func(int) any {
		cr := testenv.Decode[metav1.PartialObjectMetadata](t, testenv.Oversized("example.com/v1", "Widget", "a", nil))
		cr.Finalizers = append(cr.Finalizers, api.Finalizer)
		kept, err := onlyIdentity(cr)
		if err != nil {
			t.Fatal(err)
		}
		if m, is := kept.(*metav1.PartialObjectMetadata); !is || !slices.Equal(m.Finalizers, []string{api.Finalizer}) {
			t.Fatalf("kept %d finalizers, want only that of the operator", len(m.Finalizers))
		}
		return kept
	})
}
