package preview

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
)

// Admission is what the API server does with custom resources of a kind, by the
// CRD that is derived from its chart.
type Admission struct {
	definition *apiextensionsv1.CustomResourceDefinition
	schema     *structural.Structural
	validator  schemavalidation.SchemaValidator
}

// NewAdmission derives the CRD of a kind.
func NewAdmission(kind catalog.Kind) (*Admission, error) {
	definition, _, err := crd.Generate(kind)
	if err != nil {
		return nil, err
	}
	// All versions have one schema.
	var schema apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema, nil); err != nil {
		return nil, err
	}
	a := &Admission{definition: definition}
	if a.schema, err = structural.NewStructural(&schema); err != nil {
		return nil, err
	}
	if a.validator, _, err = schemavalidation.NewSchemaValidator(&schema); err != nil {
		return nil, err
	}
	return a, nil
}

// Prune takes out of a custom resource what the CRD does not know, and returns
// its paths; and, without a word, nulls where the CRD has none, and the status,
// which nobody can apply.
func (a *Admission) Prune(object *unstructured.Unstructured) []string {
	delete(object.Object, "status")
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, a.schema)
	return pruning.PruneWithOptions(object.Object, a.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Refuse says why the API server would not take a custom resource, each problem
// with the path of its field.
func (a *Admission) Refuse(object *unstructured.Unstructured) []string {
	var problems []string
	if object.GetName() == "" {
		problems = append(problems, "metadata.name: Required value")
	} else if wrong := validation.IsDNS1123Subdomain(object.GetName()); len(wrong) > 0 {
		problems = append(problems, fmt.Sprintf("metadata.name: Invalid value: %q: %s", object.GetName(), strings.Join(wrong, "; ")))
	}
	if problem := a.version(object.GroupVersionKind().Version); problem != "" {
		problems = append(problems, problem)
	}
	if namespace := object.GetNamespace(); namespace != "" && a.definition.Spec.Scope == apiextensionsv1.ClusterScoped {
		problems = append(problems, fmt.Sprintf("metadata.namespace: %s: the kind has no namespace", namespace))
	}
	for _, err := range a.Invalid(object) {
		problems = append(problems, err.Error())
	}
	slices.Sort(problems)
	return problems
}

// Invalid holds a custom resource against the schema alone.
func (a *Admission) Invalid(object *unstructured.Unstructured) field.ErrorList {
	return schemavalidation.ValidateCustomResource(nil, object.Object, a.validator)
}

// Definition is the CRD. Nobody may change it.
func (a *Admission) Definition() *apiextensionsv1.CustomResourceDefinition { return a.definition }

// version says what is wrong with a version.
func (a *Admission) version(name string) string {
	var served []string
	for _, version := range a.definition.Spec.Versions {
		if version.Served {
			served = append(served, a.definition.Spec.Group+"/"+version.Name)
		}
	}
	if slices.Contains(served, a.definition.Spec.Group+"/"+name) {
		return ""
	}
	return fmt.Sprintf("apiVersion: the version %s is not served: expected one of %s", name, strings.Join(served, ", "))
}
