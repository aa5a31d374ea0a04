package migrate

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
)

// helmRelease is the annotation by which Helm knows whose an object is.
const helmRelease = "meta.helm.sh/release-name"

// rehearse applies by dry run what a custom resource renders. Hooks are made
// and not applied, so that they are left out.
func (k *kindLook) rehearse(ctx context.Context, cr *unstructured.Unstructured, release string, installed bool, rendered *chart.Rendered) error {
	owner := apply.Owner{GVK: k.kind.GVK(), Namespace: cr.GetNamespace(), Name: cr.GetName(), UID: cr.GetUID(), Operator: "chartwright"}
	for _, object := range rendered.Objects {
		t := trial{kindLook: k, owner: owner, release: release, installed: installed, source: object.Source}
		if err := t.run(ctx, object, rendered.Objects); err != nil {
			return err
		}
	}
	return nil
}

// trial is one object on its way to the API server.
type trial struct {
	*kindLook
	apply.Object

	owner   apply.Owner
	release string
	// installed: the release is there, and the object with it.
	installed bool
	source    string
}

func (t *trial) run(ctx context.Context, rendered chart.RenderedObject, all []chart.RenderedObject) error {
	gvk := rendered.GroupVersionKind()
	mapping, err := t.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		t.addf(Breaks, "the cluster does not serve %s %s: the release cannot be made, today as tomorrow", gvk.GroupVersion(), gvk.Kind)
		return nil
	}
	if err != nil {
		return err
	}
	object := rendered.DeepCopy()
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		object.SetNamespace("")
	} else if object.GetNamespace() == "" {
		object.SetNamespace(t.owner.Namespace)
	}
	if object, err = apply.Prepare(object, t.owner, !t.kind.Chart.Features.DeleteHooks); err != nil {
		t.addf(Breaks, "%v", err)
		return nil
	}
	t.Object = apply.Object{Unstructured: object, Mapping: mapping}
	live, err := t.objects.Get(ctx, t.Object)
	if apierrors.IsForbidden(err) {
		t.forbidden(mapping.Resource.GroupResource(), "get", "to look at what the resources have rendered")
		return nil
	}
	if err != nil {
		return err
	}
	if live != nil && t.foreign(live) {
		return nil
	}
	applied, err := t.objects.Apply(ctx, t.Object, apply.Options{DryRun: true, Warn: t.mended})
	switch {
	case err != nil:
		return t.refused(ctx, err, all)
	case live == nil && t.installed:
		t.addf(Changes, "%s is not there, and is made anew", t.GetKind())
	case live != nil && applied != nil && applied.Generation > live.Generation:
		return t.changed(ctx)
	}
	return nil
}

// addf notes a finding about the template and the custom resource.
func (t *trial) addf(verdict Verdict, format string, args ...any) *Finding {
	found := t.finder.addf(verdict, t.source, format, args...)
	found.Resources = []string{strings.TrimPrefix(t.owner.Namespace+"/"+t.owner.Name, "/")}
	return found
}

// foreign tells of an object that is another release's.
func (t *trial) foreign(live *metav1.PartialObjectMetadata) bool {
	other := live.GetAnnotations()[helmRelease]
	if other == "" || other == t.release {
		return false
	}
	found := t.addf(Breaks, "%s is of the release %s: this release cannot have it, too", apply.Describe(t.Unstructured), other)
	found.Do = "rename one of the two"
	return true
}

// mended notes what server-side apply would have refused.
func (t *trial) mended(what string) {
	found := t.addf(Changes, "server-side apply refuses the %s as it stands, which is mended with an event: %s", t.GetKind(), strings.TrimPrefix(what, apply.Describe(t.Unstructured)+": "))
	found.Do = "mend the template"
}

// refused notes that the API server would not take the object.
func (t *trial) refused(ctx context.Context, err error, all []chart.RenderedObject) error {
	resource := t.Mapping.Resource.GroupResource()
	switch {
	case ctx.Err() != nil:
		return err
	case lacksRight(err):
		for _, verb := range []string{"patch", "create"} {
			t.forbidden(resource, verb, "to try by dry run what the resources render")
		}
	case apierrors.IsNotFound(err) && comesWith(t.Object, all):
		// The namespace that it goes to is of the same release.
	case apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), apierrors.IsInternalError(err) && !strings.Contains(err.Error(), "typed patch"):
		return err
	default:
		t.addf(Breaks, "server-side apply refuses the %s: %s", t.GetKind(), reason(err)).Do = "mend the template, or the values"
	}
	return nil
}

// reason returns what the API server says, without the name of the one object
// where it is about what stands in the template.
func reason(err error) string {
	text := err.Error()
	if _, typed, ok := strings.Cut(text, "failed to create typed patch object"); ok {
		if _, why, ok := strings.Cut(typed, "): "); ok {
			return why
		}
	}
	return text
}

// lacksRight tells a missing right from what an admission policy forbids.
func lacksRight(err error) bool {
	return apierrors.IsForbidden(err) && (strings.Contains(err.Error(), "cannot patch resource") || strings.Contains(err.Error(), "cannot create resource"))
}

// comesWith tells whether the namespace of an object is of the same release.
func comesWith(o apply.Object, all []chart.RenderedObject) bool {
	return slices.ContainsFunc(all, func(other chart.RenderedObject) bool {
		return other.GetKind() == "Namespace" && other.GetName() == o.GetNamespace()
	})
}

// changed notes what an apply changes about a live object.
func (t *trial) changed(ctx context.Context) error {
	live, err := t.objects.Read(ctx, t.Object)
	if err != nil || live == nil {
		return err
	}
	after, err := t.objects.DryRun(ctx, t.Object)
	if err != nil {
		// Refused, and told.
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
	t.addf(Changes, "the %s differs from what is rendered, and is changed: %s%s", t.GetKind(), strings.Join(fields, ", "), pods)
	return nil
}

// maxDifferences bounds how many fields are named.
const maxDifferences = 5

// differences names the fields that differ, of which no value is told.
func differences(was, is any, path string) []string {
	all := differing(was, is, path)
	if len(all) > maxDifferences {
		return append(all[:maxDifferences], fmt.Sprintf("%d more", len(all)-maxDifferences))
	}
	return all
}

func differing(was, is any, path string) []string {
	before, ok := was.(map[string]any)
	after, same := is.(map[string]any)
	if !ok || !same {
		if reflect.DeepEqual(was, is) {
			return nil
		}
		return []string{path}
	}
	keys := map[string]bool{}
	for key := range before {
		keys[key] = true
	}
	for key := range after {
		keys[key] = true
	}
	var found []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		found = append(found, differing(before[key], after[key], strings.TrimPrefix(path+"."+key, "."))...)
	}
	return found
}
