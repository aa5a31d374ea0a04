package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/authoring/preview"
	"github.com/chartwright/chartwright/internal/chart"
)

// Build runs kustomize in a folder and returns the objects.
func Build(folder string) ([]*unstructured.Unstructured, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("kustomize %s: %w", folder, err)
	}
	objects := make([]*unstructured.Unstructured, 0, built.Size())
	for _, resource := range built.Resources() {
		// The maps of kustomize contain number types that apimachinery does not support.
		object := &unstructured.Unstructured{}
		data, err := resource.MarshalJSON()
		if err == nil {
			err = object.UnmarshalJSON(data)
		}
		if err != nil {
			return nil, fmt.Errorf("kustomize %s: %w", folder, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// parts are the objects of config/manifests by their use.
type parts struct {
	// base is the ClusterServiceVersion of the author, and scorecard the optional
	// configuration of the scorecard.
	base, scorecard *unstructured.Unstructured
	// namespace is the namespace of the operator without OLM.
	namespace string
	// definitions are sorted by name.
	definitions []typed[apiextensionsv1.CustomResourceDefinition]
	deployments []typed[appsv1.Deployment]
	accounts    []*unstructured.Unstructured
	// roles are Roles and ClusterRoles, which have no namespace. Likewise bindings.
	roles    []typed[rbacv1.ClusterRole]
	bindings []typed[rbacv1.ClusterRoleBinding]
	// samples are custom resources of the CRDs.
	samples []*unstructured.Unstructured
	// others are additional objects of the bundle.
	others []*unstructured.Unstructured
}

// typed is an object as its Go type, and as config/manifests has it.
type typed[T any] struct {
	as     T
	source *unstructured.Unstructured
}

// appendTyped converts an object, strictly, and appends it to a list.
func appendTyped[T any](list []typed[T], object *unstructured.Unstructured) ([]typed[T], error) {
	one := typed[T]{source: object}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &one.as, true)
	return append(list, one), err
}

const (
	groupOLM       = "operators.coreos.com"
	groupScorecard = "scorecard.operatorframework.io"
)

// sortObjects sorts the objects by their kind.
func sortObjects(objects []*unstructured.Unstructured) (*parts, error) {
	p := &parts{}
	var rest []*unstructured.Unstructured
	for _, object := range objects {
		known, err := p.add(object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if !known {
			rest = append(rest, object)
		}
	}
	if p.base == nil {
		return nil, errors.New("config/manifests has no ClusterServiceVersion: add bases/clusterserviceversion.yaml to its resources, as in a new project of 'chartwright init'")
	}
	slices.SortFunc(p.definitions, func(a, b typed[apiextensionsv1.CustomResourceDefinition]) int {
		return strings.Compare(a.as.Name, b.as.Name)
	})
	for _, object := range rest {
		kind := object.GroupVersionKind().GroupKind()
		if slices.ContainsFunc(p.definitions, func(d typed[apiextensionsv1.CustomResourceDefinition]) bool {
			return d.as.Spec.Group == kind.Group && d.as.Spec.Names.Kind == kind.Kind
		}) {
			p.samples = append(p.samples, object)
		} else {
			p.others = append(p.others, object)
		}
	}
	return p, nil
}

// add adds an object to the parts by its kind, and reports whether the kind is known.
func (p *parts) add(object *unstructured.Unstructured) (known bool, err error) {
	kind := object.GroupVersionKind().GroupKind()
	switch kind {
	case schema.GroupKind{Group: groupOLM, Kind: "ClusterServiceVersion"}:
		if p.base != nil {
			return true, fmt.Errorf("there is another one, %s: a bundle can only contain one", p.base.GetName())
		}
		p.base = object
	case schema.GroupKind{Group: groupScorecard, Kind: "Configuration"}:
		if p.scorecard != nil {
			return true, fmt.Errorf("there is another one, %s: a bundle can only contain one", p.scorecard.GetName())
		}
		p.scorecard = object
	case schema.GroupKind{Kind: "Namespace"}:
		p.namespace = object.GetName()
	case schema.GroupKind{Kind: "ServiceAccount"}:
		p.accounts = append(p.accounts, object)
	case schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}:
		p.definitions, err = appendTyped(p.definitions, object)
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
		p.deployments, err = appendTyped(p.deployments, object)
	case schema.GroupKind{Group: rbacv1.GroupName, Kind: "Role"}, schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}:
		p.roles, err = appendTyped(p.roles, object)
	case schema.GroupKind{Group: rbacv1.GroupName, Kind: "RoleBinding"}, schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"}:
		p.bindings, err = appendTyped(p.bindings, object)
	default:
		return false, nil
	}
	return true, err
}

// supported lists the kinds that OLM supports in bundles, in addition to
// ClusterServiceVersion and CustomResourceDefinition. NetworkPolicy requires version 1.55
// of operator-registry.
var supported = []string{
	"ClusterRole", "ClusterRoleBinding", "ConfigMap", "ConsoleCLIDownload", "ConsoleLink", "ConsoleQuickStart", "ConsoleYAMLSample",
	"NetworkPolicy", "PodDisruptionBudget", "PriorityClass", "PrometheusRule", "Role", "RoleBinding", "Secret", "Service",
	"ServiceAccount", "ServiceMonitor", "VerticalPodAutoscaler",
}

// dropUnsupported removes objects that OLM does not support.
func (m *maker) dropUnsupported() {
	m.others = slices.DeleteFunc(m.others, func(object *unstructured.Unstructured) bool {
		known := slices.Contains(supported, object.GetKind())
		if !known {
			m.notef("%s %s is not in the bundle: OLM does not support the kind %[1]s", object.GetKind(), object.GetName())
		}
		return !known
	})
}

// examples are the samples, and the objects that the charts render for them.
type examples struct {
	// resources are the samples.
	resources []map[string]any
	// kinds maps the kinds of samples to the kinds of their objects.
	kinds map[schema.GroupKind][]apiOf
	// images are the images of their containers.
	images []relatedImage
}

// exampleNamespace is the namespace of samples without one.
const exampleNamespace = "default"

// examples renders the samples like the operator.
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
			m.notef("sample %s %s: its objects are not listed: %v", sample.GetKind(), sample.GetName(), err)
		}
	}
	for _, resource := range file.Resources {
		rendered, err := file.Render(ctx, resource, preview.Options{})
		if err != nil {
			m.notef("sample %s: its objects are not listed: %v", resource, err)
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

// add adds the kind and the images of an object of a sample.
func (e *examples) add(kind schema.GroupKind, object chart.RenderedObject) {
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

// containers returns the containers and initContainers anywhere in an object, ordered by
// field names.
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
