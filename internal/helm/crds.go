package helm

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/compat"
	"github.com/chartwright/chartwright/internal/guard"
	"github.com/chartwright/chartwright/internal/helm/engine"
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

// crdFolderKey identifies an object in crds/ of a chart.
type crdFolderKey struct {
	schema.GroupKind
	name string
}

// chartCRD is a CRD in crds/ of a chart, or another object there.
type chartCRD struct {
	apply.Object
	source string
	// other: the object is no CRD. It is created if it is missing, and never changed. The
	// mapping is nil if a CRD in crds/ may define its kind.
	other bool
	// live is nil if the CRD does not exist.
	live *unstructured.Unstructured
	// unchanged reports that live has all values that the chart sets.
	unchanged bool
	// breaks describes the changes that break stored custom resources.
	breaks string
}

// ensureCRDs installs the CRDs of an action that asks for no approval. It writes nothing if
// a CRD would break stored custom resources.
func (r *run) ensureCRDs(c *engine.Chart) error {
	crds, err := r.readCRDs(c)
	if err != nil {
		return err
	}
	if _, err := r.replacedCRDs(crds, false); err != nil {
		return err
	}
	return r.applyCRDs(crds)
}

// readCRDs compares the CRDs in crds/ of a chart whose dependencies are processed with the
// live CRDs, so that a disabled subchart installs none. It returns the CRDs that the policy
// of the kind makes the operator manage. Each CRD costs one read.
func (r *run) readCRDs(c *engine.Chart) ([]chartCRD, error) {
	crds, others, err := chart.CRDFolder(c)
	for _, o := range slices.Concat(crds, others) {
		r.kube.crdFolder.Insert(crdFolderKey{o.GroupVersionKind().GroupKind(), o.GetName()})
	}
	if r.CRDs == watches.CRDsSkip {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []chartCRD
	for _, crd := range crds {
		read, err := r.readCRD(crd.Unstructured)
		if apierrors.IsForbidden(err) {
			r.warnForbiddenCRD(crd.Unstructured)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", crd.Source, err)
		}
		if read != nil {
			read.source = crd.Source
			found = append(found, *read)
		}
	}
	for _, o := range others {
		other := chartCRD{Object: apply.Object{Unstructured: o.Unstructured}, source: o.Source, other: true}
		if err := r.mapOther(&other); err != nil && !meta.IsNoMatchError(err) {
			return nil, err
		}
		found = append(found, other)
	}
	return found, nil
}

func (r *run) warnForbiddenCRD(o *unstructured.Unstructured) {
	r.Notifier.Warn(api.EventCRDMissing, fmt.Sprintf("%s in crds/ of the chart cannot be created because permissions are missing: create it manually", apply.Describe(o)))
}

// mapOther finds the mapping of an object in crds/ that is no CRD. The error is ErrNotAllowed if
// the allow block of the kind forbids the object.
func (r *run) mapOther(o *chartCRD) (err error) {
	kind := o.GroupVersionKind()
	if o.Mapping, err = r.kube.builder.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return fmt.Errorf("%s: %w", o.source, err)
	}
	if o.Mapping.Scope.Name() == meta.RESTScopeNameNamespace && o.GetNamespace() == "" {
		o.SetNamespace(r.Namespace)
	}
	info := &resource.Info{Object: o.Unstructured, Mapping: o.Mapping, Namespace: o.GetNamespace(), Name: o.GetName()}
	if why := r.kube.allow.refusesBuilt(r.Namespace, info); why != "" {
		return fmt.Errorf("%s: %w", o.source, joinReasons(ErrNotAllowed, []string{why}))
	}
	return nil
}

// createOther creates an object in crds/ that is no CRD, if it is missing.
func (r *run) createOther(o chartCRD) error {
	if o.Mapping == nil {
		if err := r.mapOther(&o); err != nil {
			return err
		}
	}
	if live, err := r.kube.objects.Read(r.kube.ctx, o.Object); err != nil || live != nil {
		return err
	}
	o.SetLabels(labels.Merge(o.GetLabels(), map[string]string{api.LabelOperator: r.kube.Owner.Operator}))
	_, err := r.kube.objects.Apply(r.kube.ctx, o.Object, apply.Options{})
	if errors.Is(err, apply.ErrReplaced) {
		return nil
	}
	return err
}

// readCRD returns a CRD of the chart, or nil if the operator must not change the live CRD.
func (r *run) readCRD(crd *unstructured.Unstructured) (*chartCRD, error) {
	mapping, err := r.kube.builder.mapper.RESTMapping(crd.GroupVersionKind().GroupKind(), crd.GroupVersionKind().Version)
	if err != nil {
		return nil, err
	}
	read := &chartCRD{Object: apply.Object{Unstructured: crd, Mapping: mapping}}
	crd.SetLabels(labels.Merge(crd.GetLabels(), map[string]string{api.LabelOperator: r.kube.Owner.Operator}))
	if err := apply.SetDigest(crd); err != nil {
		return nil, err
	}
	if read.live, err = r.kube.objects.Read(r.kube.ctx, read.Object); err != nil || read.live == nil {
		return read, err
	}
	if r.CRDs != watches.CRDsReplace || read.live.GetLabels()[api.LabelOperator] != r.kube.Owner.Operator {
		return nil, nil
	}
	if read.live.GetAnnotations()[api.AnnotationApplied] == crd.GetAnnotations()[api.AnnotationApplied] && unchangedCRD(read.live, crd) {
		read.unchanged = true
		return read, nil
	}
	read.breaks, err = breaksOf(read.live, crd)
	return read, err
}

// replacedCRDs returns the replacements of CRDs that need an approval, because they break
// stored custom resources. If the action asks for no approval, it returns errBreakingCRD
// instead: guard.mode Warn and Off and approval Never accept that objects of the release are
// lost, but custom resources of a CRD belong to other users. An install asks for none
// either, because a plan needs a release.
//
// No approval is requested for a CRD that the API server would reject.
func (r *run) replacedCRDs(crds []chartCRD, asks bool) ([]guard.Operation, error) {
	var found []guard.Operation
	for _, crd := range crds {
		if crd.breaks == "" {
			continue
		}
		if !asks {
			return nil, fmt.Errorf("%s: %w: %s", crd.source, errBreakingCRD, crd.breaks)
		}
		if _, err := r.kube.objects.Apply(r.kube.ctx, crd.Object, apply.Options{DryRun: true}); err != nil && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("%s: %w", crd.source, crd.explain(err))
		}
		found = append(found, guard.Operation{Verb: guard.Replace, Key: apply.KeyOf(crd), UID: crd.live.GetUID(), Why: crd.breaks})
	}
	return found, nil
}

// applyCRDs installs CRDs, and creates the other objects in crds/. They belong to no release: they
// are never deleted, and fields that the chart does not set are not changed.
func (r *run) applyCRDs(crds []chartCRD) error {
	for _, crd := range crds {
		err := r.applyCRD(crd)
		if apierrors.IsForbidden(err) {
			r.warnForbiddenCRD(crd.Unstructured)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", crd.source, crd.explain(err))
		}
	}
	return nil
}

func (r *run) applyCRD(crd chartCRD) error {
	ctx := r.kube.ctx
	if crd.other {
		return r.createOther(crd)
	}
	if crd.unchanged {
		return r.kube.objects.Watch(ctx, apply.Object{Unstructured: crd.live, Mapping: crd.Mapping}, established)
	}
	options := apply.Options{}
	if crd.live != nil {
		options.UID = crd.live.GetUID()
	}
	_, err := r.kube.objects.Apply(ctx, crd.Object, options)
	if errors.Is(err, apply.ErrReplaced) {
		if now, readErr := r.readCRD(crd.Unstructured); readErr == nil && (now == nil || now.unchanged) {
			// Another client or action has created the CRD since it was read.
			err = nil
		}
	}
	if err != nil {
		return err
	}
	if r.plan != nil {
		return r.kube.builder.planKind(crd.Unstructured)
	}
	return r.kube.objects.Until(ctx, crd.Object, established)
}

// explain adds to a rejection of a changed CRD what users can do.
func (crd chartCRD) explain(err error) error {
	if crd.live == nil || !apierrors.IsInvalid(err) {
		return err
	}
	if stored := crd.removedStored(); len(stored) > 0 {
		names := strings.Join(stored, ", ")
		return fmt.Errorf("%w. Custom resources may be stored as version %s. Make another version the storage version, update all custom resources of the kind, and remove %s from .status.storedVersions of the CRD", err, names, names)
	}
	return fmt.Errorf("%w. Correct the CRD in the chart, or delete the CRD with all custom resources of its kind, so that the operator creates it again", err)
}

// removedStored returns the versions that the chart removes although custom resources may
// be stored in them.
func (crd chartCRD) removedStored() []string {
	stored, _, _ := unstructured.NestedStringSlice(crd.live.Object, "status", "storedVersions")
	to, err := decodeCRD(crd.Unstructured)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(stored, func(stored string) bool {
		return slices.ContainsFunc(to.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool { return version.Name == stored })
	})
}

// established reports whether the API server serves a CRD.
func established(object *unstructured.Unstructured) (bool, error) {
	crd, err := decodeCRD(object)
	if err != nil {
		return false, err
	}
	return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established), nil
}

// breaksOf describes the changes of a CRD with which stored custom resources would become
// invalid or lose fields, or an empty text.
func breaksOf(live, wanted *unstructured.Unstructured) (string, error) {
	from, err := decodeCRD(live)
	if err != nil {
		return "", err
	}
	to, err := decodeCRD(wanted)
	if err != nil {
		return "", err
	}
	return compat.Breaks(from, to), nil
}

func decodeCRD(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
		return nil, fmt.Errorf("CRD %s: %w", object.GetName(), err)
	}
	return crd, nil
}
