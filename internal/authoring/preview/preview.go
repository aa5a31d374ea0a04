package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
)

// Options are inputs of a render other than the file.
type Options struct {
	// Validate also checks that the API server would accept the custom resource, and
	// that the kind's allow block allows the rendered objects.
	Validate bool
	// KubeVersion and APIVersions set .Capabilities of the chart, see chart.Offline.
	KubeVersion string
	APIVersions []string
}

// Preview is the rendered release of a custom resource.
type Preview struct {
	*chart.Rendered
	// Release is the name of the release, and Namespace its namespace.
	Release, Namespace string
	// Warnings describe possibly unexpected effects.
	Warnings []string
}

// Render renders a custom resource like the operator. If it returns an error, it also
// returns the warnings.
func (f *File) Render(ctx context.Context, r Resource, o Options) (*Preview, error) {
	preview := &Preview{}
	admission, err := NewAdmission(r.Kind)
	if err != nil {
		return preview, err
	}
	cr := r.Object.DeepCopy()
	for _, path := range admission.Prune(cr) {
		preview.warnf("%s: the CRD does not have this field: kubectl rejects it, and the API server drops it for other clients", path)
	}
	if problem := admission.unserved(cr); problem != "" && !o.Validate {
		preview.warnf("%s", problem)
	}
	if o.Validate {
		if problems := admission.Problems(cr); len(problems) > 0 {
			return preview, rejected("the API server would not accept the custom resource", problems)
		}
	}
	r.Object = cr
	if r.Kind.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(r.Kind.Selector)
		if err != nil {
			return preview, err
		}
		if !selector.Matches(labels.Set(cr.GetLabels())) {
			preview.warnf("the operator would ignore the custom resource: its labels do not match the selector of the watches entry")
		}
	}
	given, err := f.given(ctx, r, preview)
	if err != nil {
		return preview, err
	}
	if r.Kind.Chart.Features.Lookup {
		preview.warnf("the chart uses lookup, which returns nothing without a cluster")
	}
	preview.Rendered, err = r.Kind.Chart.Render(chart.Offline{
		Release: preview.Release, Namespace: preview.Namespace, Values: given, Numbers: r.Kind.TemplateNumbers(),
		KubeVersion: o.KubeVersion, APIVersions: o.APIVersions,
	})
	if err == nil && o.Validate {
		err = preview.allowed(r.Kind)
	}
	return preview, err
}

// given returns the values for the chart, and sets the name and namespace of the release.
func (f *File) given(ctx context.Context, r Resource, preview *Preview) (map[string]any, error) {
	preview.Release = catalog.ReleaseNames(r.Object.GetName(), r.Kind.Kind)[0]
	preview.Namespace = r.Object.GetNamespace()
	var err error
	if r.Kind.Namespace != nil {
		if preview.Namespace, err = r.Kind.Namespace.For(r.Object.Object); err != nil {
			return nil, err
		}
	}
	if r.Kind.ServiceAccount != nil {
		if _, err := r.Kind.ServiceAccount.For(r.Object.Object); err != nil {
			return nil, err
		}
	}
	given, err := values.FromSpec(r.Object.Object)
	if err != nil {
		return nil, err
	}
	from, err := r.Kind.SourcesFor(r.Object, preview.Namespace)
	if err != nil {
		return nil, err
	}
	for _, source := range from {
		if _, exists := f.sources[source.Ref]; !exists && source.Optional {
			preview.warnf("the optional source of values %s is not in the file", source.Ref)
		}
	}
	merged, _, err := f.store().Merge(ctx, types.UID(r.Place), from, given)
	if unusable, ok := errors.AsType[*valuesfrom.Error](err); ok {
		return nil, fmt.Errorf("%w; for a preview, add it to the file as a separate document", unusable)
	}
	if err != nil {
		return nil, err
	}
	return values.Merge(merged, r.Kind.Overrides), nil
}

// store returns the operator's store of sources, which reads from the file instead of the
// cluster.
func (f *File) store() *valuesfrom.Store {
	store := valuesfrom.NewStore(func(_ context.Context, ref valuesfrom.Ref) (*unstructured.Unstructured, error) {
		return f.sources[ref], nil
	}, func(types.UID) {})
	for ref, object := range f.sources {
		store.Handler(ref.Kind).OnAdd(object, true)
	}
	return store
}

// allowed checks the rendered objects against the kind's allow block.
func (p *Preview) allowed(kind catalog.Kind) error {
	clusterScoped, err := kind.Chart.ClusterScoped()
	if err != nil {
		return err
	}
	var problems []string
	for _, o := range slices.Concat(p.Objects, p.Hooks) {
		if why := helm.Refused(o, kind.Allow, p.Namespace, clusterScoped(o.GroupVersionKind().GroupKind())); why != "" {
			problems = append(problems, fmt.Sprintf("%s: %s", o.Source, why))
		}
	}
	if len(problems) > 0 {
		return rejected("the operator would not allow the rendered objects", problems)
	}
	return nil
}

func (p *Preview) warnf(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

// rejected returns an error with a line for each problem.
func rejected(by string, problems []string) error {
	return fmt.Errorf("rejected: %s:\n  %s", by, strings.Join(problems, "\n  "))
}

// Admission applies the rules of a derived CRD to custom resources like the API server.
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
	a.validator, _, err = schemavalidation.NewSchemaValidator(&schema)
	return a, err
}

// Prune removes unknown fields from a custom resource and returns their paths. It also
// removes the status, and nulls that the CRD does not allow, without returning them.
func (a *Admission) Prune(object *unstructured.Unstructured) []string {
	delete(object.Object, "status")
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, a.schema)
	return pruning.PruneWithOptions(object.Object, a.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Problems returns the reasons why the API server would reject a custom resource, each with
// the path of the field.
func (a *Admission) Problems(object *unstructured.Unstructured) []string {
	var problems []string
	if object.GetName() == "" {
		problems = append(problems, "metadata.name: Required value")
	} else if wrong := validation.IsDNS1123Subdomain(object.GetName()); len(wrong) > 0 {
		problems = append(problems, fmt.Sprintf("metadata.name: Invalid value: %q: %s", object.GetName(), strings.Join(wrong, "; ")))
	}
	if problem := a.unserved(object); problem != "" {
		problems = append(problems, problem)
	}
	if namespace := object.GetNamespace(); namespace != "" && a.definition.Spec.Scope == apiextensionsv1.ClusterScoped {
		problems = append(problems, fmt.Sprintf("metadata.namespace: got %q, want none: the kind is cluster-scoped", namespace))
	}
	for _, err := range a.Invalid(object) {
		problems = append(problems, err.Error())
	}
	slices.Sort(problems)
	return problems
}

// Invalid validates a custom resource against the schema only.
func (a *Admission) Invalid(object *unstructured.Unstructured) field.ErrorList {
	return schemavalidation.ValidateCustomResource(nil, object.Object, a.validator)
}

// Definition returns the CRD. Callers must not change it.
func (a *Admission) Definition() *apiextensionsv1.CustomResourceDefinition { return a.definition }

// unserved returns the problem of a custom resource in a version that is not served.
func (a *Admission) unserved(object *unstructured.Unstructured) string {
	var served []string
	for _, version := range a.definition.Spec.Versions {
		if version.Served {
			served = append(served, a.definition.Spec.Group+"/"+version.Name)
		}
	}
	if slices.Contains(served, object.GetAPIVersion()) {
		return ""
	}
	return fmt.Sprintf("apiVersion: version %s is not served: want one of %s", object.GroupVersionKind().Version, strings.Join(served, ", "))
}
