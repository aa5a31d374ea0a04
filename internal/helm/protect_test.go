package helm

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// TestPrepare_EndsNoProtection: charts often set annotations to values of the spec. Their
// author must not end the protection that an administrator has set on the live object.
func TestPrepare_EndsNoProtection(t *testing.T) {
	for value, kept := range map[string]bool{"true": true, "false": false, "": false, "no": false} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		o.SetName("web")
		o.SetAnnotations(map[string]string{api.AnnotationProtect: value, "team": "blue"})
		prepared, err := (&kubeClient{}).prepareWith(apply.Object{Unstructured: o, Mapping: &meta.RESTMapping{}}, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, is := prepared.GetAnnotations()[api.AnnotationProtect]; is != kept || prepared.GetAnnotations()["team"] != "blue" {
			t.Errorf("%q: annotations %v", value, prepared.GetAnnotations())
		}
	}
}
