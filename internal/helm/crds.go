package helm

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/compat"
	"github.com/chartwright/chartwright/internal/watches"
)

// unchangedCRD reports whether a live CRD has all values that the chart sets. Fields
// that only the live CRD has are ignored.
func unchangedCRD(live, wanted *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"spec"}, {"metadata", "labels"}, {"metadata", "annotations"}} {
		is, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
		want, _, _ := unstructured.NestedFieldNoCopy(wanted.Object, path...)
		if !containsFields(is, want) {
			return false
		}
	}
	return true
}

// containsFields reports whether a live value contains all fields of the wanted value. The API
// server omits empty fields.
func containsFields(live, wanted any) bool {
	if live == nil {
		v := reflect.ValueOf(wanted)
		return wanted == nil || v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
	}
	switch wanted := wanted.(type) {
	case nil:
		return true
	case map[string]any:
		fields, ok := live.(map[string]any)
		for key, value := range wanted {
			ok = ok && containsFields(fields[key], value)
		}
		return ok
	case []any:
		items, ok := live.([]any)
		return ok && slices.EqualFunc(items, wanted, containsFields)
	}
	// Whole numbers may be decoded as integers or as floats.
	a, number := asFloat(live)
	b, too := asFloat(wanted)
	return number && too && a == b || live == wanted
}

func asFloat(value any) (float64, bool) {
	switch number := value.(type) {
	case int64:
		return float64(number), true
	case float64:
		return number, true
	}
	return 0, false
}

// errBreakingCRD marks a CRD of a chart with which stored custom resources would become
// invalid or lose fields.
var errBreakingCRD = errors.New("the chart's CRD would break stored custom resources")

// ensureCRDs installs the CRDs in crds/ of a chart whose dependencies are processed, so
// that a disabled subchart installs none. CRDs belong to no release: they are never
// deleted, and fields that the chart does not set are not changed. An unchanged CRD
// costs one read.
func (r *run) ensureCRDs(c *helmchart.Chart) error {
	if r.CRDs == watches.CRDsSkip {
		return nil
	}
	crds, err := chart.CRDsOf(c)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := r.ensureCRD(crd.Unstructured); err != nil {
			if apierrors.IsForbidden(err) {
				r.Notifier.Warn(api.EventCRDMissing, fmt.Sprintf("CRD %s of the chart cannot be installed because permissions are missing: install it manually", crd.GetName()))
				continue
			}
			return fmt.Errorf("%s: %w", crd.Source, err)
		}
	}
	return nil
}

func (r *run) ensureCRD(crd *unstructured.Unstructured) error {
	ctx := r.kube.ctx
	mapping, err := r.kube.builder.mapper.RESTMapping(crd.GroupVersionKind().GroupKind(), crd.GroupVersionKind().Version)
	if err != nil {
		return err
	}
	o := apply.Object{Unstructured: crd, Mapping: mapping}
	crd.SetLabels(labels.Merge(crd.GetLabels(), map[string]string{api.LabelOperator: r.kube.Owner.Operator}))
	digest, err := apply.DigestOf(crd)
	if err != nil {
		return err
	}
	crd.SetAnnotations(labels.Merge(crd.GetAnnotations(), map[string]string{api.AnnotationApplied: digest}))
	live, err := r.kube.objects.Read(ctx, o)
	if err != nil {
		return err
	}
	if live != nil {
		if r.CRDs != watches.CRDsReplace || live.GetLabels()[api.LabelOperator] != r.kube.Owner.Operator {
			return nil
		}
		if live.GetAnnotations()[api.AnnotationApplied] == digest && unchangedCRD(live, crd) {
			return r.kube.objects.Watch(ctx, apply.Object{Unstructured: live, Mapping: mapping}, established)
		}
		if err := compatible(live, crd); err != nil {
			return err
		}
	}
	if _, err := r.kube.objects.Apply(ctx, o, apply.Options{}); err != nil {
		return err
	}
	return r.kube.objects.Until(ctx, o, established)
}

// established reports whether the API server serves a CRD.
func established(object *unstructured.Unstructured) (bool, error) {
	crd, err := decodeCRD(object)
	if err != nil {
		return false, err
	}
	return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established), nil
}

// compatible rejects a CRD with which stored custom resources would become invalid or
// lose fields.
func compatible(live, wanted *unstructured.Unstructured) error {
	from, err := decodeCRD(live)
	if err != nil {
		return err
	}
	to, err := decodeCRD(wanted)
	if err != nil {
		return err
	}
	if breaks := compat.Breaks(from, to); breaks != "" {
		return fmt.Errorf("%w: %s", errBreakingCRD, breaks)
	}
	return nil
}

func decodeCRD(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
		return nil, fmt.Errorf("CRD %s: %w", object.GetName(), err)
	}
	return crd, nil
}
