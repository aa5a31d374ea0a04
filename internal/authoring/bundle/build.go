package bundle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Build returns the objects that kustomize makes of a folder.
func Build(folder string) ([]*unstructured.Unstructured, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("kustomize %s: %w", folder, err)
	}
	objects := make([]*unstructured.Unstructured, 0, built.Size())
	for _, resource := range built.Resources() {
		// Numbers have to be those that the API machinery expects, which the
		// maps of kustomize do not hold.
		text, err := resource.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("kustomize %s: %w", folder, err)
		}
		data, err := yaml.YAMLToJSON(text)
		if err != nil {
			return nil, fmt.Errorf("kustomize %s: %w", folder, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("kustomize %s: %w", folder, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
