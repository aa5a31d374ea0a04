package helm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	helmkube "helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
)

// checkDuplicates refuses objects that are rendered more than once, as an install of
// Helm's does half-way: it makes each, and the second is there already. Applied
// over each other they would change with every look.
func checkDuplicates(objects helmkube.ResourceList) error {
	var errs []error
	times := map[apply.Key]int{}
	for _, info := range objects {
		key := apply.KeyOf(object(info))
		times[key]++
		if times[key] == 2 {
			errs = append(errs, fmt.Errorf("%s is rendered twice: give one of the two another name, or leave it out", key))
		}
	}
	return errors.Join(errs...)
}

// preflight looks at a new revision before its record is stored, when nothing
// was written yet. It refuses what the kind's rules forbid, what is another's,
// and of an upgrade or a rollback what the API server would refuse half-way. The
// manifests are those of the verified records that the action has read. Helm
// checks no object that a record names: if a record was read that does not
// verify, every object is checked here.
func (k *kubeClient) preflight(rls *helmrelease.Release) error {
	objects, err := k.builder.build(rls.Manifest)
	if err != nil {
		return err
	}
	everything := objects
	for _, hook := range rls.Hooks {
		list, err := k.builder.build(hook.Manifest)
		missing, unserved := errors.AsType[*meta.NoKindMatchError](err)
		if kinds := definedIn(everything); unserved && kinds.Has(missing.GroupKind) {
			// Helm builds a hook when it runs, and so does the operator: the kind
			// is served by then. What the rules forbid is refused there, too.
			k.builder.awaited = kinds
			continue
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
	doubtful := objects
	if !k.TakeOwnership && !k.driver.ReadUnverified() {
		// Helm has looked at the others.
		doubtful = k.among(objects, k.driver.Manifests)
	}
	if err := k.findHookLeftovers(objects); err != nil {
		return err
	}
	if err := k.refuseForeign(doubtful); err != nil {
		return err
	}
	if rls.Version == 1 {
		return nil
	}
	return k.dryRun(objects)
}

// checkNumbers refuses numbers that an apply would change into others.
func checkNumbers(objects helmkube.ResourceList) error {
	var refused []string
	for _, info := range objects {
		if err := apply.CheckNumbers(object(info).Unstructured); err != nil {
			refused = append(refused, err.Error())
		}
	}
	return joinReasons(ErrRefused, refused)
}

// dryRun applies what changes without changing anything.
func (k *kubeClient) dryRun(objects helmkube.ResourceList) error {
	var refused []string
	for _, info := range objects {
		o, err := k.prepare(object(info))
		if err != nil {
			return err
		}
		if _, ok := k.unchanged(o); ok {
			continue
		}
		if _, ok := k.hookLeftovers[apply.KeyOf(o)]; ok {
			// It is deleted first.
			if err := k.objects.DryRunCreate(k.ctx, o); err != nil && isRefusal(err) {
				refused = append(refused, err.Error())
			}
			continue
		}
		if o, err = k.keepIgnoredFields(o); err != nil {
			return err
		}
		_, err = k.objects.Apply(k.ctx, o, apply.Options{DryRun: true})
		if err != nil && k.Force {
			if unchangeable, probeErr := k.objects.IsImmutable(k.ctx, o, err); probeErr != nil || unchangeable {
				err = probeErr
			}
		}
		switch {
		case err == nil:
		case k.ctx.Err() != nil:
			return err
		case apierrors.IsNotFound(err) && isAmong(missing(err, o), objects):
			// Its namespace, or the role that it binds, is of the same revision.
		case isRefusal(err):
			refused = append(refused, err.Error())
		default:
			// The API server is away, or busy; the attempt will tell.
			return err
		}
	}
	return joinReasons(ErrRefused, refused)
}

// missing returns what the API server did not find, by group, kind or resource,
// and name. Of a binding whose role is not there it says that the binding is
// not.
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

// isAmong reports whether something is among the objects.
func isAmong(what metav1.StatusDetails, objects helmkube.ResourceList) bool {
	return slices.ContainsFunc(objects, func(info *resource.Info) bool {
		return info.Name == what.Name && info.Mapping.Resource.Group == what.Group &&
			(info.Mapping.Resource.Resource == what.Kind || info.Mapping.GroupVersionKind.Kind == what.Kind)
	})
}

// textFields are the fields of an object's metadata whose values are texts.
var textFields = []string{"annotations", "labels"}

// stringifyMetadata makes texts of the annotations and labels of an object that are
// written as something else, as Helm does where it looks for hooks: of
// "helm.sh/hook-weight: 5", say. Were one of them left, none could be read.
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

// textOf returns the text of a value, unless it holds others.
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

// checkMetadata refuses annotations and labels that no text can be made of. All of
// an object's would be lost with them. It is for what was just rendered alone:
// what is stored must still be possible to replace and to delete.
func checkMetadata(objects helmkube.ResourceList) error {
	var errs []error
	for _, info := range objects {
		what := apply.Describe(object(info).Unstructured)
		metadata, _ := object(info).Object["metadata"].(map[string]any)
		for _, field := range textFields {
			values, ok := metadata[field].(map[string]any)
			if !ok && metadata[field] != nil {
				errs = append(errs, fmt.Errorf("%s: metadata.%s: expected keys with texts", what, field))
			}
			for _, key := range slices.Sorted(maps.Keys(values)) {
				if _, ok := values[key].(string); !ok {
					errs = append(errs, fmt.Errorf("%s: metadata.%s[%s]: expected a text", what, field, key))
				}
			}
		}
	}
	return errors.Join(errs...)
}
