package crd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// manifests are the extensions of manifest files.
var manifests = []string{".yaml", ".yml", ".json"}

// ReadFiles reads the CRDs of a file, or of all manifests in a folder, and ignores objects
// of other kinds. It returns an error if it finds no CRD.
func ReadFiles(path string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	names := []string{path}
	if entries, err := os.ReadDir(path); err == nil {
		names = nil
		for _, entry := range entries {
			if !entry.IsDir() && slices.Contains(manifests, filepath.Ext(entry.Name())) {
				names = append(names, filepath.Join(path, entry.Name()))
			}
		}
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		found, err := definitionsIn(bytes.NewReader(data), name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return someOf(all, path)
}

// FollowExisting sets the plural, scope and versions that entries leave open as in the CRDs of the
// project, which are in config/crd/bases next to the watches file.
func FollowExisting(kinds []catalog.Kind, watchesFile string) error {
	folder := filepath.Join(filepath.Dir(watchesFile), "config", "crd", "bases")
	files, err := fs.Glob(os.DirFS(folder), "*.yaml")
	var existing []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		file = filepath.Join(folder, file)
		data, unread := os.ReadFile(file)
		found, invalid := definitionsIn(bytes.NewReader(data), file)
		// Other files may be leftovers of any content.
		if unread != nil || invalid != nil && bytes.Contains(data, []byte("CustomResourceDefinition")) {
			return errors.Join(unread, invalid)
		}
		existing = append(existing, found...)
	}
	for i := range kinds {
		kind := &kinds[i].Watch
		at := slices.IndexFunc(existing, func(one *apiextensionsv1.CustomResourceDefinition) bool {
			return one.Spec.Group == kind.Group && one.Spec.Names.Kind == kind.Kind
		})
		if at < 0 {
			continue
		}
		spec := existing[at].Spec
		kind.Plural = cmp.Or(kind.Plural, spec.Names.Plural)
		kind.Scope = cmp.Or(kind.Scope, watches.Scope(spec.Scope))
		if len(kind.Versions) == 0 && len(spec.Versions) > 1 && slices.ContainsFunc(spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Served && v.Name == kind.Version
		}) {
			for _, v := range spec.Versions {
				kind.Versions = append(kind.Versions, watches.CRDVersion{
					Name: v.Name, Served: &v.Served, Storage: v.Storage, Deprecated: v.Deprecated, DeprecationWarning: ptr.Deref(v.DeprecationWarning, ""),
				})
			}
		}
	}
	return err
}

// Read reads CRDs, or a list of them, as printed by kubectl get -o yaml or -o json.
// The name appears only in errors.
func Read(from io.Reader, name string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	found, err := definitionsIn(from, name)
	if err != nil {
		return nil, err
	}
	return someOf(found, name)
}

func someOf(found []*apiextensionsv1.CustomResourceDefinition, name string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: contains no CustomResourceDefinition", name)
	}
	return found, nil
}

func definitionsIn(from io.Reader, name string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var found []*apiextensionsv1.CustomResourceDefinition
	decoder := utilyaml.NewYAMLOrJSONDecoder(from, 4096)
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
			if items[i].GetKind() != "CustomResourceDefinition" {
				continue
			}
			definition, err := typed(&items[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			found = append(found, definition)
		}
	}
}

func typed(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	if version := object.GetAPIVersion(); version != apiextensionsv1.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("%s: apiVersion is %s, want %s", object.GetName(), version, apiextensionsv1.SchemeGroupVersion)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition); err != nil {
		return nil, fmt.Errorf("%s: %w", object.GetName(), err)
	}
	return definition, nil
}

// generated is the prefix of the first line of all generated CRD files.
const generated = "# generated by '"

// header is the start of a generated CRD file.
const header = generated + "chartwright generate' from the chart's values.schema.json or, if it has none, values.yaml: do not edit\n---\n"

// Marshal returns the CRD as YAML. The text is the same for equal CRDs.
func Marshal(definition *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	if err != nil {
		return nil, err
	}
	// The API server sets these fields. Go writes them even if they are empty.
	delete(fields, "status")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	body, err := yaml.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return append([]byte(header), body...), nil
}

// FileName returns the name of the CRD's file: <group>_<plural>.yaml.
func FileName(definition *apiextensionsv1.CustomResourceDefinition) string {
	return definition.Spec.Group + "_" + definition.Spec.Names.Plural + ".yaml"
}

// Write writes the CRD's file into a folder, which it creates if necessary.
func Write(dir string, definition *apiextensionsv1.CustomResourceDefinition) error {
	data, err := Marshal(definition)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, FileName(definition)), data, 0o644) //nolint:gosec // manifests are not secret
}

// Leftovers returns the generated CRD files in a folder that belong to none of the
// CRDs. The folder may be missing.
func Leftovers(dir string, definitions []*apiextensionsv1.CustomResourceDefinition) ([]string, error) {
	known := map[string]bool{}
	for _, definition := range definitions {
		known[FileName(definition)] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var left []string
	for _, entry := range entries {
		if entry.IsDir() || known[entry.Name()] || filepath.Ext(entry.Name()) != ".yaml" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		if first, _, _ := strings.Cut(string(data), "\n"); strings.HasPrefix(first, generated) && strings.Contains(string(data), "\nkind: CustomResourceDefinition\n") {
			left = append(left, filepath.Join(dir, entry.Name()))
		}
	}
	return left, nil
}
