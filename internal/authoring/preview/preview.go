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

// Options are what a render depends on beside the file.
type Options struct {
	// Validate also says whether the API server would take the custom resource,
	// and whether the kind's allow block allows what is rendered.
	Validate bool
	// KubeVersion and APIVersions are what the chart finds in .Capabilities, see
	// helm.Offline.
	KubeVersion string
	APIVersions []string
}

// Preview is what would become of a custom resource.
type Preview struct {
	*chart.Rendered
	// Release and Namespace are those of the release.
	Release, Namespace string
	// Warnings name what users may not expect.
	Warnings []string
}

// ErrRefused marks a custom resource that would not be installed. Its text has a
// line for each reason.
var ErrRefused = errors.New("refused")

// Render returns what the operator would render for a custom resource. The
// warnings are there also where there is an error.
func (f *File) Render(ctx context.Context, r Resource, o Options) (*Preview, error) {
	preview := &Preview{}
	admission, err := NewAdmission(r.Kind)
	if err != nil {
		return preview, err
	}
	cr := r.Object.DeepCopy()
	for _, path := range admission.Prune(cr) {
		preview.warnf("%s: the CRD has no such field: kubectl refuses it, and for others the API server drops it", path)
	}
	if o.Validate {
		if problems := admission.Refuse(cr); len(problems) > 0 {
			return preview, refused("the API server would refuse it", problems)
		}
	}
	r.Object = cr
	if r.Kind.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(r.Kind.Selector)
		if err != nil {
			return preview, err
		}
		if !selector.Matches(labels.Set(cr.GetLabels())) {
			preview.warnf("the operator would leave it alone: its labels do not match the selector of the watches entry")
		}
	}
	given, err := f.given(ctx, r, preview)
	if err != nil {
		return preview, err
	}
	if r.Kind.Chart.Features.Lookup {
		preview.warnf("the chart reads the cluster by lookup, which finds nothing here")
	}
	preview.Rendered, err = r.Kind.Chart.Render(chart.Offline{
		Release: preview.Release, Namespace: preview.Namespace, Values: given,
		KubeVersion: o.KubeVersion, APIVersions: o.APIVersions,
	})
	if err == nil && o.Validate {
		err = preview.allowed(r.Kind)
	}
	return preview, err
}

// given returns the values that the chart gets, and finds out where the release
// goes.
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
		if _, there := f.sources[source.Ref]; !there && source.Optional {
			preview.warnf("values may come from %s, which is not in the file", source.Ref)
		}
	}
	merged, _, err := f.store().Merge(ctx, types.UID(r.Place), from, given)
	if unusable, ok := errors.AsType[*valuesfrom.Error](err); ok {
		return nil, fmt.Errorf("%w; for a preview, put it into the file as a document of its own", unusable)
	}
	if err != nil {
		return nil, err
	}
	return values.Merge(merged, r.Kind.Overrides), nil
}

// store returns the operator's own store of sources, with those of the file in
// place of the cluster's.
func (f *File) store() *valuesfrom.Store {
	store := valuesfrom.NewStore(func(_ context.Context, ref valuesfrom.Ref) (valuesfrom.Data, error) {
		return valuesfrom.Data{ResourceVersion: "1", Keys: f.sources[ref]}, nil
	}, func(types.UID) {})
	for ref := range f.sources {
		store.Handler(ref.Kind).OnAdd(&metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, ResourceVersion: "1"},
		}, true)
	}
	return store
}

// allowed holds what was rendered against the kind's allow block.
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
		return refused("the operator would refuse what the chart renders", problems)
	}
	return nil
}

func (p *Preview) warnf(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

func refused(by string, problems []string) error {
	return fmt.Errorf("%w: %s:\n  %s", ErrRefused, by, strings.Join(problems, "\n  "))
}

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
	var served []string
	for _, version := range a.definition.Spec.Versions {
		if version.Served {
			served = append(served, a.definition.Spec.Group+"/"+version.Name)
		}
	}
	if !slices.Contains(served, object.GetAPIVersion()) {
		problems = append(problems, fmt.Sprintf("apiVersion: the version %s is not served: expected one of %s", object.GroupVersionKind().Version, strings.Join(served, ", ")))
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
