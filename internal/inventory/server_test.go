package inventory

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chartwright/chartwright/internal/testenv"
)

// server starts an API server. It skips the test if the binaries are not installed.
func server(t *testing.T) *envtest.Environment {
	t.Helper()
	env := testenv.Start(t)
	env.Config.QPS = -1
	return env
}

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
