package bundle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/authoring/preview"
	"github.com/chartwright/chartwright/internal/helm"
)

// examples are the samples, and what the charts make of them.
type examples struct {
	// resources are the samples themselves.
	resources []map[string]any
	// kinds are those of the objects of each sample's release.
	kinds map[schema.GroupKind][]apiOf
	// images are those of their containers.
	images []relatedImage
}

// exampleNamespace is where the samples are thought to be.
const exampleNamespace = "default"

// examples renders the samples, as the operator would.
func (m *maker) examples(ctx context.Context) examples {
	found := examples{resources: []map[string]any{}, kinds: map[schema.GroupKind][]apiOf{}}
	file := preview.NewFile(m.Kinds, exampleNamespace)
	for _, sample := range m.samples {
		found.resources = append(found.resources, sample.Object)
		data, err := yaml.Marshal(sample.Object)
		if err == nil {
			err = file.Parse(sample.GetName(), data)
		}
		if err != nil {
			m.notef("the sample %s %s: what it is made of is not listed: %v", sample.GetKind(), sample.GetName(), err)
		}
	}
	for _, resource := range file.Resources {
		rendered, err := file.Render(ctx, resource, preview.Options{})
		if err != nil {
			m.notef("the sample %s: what it is made of is not listed: %v", resource, err)
			continue
		}
		kind := resource.Object.GroupVersionKind().GroupKind()
		for _, object := range slices.Concat(rendered.Objects, rendered.Hooks) {
			found.add(kind, object)
		}
	}
	for kind := range found.kinds {
		slices.SortFunc(found.kinds[kind], func(a, b apiOf) int {
			return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Version, b.Version))
		})
	}
	return found
}

// add notes an object of a kind's release.
func (e *examples) add(kind schema.GroupKind, object helm.RenderedObject) {
	api := apiOf{Kind: object.GetKind(), Version: object.GroupVersionKind().Version}
	if !slices.Contains(e.kinds[kind], api) {
		e.kinds[kind] = append(e.kinds[kind], api)
	}
	for _, container := range containers(object.Object) {
		image, _, _ := unstructured.NestedString(container, "image")
		name, _, _ := unstructured.NestedString(container, "name")
		if image == "" || slices.ContainsFunc(e.images, func(known relatedImage) bool { return known.Image == image }) {
			continue
		}
		name = strings.ToLower(kind.Kind) + "-" + name
		for n, base := 2, name; slices.ContainsFunc(e.images, func(known relatedImage) bool { return known.Name == name }); n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		e.images = append(e.images, relatedImage{Name: name, Image: image})
	}
}

// containers returns those of a pod's template, wherever in the object it is, in
// the order of the fields' names.
func containers(value any) []map[string]any {
	var found []map[string]any
	switch value := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(value) {
			list, isList := value[key].([]any)
			if !isList || key != "containers" && key != "initContainers" {
				found = append(found, containers(value[key])...)
				continue
			}
			for _, item := range list {
				if container, ok := item.(map[string]any); ok {
					found = append(found, container)
				}
			}
		}
	case []any:
		for _, item := range value {
			found = append(found, containers(item)...)
		}
	}
	return found
}
