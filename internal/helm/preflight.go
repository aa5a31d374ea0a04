package helm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// checkDuplicates rejects objects that are rendered more than once. Helm's install
// would fail half-way, because the second object already exists. If both were applied,
// each reconciliation would change the object.
func checkDuplicates(objects engine.ResourceList, manifest string) error {
	var errs []error
	times := map[apply.Key]int{}
	for _, info := range objects {
		key := apply.KeyOf(object(info))
		times[key]++
		if times[key] == 2 {
			errs = append(errs, fmt.Errorf("%s is rendered twice%s: rename or remove one of the two", key, filesOf(manifest, key)))
		}
	}
	return errors.Join(errs...)
}

// filesOf returns the templates that render an object, for a message.
func filesOf(manifest string, key apply.Key) string {
	rendered, err := chart.ReadRelease(&engine.Release{Manifest: manifest, Info: &engine.Info{}})
	if err != nil {
		return ""
	}
	var files []string
	for _, o := range rendered.Objects {
		if o.GetKind() == key.Kind && o.GetName() == key.Name && !slices.Contains(files, o.Source) {
			files = append(files, o.Source)
		}
	}
	return ", in " + strings.Join(files, " and ")
}

// preflight checks a new revision before its record is stored and anything is written.
// It rejects objects that the kind's rules forbid and objects that the release does not
// own. For an upgrade or a rollback it also rejects objects that the API server would
// reject later.
//
// Helm does not check the ownership of objects that are in an earlier manifest, so they
// are checked here. If an unverified record was read, all objects are checked.
func (k *kubeClient) preflight(rls *engine.Release) error {
	objects, err := k.builder.build(rls.Manifest)
	if err != nil {
		return err
	}
	everything := objects
	for _, hook := range rls.Hooks {
		list, err := k.builder.build(hook.Manifest)
		missing, unserved := errors.AsType[*meta.NoKindMatchError](err)
		if kinds := definedIn(everything); unserved && kinds.Has(missing.GroupKind) {
			// Helm and the operator build a hook again when it runs, after its kind is
			// served. The rules are checked then, too.
			k.builder.ownKinds = kinds
			continue
		}
		if apply.Retryable(err) {
			return err
		}
		if err != nil {
			return fmt.Errorf("%w: %w", chart.ErrRender, err)
		}
		everything = append(everything, list...)
	}
	if err := k.allow.check(k.Namespace, everything); err != nil {
		return err
	}
	if err := checkNumbers(everything); err != nil {
		return err
	}
	toCheck := objects
	if !k.TakeOwnership && !k.driver.ReadUnverified() {
		// Helm has checked the other objects.
		if toCheck, err = k.among(objects, k.driver.Manifests); err != nil {
			return err
		}
	}
	if err := k.findHookLeftovers(objects); err != nil {
		return err
	}
	if err := k.refuseForeign(toCheck); err != nil {
		return err
	}
	// For a plan, each apply is a dry run.
	if rls.Version == 1 || k.plan != nil {
		return nil
	}
	return k.dryRun(objects)
}

// checkNumbers rejects numbers that an apply would change.
func checkNumbers(objects engine.ResourceList) error {
	var refused []string
	for _, info := range objects {
		if err := apply.CheckNumbers(object(info).Unstructured); err != nil {
			refused = append(refused, err.Error())
		}
	}
	return refusal(refused, "")
}

// dryRun applies the changed objects with a dry run.
func (k *kubeClient) dryRun(objects engine.ResourceList) error {
	var refused []string
	advice := ""
	for _, info := range objects {
		o, err := k.prepare(object(info))
		if err != nil {
			return err
		}
		if _, ok := k.unchanged(o); ok {
			continue
		}
		if _, ok := k.hookLeftovers[apply.KeyOf(o)]; ok {
			// The hook object is deleted first.
			live, err := k.objects.Read(k.ctx, o)
			if err != nil {
				return err
			}
			if err := k.objects.DryRunCreate(k.ctx, o, live); err != nil && isRefusal(err) {
				refused = append(refused, o.Explain(err))
			}
			continue
		}
		if o, err = k.keepIgnoredFields(o); err != nil {
			return err
		}
		unchangeable, err := k.dryRunApply(o)
		switch {
		case err == nil:
		case k.ctx.Err() != nil, meta.IsNoMatchError(err):
			return err
		case apierrors.IsNotFound(err) && isAmong(missing(err, o), objects):
			// The new revision itself creates the missing namespace or role.
		case isRefusal(err):
			refused = append(refused, o.Explain(err))
			if unchangeable {
				advice = adviceForce
			}
		default:
			// The API server is unavailable. The action itself will fail or succeed.
			return err
		}
	}
	return refusal(refused, advice)
}

// adviceForce is what users can do about objects that cannot be changed.
const adviceForce = ". To recreate the objects that cannot be changed, set the annotation " + api.AnnotationForce

// dryRunApply applies an object with a dry run. The error is nil if the action will recreate
// the object. The object is unchangeable if a forced action would recreate it.
func (k *kubeClient) dryRunApply(o apply.Object) (unchangeable bool, err error) {
	_, err = k.objects.Apply(k.ctx, o, apply.Options{DryRun: true})
	live, probeErr := k.objects.Unchangeable(k.ctx, o, err)
	switch {
	case probeErr != nil:
		return false, probeErr
	case live != nil && k.Force && k.mayRecreate(o, live):
		return false, nil
	}
	return live != nil && !k.Force, err
}

// refusal returns ErrRefused with reasons and advice, or nil without reasons. The reasons come
// first, because lists cut long messages.
func refusal(reasons []string, advice string) error {
	if len(reasons) == 0 {
		return nil
	}
	return fmt.Errorf("%s%s (%w)", strings.Join(reasons, "; "), advice, ErrRefused)
}

// missing returns the object that the API server did not find: its group, its kind or
// resource, and its name. For a missing role, the API server names the binding instead.
func missing(err error, applied apply.Object) metav1.StatusDetails {
	if ref, ok, _ := unstructured.NestedStringMap(applied.Object, "roleRef"); ok {
		return metav1.StatusDetails{Group: ref["apiGroup"], Kind: ref["kind"], Name: ref["name"]}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return metav1.StatusDetails{}
	}
	return *status.Status().Details
}

// isAmong reports whether the objects include the described object.
func isAmong(what metav1.StatusDetails, objects engine.ResourceList) bool {
	return slices.ContainsFunc(objects, func(info *resource.Info) bool {
		return info.Name == what.Name && info.Mapping.Resource.Group == what.Group &&
			(info.Mapping.Resource.Resource == what.Kind || info.Mapping.GroupVersionKind.Kind == what.Kind)
	})
}

// textFields are the metadata fields with string values.
var textFields = []string{"annotations", "labels"}

// stringifyMetadata converts annotation and label values that are not strings, such as
// "helm.sh/hook-weight: 5", as Helm does for hooks. A single value of another type
// would make all annotations or labels unreadable.
func stringifyMetadata(object *unstructured.Unstructured) {
	metadata, _ := object.Object["metadata"].(map[string]any)
	for _, field := range textFields {
		values, _ := metadata[field].(map[string]any)
		for key, value := range values {
			if text, ok := textOf(value); ok {
				values[key] = text
			}
		}
	}
}

// textOf returns a scalar value as a string. It returns false for lists and maps.
func textOf(value any) (string, bool) {
	switch typed := value.(type) {
	case string, int64, bool:
		return fmt.Sprint(typed), true
	case float64:
		return strconv.FormatFloat(typed, 'f', -1, 64), true
	case nil:
		return "", true
	}
	return "", false
}

// checkMetadata rejects annotations and labels that cannot be converted to strings,
// with which all annotations or labels of the object would be lost. It is only for
// rendered objects; stored objects must still be replaced and deleted.
func checkMetadata(objects engine.ResourceList) error {
	var errs []error
	for _, info := range objects {
		what := apply.Describe(object(info).Unstructured)
		metadata, _ := object(info).Object["metadata"].(map[string]any)
		for _, field := range textFields {
			values, ok := metadata[field].(map[string]any)
			if !ok && metadata[field] != nil {
				errs = append(errs, fmt.Errorf("%s: metadata.%s: expected a map of strings", what, field))
			}
			for _, key := range slices.Sorted(maps.Keys(values)) {
				if _, ok := values[key].(string); !ok {
					errs = append(errs, fmt.Errorf("%s: metadata.%s[%s]: expected a string", what, field, key))
				}
			}
		}
	}
	return errors.Join(errs...)
}
