package crd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// manifests are the ends of the names of files that hold manifests.
var manifests = []string{".yaml", ".yml", ".json"}

// ReadDir reads the definitions of all manifests in a folder. Objects of other
// kinds are passed over. It is an error if there is no definition at all.
func ReadDir(dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains(manifests, filepath.Ext(entry.Name())) {
			continue
		}
		found, err := readFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return someOf(all, dir)
}

// ReadFile reads the definitions of one file.
func ReadFile(name string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	found, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return someOf(found, name)
}

func readFile(name string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return definitionsIn(file, name)
}

// Read reads definitions as kubectl get -o yaml or -o json prints them, also in
// a list. The name is used in messages alone.
func Read(from io.Reader, name string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	found, err := definitionsIn(from, name)
	if err != nil {
		return nil, err
	}
	return someOf(found, name)
}

func someOf(found []*apiextensionsv1.CustomResourceDefinition, name string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no CustomResourceDefinition in it", name)
	}
	return found, nil
}

func definitionsIn(from io.Reader, name string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var found []*apiextensionsv1.CustomResourceDefinition
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		items := []unstructured.Unstructured{*object}
		if object.IsList() {
			list, err := object.ToList()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			items = list.Items
		}
		for i := range items {
			definition, err := typed(&items[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if definition != nil {
				found = append(found, definition)
			}
		}
	}
}

// typed returns nil for what is no definition.
func typed(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	if object.GetKind() != "CustomResourceDefinition" {
		return nil, nil //nolint:nilnil // there is neither a definition nor anything wrong
	}
	if version := object.GetAPIVersion(); version != apiextensionsv1.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("%s is of %s: expected %s, which kubectl get writes", object.GetName(), version, apiextensionsv1.SchemeGroupVersion)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition); err != nil {
		return nil, fmt.Errorf("%s: %w", object.GetName(), err)
	}
	return definition, nil
}
