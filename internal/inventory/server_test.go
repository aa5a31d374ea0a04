package inventory

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chartwright/chartwright/internal/testserver"
)

// server starts an API server. The test is skipped where there is none to
// start.
func server(t *testing.T) *envtest.Environment {
	t.Helper()
	if testing.Short() {
		t.Skip("an API server takes a few seconds to start: not in -short")
	}
	env, err := testserver.New()
	if errors.Is(err, testserver.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	env.Config.QPS = -1
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return env
}

// configMap returns one that web's release would have.
func configMap(name string, labels map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "1"},
	}}
	object.SetNamespace("default")
	object.SetName(name)
	object.SetLabels(labels)
	return object
}
