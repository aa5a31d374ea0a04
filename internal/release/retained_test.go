package release_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/testenv"
)

func TestCompact_KeepsLittleOfOversizedSecrets(t *testing.T) {
	labels := secret(nil).Labels
	annotations := []string{
		api.AnnotationOwner, release.AnnotationRelease, release.AnnotationInventory, release.AnnotationLookups, release.AnnotationTested, release.AnnotationApproved,
	}
	for _, name := range []string{"sh.helm.release.v1.web.v3", "other"} {
		data := testenv.Oversized("v1", "Secret", name, labels, annotations...)
		testenv.ExpectRetained(t, 8<<10, func(int) any {
			kept, err := release.Compact(testenv.Decode[metav1.PartialObjectMetadata](t, data))
			if err != nil {
				t.Fatal(err)
			}
			return kept
		})
	}
}
