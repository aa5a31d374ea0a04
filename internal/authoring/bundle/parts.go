package bundle

import (
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
)

// parts are the objects of config/manifests, by what becomes of them.
type parts struct {
	// base is the ClusterServiceVersion that a person wrote, scorecard the
	// configuration of the scorecard, or nil.
	base, scorecard *unstructured.Unstructured
	// namespace is where the operator is deployed without OLM.
	namespace string
	// definitions are in the order of their names; source has them as they are
	// written.
	definitions []*apiextensionsv1.CustomResourceDefinition
	source      map[string]*unstructured.Unstructured
	deployments []deployment
	accounts    []*unstructured.Unstructured
	roles       []role
	bindings    []binding
	// samples are custom resources of the definitions.
	samples []*unstructured.Unstructured
	// others are to be files of the bundle.
	others []*unstructured.Unstructured
}

type deployment struct {
	appsv1.Deployment

	source *unstructured.Unstructured
}

// role is a Role or, without a namespace, a ClusterRole.
type role struct {
	rbacv1.ClusterRole

	source *unstructured.Unstructured
}

// binding is a RoleBinding or, without a namespace, a ClusterRoleBinding.
type binding struct {
	rbacv1.ClusterRoleBinding

	source *unstructured.Unstructured
}

const (
	groupOLM       = "operators.coreos.com"
	groupScorecard = "scorecard.operatorframework.io"
)

// sortOut tells the objects apart.
func sortOut(objects []*unstructured.Unstructured) (*parts, error) {
	p := &parts{source: map[string]*unstructured.Unstructured{}}
	var rest []*unstructured.Unstructured
	for _, object := range objects {
		known, err := p.take(object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if !known {
			rest = append(rest, object)
		}
	}
	if p.base == nil {
		return nil, errors.New("config/manifests has no ClusterServiceVersion: it is to list the one of bases/, as in a new project of 'chartwright init'")
	}
	slices.SortFunc(p.definitions, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	for _, object := range rest {
		if p.definition(object.GroupVersionKind().GroupKind()) != nil {
			p.samples = append(p.samples, object)
		} else {
			p.others = append(p.others, object)
		}
	}
	return p, nil
}

// take puts an object to those of its kind, and tells whether there are such.
func (p *parts) take(object *unstructured.Unstructured) (known bool, err error) {
	kind := object.GroupVersionKind().GroupKind()
	switch kind {
	case schema.GroupKind{Group: groupOLM, Kind: "ClusterServiceVersion"}:
		if p.base != nil {
			return true, fmt.Errorf("there is another, %s: a bundle has one", p.base.GetName())
		}
		p.base = object
	case schema.GroupKind{Group: groupScorecard, Kind: "Configuration"}:
		if p.scorecard != nil {
			return true, fmt.Errorf("there is another, %s: a bundle has one", p.scorecard.GetName())
		}
		p.scorecard = object
	case schema.GroupKind{Kind: "Namespace"}:
		p.namespace = object.GetName()
	case schema.GroupKind{Kind: "ServiceAccount"}:
		p.accounts = append(p.accounts, object)
	case schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}:
		definition := &apiextensionsv1.CustomResourceDefinition{}
		p.definitions = append(p.definitions, definition)
		p.source[object.GetName()] = object
		err = convert(object, definition)
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
		d := deployment{source: object}
		err = convert(object, &d.Deployment)
		p.deployments = append(p.deployments, d)
	case schema.GroupKind{Group: rbacv1.GroupName, Kind: "Role"}, schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}:
		r := role{source: object}
		err = convert(object, &r.ClusterRole)
		p.roles = append(p.roles, r)
	case schema.GroupKind{Group: rbacv1.GroupName, Kind: "RoleBinding"}, schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"}:
		b := binding{source: object}
		err = convert(object, &b.ClusterRoleBinding)
		p.bindings = append(p.bindings, b)
	default:
		return false, nil
	}
	return true, err
}

func convert(object *unstructured.Unstructured, to any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, to, true)
}

// definition returns the definition of a kind, nil if there is none.
func (p *parts) definition(kind schema.GroupKind) *apiextensionsv1.CustomResourceDefinition {
	for _, d := range p.definitions {
		if d.Spec.Group == kind.Group && d.Spec.Names.Kind == kind.Kind {
			return d
		}
	}
	return nil
}

// supported are the kinds that OLM takes beside the ClusterServiceVersion and
// definitions. NetworkPolicy came last, with version 1.55 of operator-registry.
var supported = []string{
	"ClusterRole", "ClusterRoleBinding", "ConfigMap", "ConsoleCLIDownload", "ConsoleLink", "ConsoleQuickStart", "ConsoleYAMLSample",
	"NetworkPolicy", "PodDisruptionBudget", "PriorityClass", "PrometheusRule", "Role", "RoleBinding", "Secret", "Service",
	"ServiceAccount", "ServiceMonitor", "VerticalPodAutoscaler",
}

// leaveOut takes from the others what OLM does not take.
func (m *maker) leaveOut() {
	m.others = slices.DeleteFunc(m.others, func(object *unstructured.Unstructured) bool {
		known := slices.Contains(supported, object.GetKind())
		if !known {
			m.notef("%s %s is left out: OLM takes no %[1]s beside an operator", object.GetKind(), object.GetName())
		}
		return !known
	})
}
