package inventory

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/testenv"
)

func TestTransform_KeepsLittleOfOversizedObjects(t *testing.T) {
	labels := map[string]string{api.LabelOwnerUID: "u", api.LabelOperator: "chartwright"}
	annotations := []string{api.AnnotationApplied, api.AnnotationOwner, api.AnnotationDrift, api.AnnotationProtect, api.AnnotationClaims}
	expect := func(decode func() any) {
		t.Helper()
		testenv.ExpectRetained(t, 8<<10, func(int) any {
			kept, err := HealthConfig{}.transform(decode())
			if err != nil {
				t.Fatal(err)
			}
			return kept
		})
	}
	expect(func() any {
		return testenv.Decode[metav1.PartialObjectMetadata](t, testenv.Oversized("v1", "ConfigMap", "a", labels, annotations...))
	})
	for _, kind := range []string{"Widget", "Pod", "Rollout"} {
		expect(func() any {
			return testenv.Decode[unstructured.Unstructured](t, testenv.Oversized("example.com/v1", kind, "a", labels, annotations...))
		})
	}
	expect(func() any {
		typed := &appsv1.Deployment{}
		m := testenv.Decode[metav1.PartialObjectMetadata](t, testenv.Oversized("apps/v1", "Deployment", "a", labels, annotations...))
		typed.ObjectMeta = m.ObjectMeta
		typed.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Progressing", Status: "False", Reason: m.Annotations["example.com/any"], Message: m.Annotations["example.com/any"]}}
		return typed
	})
}
