package migrate

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
)

// dryRun applies the rendered objects by dry run. Hooks are left out: they are
// created and not applied.
func (r *resourceCheck) dryRun(ctx context.Context, release string, installed bool, rendered *chart.Rendered) error {
	owner := apply.Owner{GVK: r.kind.GVK(), Namespace: r.cr.GetNamespace(), Name: r.cr.GetName(), UID: r.cr.GetUID(), Operator: "chartwright"}
	for _, object := range rendered.Objects {
		o := objectCheck{resourceCheck: r, owner: owner, release: release, installed: installed, source: object.Source}
		if err := o.run(ctx, object, rendered.Objects); err != nil {
			return err
		}
	}
	return nil
}

// objectCheck checks one rendered object by a dry run.
type objectCheck struct {
	*resourceCheck
	apply.Object

	owner   apply.Owner
	release string
	// installed: the release exists, and so should the object.
	installed bool
	// source is the template.
	source string
}

func (o *objectCheck) run(ctx context.Context, rendered chart.RenderedObject, all []chart.RenderedObject) error {
	gvk := rendered.GroupVersionKind()
	mapping, err := o.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		o.addf(Breaks, "the cluster does not serve %s %s: the release cannot be made, today as tomorrow", gvk.GroupVersion(), gvk.Kind)
		return nil
	}
	if err != nil {
		return err
	}
	object := rendered.DeepCopy()
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		object.SetNamespace("")
	} else if object.GetNamespace() == "" {
		object.SetNamespace(o.owner.Namespace)
	}
	if object, err = apply.Prepare(object, o.owner, !o.kind.Chart.Features.DeleteHooks); err != nil {
		o.addf(Breaks, "%v", err)
		return nil
	}
	o.Object = apply.Object{Unstructured: object, Mapping: mapping}
	live, err := o.objects.Get(ctx, o.Object)
	if apierrors.IsForbidden(err) {
		o.forbidden(mapping.Resource.GroupResource(), "get", "to look at what the resources have rendered")
		return nil
	}
	if err != nil {
		return err
	}
	if live != nil {
		if other := live.GetAnnotations()[api.AnnotationReleaseName]; other != "" && other != o.release {
			o.addf(Breaks, "%s is of the release %s: this release cannot have it, too", apply.Describe(object), other).Do = "rename one of the two"
			return nil
		}
	}
	applied, err := o.objects.Apply(ctx, o.Object, apply.Options{DryRun: true, Warn: o.corrected})
	switch {
	case err != nil:
		return o.refused(ctx, err, all)
	case live == nil && o.installed:
		o.addf(Changes, "%s is not there, and is made anew", o.GetKind())
	case live != nil && applied != nil && applied.Generation > live.Generation:
		return o.changed(ctx)
	}
	return nil
}

// addf adds a finding about the template.
func (o *objectCheck) addf(verdict Verdict, format string, args ...any) *Finding {
	return o.resourceCheck.addf(verdict, o.source, format, args...)
}

// corrected adds a finding about a field that server-side apply would refuse, and
// that the operator corrects.
func (o *objectCheck) corrected(what string) {
	o.addf(Changes, "server-side apply refuses the %s as it stands, which is mended with an event: %s", o.GetKind(), strings.TrimPrefix(what, apply.Describe(o.Unstructured)+": ")).
		Do = "mend the template"
}

// refused adds a finding about an object that the API server refuses.
func (o *objectCheck) refused(ctx context.Context, err error, all []chart.RenderedObject) error {
	switch {
	case ctx.Err() != nil:
		return err
	case lacksPermission(err):
		for _, verb := range []string{"patch", "create"} {
			o.forbidden(o.Mapping.Resource.GroupResource(), verb, "to try by dry run what the resources render")
		}
	case apierrors.IsNotFound(err) && rendersNamespace(all, o.GetNamespace()):
	case apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), apierrors.IsInternalError(err) && !strings.Contains(err.Error(), "typed patch"):
		return err
	default:
		o.addf(Breaks, "server-side apply refuses the %s: %s", o.GetKind(), reason(err)).Do = "mend the template, or the values"
	}
	return nil
}

// reason returns the API server's message, without the name of the object if the
// message is about the template.
func reason(err error) string {
	text := err.Error()
	if _, typed, ok := strings.Cut(text, "failed to create typed patch object"); ok {
		if _, why, ok := strings.Cut(typed, "): "); ok {
			return why
		}
	}
	return text
}

// lacksPermission tells a missing permission from the refusal of an admission
// policy.
func lacksPermission(err error) bool {
	return apierrors.IsForbidden(err) && (strings.Contains(err.Error(), "cannot patch resource") || strings.Contains(err.Error(), "cannot create resource"))
}

// rendersNamespace reports whether the release itself contains a namespace.
func rendersNamespace(all []chart.RenderedObject, name string) bool {
	return slices.ContainsFunc(all, func(o chart.RenderedObject) bool { return o.GetKind() == "Namespace" && o.GetName() == name })
}

// changed adds a finding about the fields of a live object that an apply changes.
func (o *objectCheck) changed(ctx context.Context) error {
	live, err := o.objects.Read(ctx, o.Object)
	if err != nil || live == nil {
		return err
	}
	after, err := o.objects.DryRun(ctx, o.Object)
	if err != nil {
		// The refusal was reported already.
		return nil //nolint:nilerr // see above
	}
	fields := differences(live.Object["spec"], after.Object["spec"], "spec")
	if len(fields) == 0 {
		return nil
	}
	pods := ""
	if slices.ContainsFunc(fields, func(field string) bool { return strings.HasPrefix(field, "spec.template.") }) {
		pods = ", so that its pods are made anew"
	}
	o.addf(Changes, "the %s differs from what is rendered, and is changed: %s%s", o.GetKind(), strings.Join(fields, ", "), pods)
	return nil
}

// maxDifferences bounds how many fields are named.
const maxDifferences = 5

// differences returns the paths of the fields that differ, without their values.
func differences(before, after any, path string) []string {
	all := differing(before, after, path)
	if len(all) > maxDifferences {
		return append(all[:maxDifferences], fmt.Sprintf("%d more", len(all)-maxDifferences))
	}
	return all
}

func differing(before, after any, path string) []string {
	old, oldIsMap := before.(map[string]any)
	now, nowIsMap := after.(map[string]any)
	if !oldIsMap || !nowIsMap {
		if reflect.DeepEqual(before, after) {
			return nil
		}
		return []string{path}
	}
	var found []string
	for _, key := range sets.List(sets.KeySet(old).Union(sets.KeySet(now))) {
		found = append(found, differing(old[key], now[key], strings.TrimPrefix(path+"."+key, "."))...)
	}
	return found
}
