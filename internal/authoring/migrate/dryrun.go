package migrate

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// dryRun applies the rendered objects by dry run. It skips hooks, which are created and
// not applied.
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
	// installed is set if the release exists, so the object should exist too.
	installed bool
	// source is the path of the template.
	source string
}

func (o *objectCheck) run(ctx context.Context, rendered chart.RenderedObject, all []chart.RenderedObject) error {
	gvk := rendered.GroupVersionKind()
	mapping, err := o.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		o.addf(Breaks, "the cluster does not serve %s %s: neither operator can install the release", gvk.GroupVersion(), gvk.Kind)
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
		o.forbidden(mapping.Resource.GroupResource(), "get", "to read the objects of the releases")
		return nil
	}
	if err != nil {
		return err
	}
	if live != nil {
		if other := live.GetAnnotations()[api.AnnotationReleaseName]; other != "" && other != o.release {
			o.addf(Breaks, "%s belongs to the release %s, and cannot belong to this release too", apply.Describe(object), other).Do = "rename one of the objects"
			return nil
		}
	}
	applied, err := o.objects.Apply(ctx, o.Object, apply.Options{DryRun: true, Warn: o.corrected})
	switch {
	case err != nil:
		return o.refused(ctx, err, all)
	case live == nil && o.installed:
		o.addf(Changes, "%s is missing: Chartwright creates it", o.GetKind())
	case live != nil && applied != nil && applied.Generation > live.Generation:
		return o.changed(ctx)
	}
	return nil
}

// addf adds a finding about the template.
func (o *objectCheck) addf(verdict Verdict, format string, args ...any) *Finding {
	return o.resourceCheck.addf(verdict, o.source, format, args...)
}

// corrected adds a finding about a field that server-side apply rejects, and that the
// operator corrects.
func (o *objectCheck) corrected(what string) {
	o.addf(Changes, "server-side apply rejects the %s; Chartwright corrects it and emits an event: %s", o.GetKind(), strings.TrimPrefix(what, apply.Describe(o.Unstructured)+": ")).
		Do = "fix the template"
}

// refused adds a finding about an object that the API server rejects.
func (o *objectCheck) refused(ctx context.Context, err error, all []chart.RenderedObject) error {
	switch {
	case ctx.Err() != nil:
		return err
	case isMissingPermission(err):
		for _, verb := range []string{"patch", "create"} {
			o.forbidden(o.Mapping.Resource.GroupResource(), verb, "for a dry run of the rendered objects")
		}
	case apierrors.IsNotFound(err) && rendersNamespace(all, o.GetNamespace()):
	case apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), apierrors.IsInternalError(err) && !strings.Contains(err.Error(), "typed patch"):
		return err
	default:
		o.addf(Breaks, "server-side apply rejects the %s: %s", o.GetKind(), reason(err)).Do = "fix the template or the values"
	}
	return nil
}

// reason returns the message of the API server. It removes the name of the object from
// type errors, which are the same for all custom resources.
func reason(err error) string {
	text := err.Error()
	if _, typed, ok := strings.Cut(text, "failed to create typed patch object"); ok {
		if _, why, ok := strings.Cut(typed, "): "); ok {
			return why
		}
	}
	return text
}

// isMissingPermission reports whether an error is a missing permission, and not a rejection
// by an admission policy.
func isMissingPermission(err error) bool {
	return apierrors.IsForbidden(err) && (strings.Contains(err.Error(), "cannot patch resource") || strings.Contains(err.Error(), "cannot create resource"))
}

// rendersNamespace reports whether the release itself contains the namespace.
func rendersNamespace(all []chart.RenderedObject, name string) bool {
	return slices.ContainsFunc(all, func(o chart.RenderedObject) bool { return o.GetKind() == "Namespace" && o.GetName() == name })
}

// changed adds a finding about the fields of a live object that would change.
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
	fields := values.Differences(live.Object["spec"], after.Object["spec"], "spec")
	if len(fields) == 0 {
		return nil
	}
	pods := ""
	if slices.ContainsFunc(fields, func(field string) bool { return strings.HasPrefix(field, "spec.template.") }) {
		pods = ", which replaces its pods"
	}
	o.addf(Changes, "the %s differs from the rendered object: Chartwright changes %s%s", o.GetKind(), strings.Join(fields, ", "), pods)
	return nil
}
