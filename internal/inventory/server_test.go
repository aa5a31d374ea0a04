package inventory

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// configMap returns a ConfigMap for the release of web.
func configMap(name string, labels map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "1"},
	}}
	object.SetNamespace("default")
	object.SetName(name)
	object.SetLabels(labels)
	return object
}
