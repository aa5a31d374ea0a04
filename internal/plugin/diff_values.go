package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart/values"
)

// readSpec reads chart values from a file that holds a custom resource, or the
// spec of one.
func readSpec(data []byte, kind schema.GroupKind, name string) (map[string]any, error) {
	if documents(data) > 1 {
		return nil, errors.New("it holds several documents: expected one custom resource, or its spec")
	}
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, err
	}
	object, ok := content.(map[string]any)
	if !ok && content != nil {
		return nil, errors.New("expected a custom resource, or its spec")
	}
	cr := unstructured.Unstructured{Object: object}
	if spec, ok := object["spec"].(map[string]any); ok && len(object) == 1 {
		// A custom resource of which the rest was left out.
		object = spec
	}
	if cr.GetAPIVersion() == "" || cr.GetKind() == "" {
		return values.FromSpec(map[string]any{"spec": object})
	}
	if found := cr.GroupVersionKind().GroupKind(); found != kind {
		return nil, fmt.Errorf("it holds a %s: expected a %s", found, kind)
	}
	if found := cr.GetName(); found != "" && found != name {
		return nil, fmt.Errorf("it holds %s %s: expected %s", kind.Kind, found, name)
	}
	return values.FromSpec(object)
}

// documents counts those of a YAML text that hold anything.
func documents(data []byte) (count int) {
	for document := range bytes.SplitSeq(append([]byte("\n"), data...), []byte("\n---")) {
		var content any
		if yaml.Unmarshal(document, &content) != nil || content != nil {
			count++
		}
	}
	return count
}

// beside returns what of the values of a revision does not come from the spec:
// what the operator took from valuesFrom and overrideValues. Where the revision
// is of this very spec, everything that differs is; where it may be of another,
// just what the spec does not speak of.
func beside(stored, spec map[string]any, same bool) map[string]any {
	rest := map[string]any{}
	for key, value := range stored {
		given, there := spec[key]
		inner, isMap := value.(map[string]any)
		givenInner, givenMap := given.(map[string]any)
		switch {
		case !there:
			rest[key] = value
		case isMap && givenMap:
			if more := beside(inner, givenInner, same); len(more) > 0 {
				rest[key] = more
			}
		case same && !reflect.DeepEqual(value, given):
			rest[key] = value
		}
	}
	return rest
}

// readFile reads a file, or standard input for "-".
func (s *session) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(s.In)
	}
	return os.ReadFile(name)
}
