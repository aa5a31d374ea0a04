package preview

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/values"
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
	// sources are the objects that custom resources can take values from.
	sources map[valuesfrom.Ref]*unstructured.Unstructured
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
	return &File{kinds: kinds, namespace: namespace, sources: map[valuesfrom.Ref]*unstructured.Unstructured{}}
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
	isSource, cluster := f.isSource(gvk)
	for _, kind := range f.kinds {
		if kind.GVK().GroupKind() != gvk.GroupKind() {
			continue
		}
		if object.GetNamespace() == "" && kind.Scope != watches.ScopeCluster {
			object.SetNamespace(f.namespace)
		}
		f.Resources = append(f.Resources, Resource{Place: place, Kind: kind, Object: object})
		if isSource {
			f.addSource(&unstructured.Unstructured{Object: object.Object})
		}
		return nil
	}
	if !isSource {
		f.Others = append(f.Others, fmt.Sprintf("%s: %s %s is ignored: the watches file does not have its kind", place, object.GetKind(), object.GetName()))
		return nil
	}
	if object.GetNamespace() == "" && !cluster {
		object.SetNamespace(f.namespace)
	}
	f.addSource(object)
	return normalizeData(object)
}

// addSource adds an object that custom resources can take values from. Its numbers become
// those that an API server returns.
func (f *File) addSource(object *unstructured.Unstructured) {
	object.Object = values.Normalize(object.Object)
	// The store ignores objects without a version.
	object.SetResourceVersion("1")
	f.sources[valuesfrom.Ref{Kind: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName()}] = object
}

// isSource reports whether objects of a kind may be sources of values, and whether the kind
// is known to be cluster-scoped.
func (f *File) isSource(gvk schema.GroupVersionKind) (is, cluster bool) {
	for _, kind := range f.kinds {
		for _, source := range kind.Sources {
			if source.GVK() == gvk {
				return true, source.ClusterScoped
			}
		}
	}
	return gvk == valuesfrom.SecretKind || gvk == valuesfrom.ConfigMapKind, false
}

// normalizeData checks the data of a Secret or a ConfigMap, and adds the stringData of a
// Secret, as the API server does.
func normalizeData(object *unstructured.Unstructured) error {
	gvk := object.GroupVersionKind()
	isSecret := gvk == valuesfrom.SecretKind
	if !isSecret && gvk != valuesfrom.ConfigMapKind {
		return nil
	}
	data, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil || !isSecret {
		return err
	}
	for key, text := range data {
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return fmt.Errorf("data.%s: want base64; use stringData for plain text", key)
		}
	}
	plain, _, err := unstructured.NestedStringMap(object.Object, "stringData")
	if err != nil {
		return err
	}
	for key, text := range plain {
		if err := unstructured.SetNestedField(object.Object, base64.StdEncoding.EncodeToString([]byte(text)), "data", key); err != nil {
			return err
		}
	}
	unstructured.RemoveNestedField(object.Object, "stringData")
	return nil
}
