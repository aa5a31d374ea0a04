package preview

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/watches"
)

// File is the content of one or several files.
type File struct {
	// Resources are the custom resources of the kinds, in the order of the files.
	Resources []Resource
	// Others has a message for each document that is ignored.
	Others []string

	kinds     []catalog.Kind
	namespace string
	sources   map[valuesfrom.Ref]map[string][]byte
}

// Resource is a custom resource in a file.
type Resource struct {
	// Place is the file and document, for messages.
	Place  string
	Kind   catalog.Kind
	Object *unstructured.Unstructured
}

// String names the custom resource in messages.
func (r Resource) String() string {
	return r.Kind.Kind + " " + strings.TrimPrefix(r.Object.GetNamespace()+"/"+r.Object.GetName(), "/")
}

// NewFile returns an empty File. Objects without a namespace are in the given one, like
// with kubectl.
func NewFile(kinds []catalog.Kind, namespace string) *File {
	return &File{kinds: kinds, namespace: namespace, sources: map[valuesfrom.Ref]map[string][]byte{}}
}

// Parse adds the documents of a file. The error names the document.
func (f *File) Parse(name string, data []byte) error {
	reader := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var problems []error
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return errors.Join(problems...)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		place := fmt.Sprintf("%s: document %d", name, n)
		if err := f.document(place, document); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", place, err))
		}
	}
}

// ReadFile reads a file, or standard input if the name is "-". It also returns the name
// for messages.
func ReadFile(stdin io.Reader, name string) (shown string, data []byte, err error) {
	if name == "-" {
		data, err = io.ReadAll(stdin)
		return "standard input", data, err
	}
	data, err = os.ReadFile(name)
	return name, data, err
}

// DecodeStrict decodes a YAML document. It returns nil for an empty document. Like
// kubectl, it rejects duplicate keys.
func DecodeStrict(data []byte) (decoded any, err error) {
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	err = json.Unmarshal(text, &decoded)
	return decoded, err
}

func (f *File) document(place string, data []byte) error {
	decoded, err := DecodeStrict(data)
	if err != nil || decoded == nil {
		return err
	}
	content, ok := decoded.(map[string]any)
	if !ok {
		return errors.New("want an object with apiVersion and kind")
	}
	return f.add(place, &unstructured.Unstructured{Object: content})
}

func (f *File) add(place string, object *unstructured.Unstructured) error {
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return errors.New("want an object with apiVersion and kind")
	}
	if object.IsList() {
		list, err := object.ToList()
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := f.add(fmt.Sprintf("%s, item %d", place, i+1), &list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	}
	gvk := object.GroupVersionKind()
	for _, kind := range f.kinds {
		if kind.GVK().GroupKind() != gvk.GroupKind() {
			continue
		}
		if object.GetNamespace() == "" && kind.Scope != watches.ScopeCluster {
			object.SetNamespace(f.namespace)
		}
		f.Resources = append(f.Resources, Resource{Place: place, Kind: kind, Object: object})
		return nil
	}
	if gvk.Group == "" && (gvk.Kind == string(watches.SourceSecret) || gvk.Kind == string(watches.SourceConfigMap)) {
		return f.source(object)
	}
	f.Others = append(f.Others, fmt.Sprintf("%s: %s %s is ignored: the watches file does not have its kind", place, object.GetKind(), object.GetName()))
	return nil
}

// source adds a Secret or a ConfigMap.
func (f *File) source(object *unstructured.Unstructured) error {
	isSecret := object.GetKind() == string(watches.SourceSecret)
	keys := map[string][]byte{}
	data, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		return err
	}
	for key, text := range data {
		keys[key] = []byte(text)
		if isSecret {
			if keys[key], err = base64.StdEncoding.DecodeString(text); err != nil {
				return fmt.Errorf("data.%s: want base64; use stringData for plain text", key)
			}
		}
	}
	plain, _, err := unstructured.NestedStringMap(object.Object, "stringData")
	if err != nil {
		return err
	}
	for key, text := range plain {
		if isSecret {
			keys[key] = []byte(text)
		}
	}
	namespace := cmp.Or(object.GetNamespace(), f.namespace)
	f.sources[valuesfrom.Ref{Kind: watches.SourceKind(object.GetKind()), Namespace: namespace, Name: object.GetName()}] = keys
	return nil
}
