package operatorchart

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/authoring/bundle"
)

// root is the root of the repository.
const root = "../.."

// build runs kustomize with folders below config/.
func build(resources, components []string) ([]*unstructured.Unstructured, error) {
	overlay, err := os.MkdirTemp("", "chartwright-overlay-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(overlay) //nolint:errcheck // a leftover does no harm
	// kustomize requires relative paths.
	relative := func(folders []string) ([]string, error) {
		paths := make([]string, len(folders))
		for i, folder := range folders {
			path, err := filepath.Abs(filepath.Join(root, "config", folder))
			if err != nil {
				return nil, err
			}
			if paths[i], err = filepath.Rel(overlay, path); err != nil {
				return nil, err
			}
		}
		return paths, nil
	}
	kustomization := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
	if kustomization["resources"], err = relative(resources); err != nil {
		return nil, err
	}
	if kustomization["components"], err = relative(components); err != nil {
		return nil, err
	}
	data, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), data, 0o600); err != nil {
		return nil, err
	}
	return bundle.Build(overlay)
}

// builds are the objects of the folders below config/. The chart consists of them.
type builds struct {
	// standard is config/default.
	standard []*unstructured.Unstructured
	// chartKinds and certificate are config/default with components, and the latter also
	// with config/prometheus.
	chartKinds, certificate []*unstructured.Unstructured
	// monitoring is config/prometheus, and approval is config/approval-policy.
	monitoring, approval []*unstructured.Unstructured
	// namespaced is config/namespaced.
	namespaced []*unstructured.Unstructured
}

func buildAll() (b builds, err error) {
	for _, one := range []struct {
		objects               *[]*unstructured.Unstructured
		resources, components []string
	}{
		{&b.standard, []string{"default"}, nil},
		{&b.chartKinds, []string{"default"}, []string{"chartkinds"}},
		{&b.certificate, []string{"default", "prometheus"}, []string{"metrics-certificate"}},
		{&b.monitoring, []string{"prometheus"}, nil},
		{&b.approval, []string{"approval-policy"}, nil},
		{&b.namespaced, []string{"namespaced"}, nil},
	} {
		if *one.objects, err = build(one.resources, one.components); err != nil {
			return b, fmt.Errorf("config/%s: %w", one.resources[0], err)
		}
	}
	return b, nil
}

// find returns the object of a kind with a name, or nil.
func find(objects []*unstructured.Unstructured, like *unstructured.Unstructured) *unstructured.Unstructured {
	for _, object := range objects {
		if object.GroupVersionKind() == like.GroupVersionKind() && object.GetName() == like.GetName() {
			return object
		}
	}
	return nil
}
