package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/inputs/dependencies"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// evaluated holds the results of the watches entry's templates for one version of a
// custom resource, so that a custom resource in sync is not expanded.
type evaluated struct {
	resourceVersion string
	results         map[string]result
}

type result struct {
	value any
	err   error
}

// evaluate returns the result of a function of the content of a custom resource. It
// calls the function once for each version of the custom resource and remembers the
// result by name. If the custom resource is too large, the function gets its metadata
// only; if the function fails then, the error is that of the size.
func evaluate[T any](r *Reconciler, v *snapshot, name string, function func(object map[string]any) (T, error)) (T, error) {
	uid, version := v.CR.GetUID(), v.CR.GetResourceVersion()
	var known result
	r.memory.ifKnown(uid, func(m *remembered) {
		if version != "" && m.evaluated.resourceVersion == version {
			known = m.evaluated.results[name]
		}
	})
	if value, is := known.value.(T); is {
		return value, known.err
	}
	cr, err := v.Complete()
	if err != nil {
		return *new(T), err
	}
	object, tooLarge := customresource.Expand(cr)
	if tooLarge != nil {
		object = customresource.Metadata(cr)
	}
	value, err := function(object)
	if err != nil && tooLarge != nil {
		err = tooLarge
	}
	r.memory.ifKnown(uid, func(m *remembered) {
		if m.evaluated.resourceVersion != version {
			m.evaluated = evaluated{resourceVersion: version, results: map[string]result{}}
		}
		if version != "" {
			m.evaluated.results[name] = result{value, err}
		}
	})
	return value, err
}

// errSourceUnread reports that a source could not be read from the API server. It does
// not make the values invalid: the reconciliation is retried.
var errSourceUnread = errors.New("values could not be read")

const (
	// sourceTimeout bounds the time to read the sources.
	sourceTimeout = 10 * time.Second
	// forbiddenRetry is when a forbidden source is read again, because no watch reports
	// a change of permissions.
	forbiddenRetry = time.Minute
)

// sourcesOf returns the sources of a custom resource, and their versions.
func (r *Reconciler) sourcesOf(v *snapshot) (from []valuesfrom.Source, versions string, err error) {
	if len(r.Kind.Sources) == 0 {
		return nil, "", nil
	}
	from, err = evaluate(r, v, "valuesFrom/"+v.Release.Namespace, func(object map[string]any) ([]valuesfrom.Source, error) {
		return r.Kind.SourcesFor(&unstructured.Unstructured{Object: object}, v.Release.Namespace)
	})
	if err != nil {
		return nil, "", err
	}
	for _, source := range from {
		// When a dependency is ready, its values are not older than that.
		if version := r.versionOf(source.Ref); version != "" {
			r.Sources.Saw(source.Ref, version)
		}
	}
	return from, r.Sources.Versions(from), nil
}

// versionOf returns the version of a source that the custom resources of the kind may depend
// on, as the watch of the dependencies has delivered it.
func (r *Reconciler) versionOf(ref valuesfrom.Ref) string {
	if r.Dependencies == nil || !slices.ContainsFunc(r.Kind.DependencyKinds(), func(gvk schema.GroupVersionKind) bool { return gvk.GroupKind() == ref.Kind.GroupKind() }) {
		return ""
	}
	return r.Dependencies.Version(dependencies.Key{GroupKind: ref.Kind.GroupKind(), NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
}

// mergeSources merges the sources into the values of a spec.
func (r *Reconciler) mergeSources(ctx context.Context, v *snapshot, from []valuesfrom.Source, spec map[string]any) (map[string]any, error) {
	if len(r.Kind.Sources) == 0 {
		return spec, nil
	}
	merged, err := r.readSources(ctx, v, from, spec)
	if _, unusable := errors.AsType[*valuesfrom.Error](err); err != nil && !unusable {
		return nil, fmt.Errorf("%w: %w", errSourceUnread, err)
	}
	return merged, err
}

// missingSource returns the object that does not exist or lacks a value, nil if the error has
// another cause.
func missingSource(err error) *valuesfrom.Ref {
	if source, ok := errors.AsType[*valuesfrom.Error](err); ok && source.Reason == api.ReasonValuesSourceMissing {
		return &source.Ref
	}
	return nil
}

// wakeForSources reconciles again later if the operator may not read a source, because
// no watch reports a change of permissions.
func (r *Reconciler) wakeForSources(v *snapshot) {
	if o := v.Observation; o.Invalid != nil && o.Invalid.Reason == api.ReasonValuesSourceForbidden {
		r.Wake(v.key, forbiddenRetry)
	}
}

// recallSecrets collects the secrets of a custom resource that is being deleted. Its
// sources may be deleted already.
func (r *Reconciler) recallSecrets(ctx context.Context, v *snapshot) {
	if from, _, err := r.sourcesOf(v); err == nil && len(r.Kind.Sources) > 0 {
		// Errors do not matter for a deletion.
		_, _ = r.readSources(ctx, v, from, map[string]any{})
	}
}

// readSources merges sources into values, and stores their secrets in the snapshot.
func (r *Reconciler) readSources(ctx context.Context, v *snapshot, from []valuesfrom.Source, over map[string]any) (merged map[string]any, err error) {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	merged, v.Secrets, err = r.Sources.Merge(ctx, v.CR.GetUID(), from, over)
	return merged, err
}

// computeFields computes the kind's own status fields. It makes no request.
func (r *Reconciler) computeFields(ctx context.Context, v *snapshot) {
	if r.Kind.Fields == nil || v.Fields.Refused {
		return
	}
	v.Fields.Result = r.Kind.Fields.Evaluate(r.expressionInput(ctx, v))
}

// expressionInput returns what expressions about the release read.
func (r *Reconciler) expressionInput(ctx context.Context, v *snapshot) kindstatus.Input {
	in := kindstatus.Input{Release: newestRelease(v), Resources: r.resourcesOf(v), Redact: v.Redact}
	if v.values != nil || v.facts != nil {
		in.Values = func() map[string]any {
			// If the values have changed since they were observed, they are not reported.
			all, _ := r.valuesOf(ctx, v)
			return values.Coalesce(r.Kind.Defaults, all)
		}
	}
	in.Observed, in.Unobserved = r.selected(ctx, v)
	return in
}

// selected returns the objects of each entry of observe.
func (r *Reconciler) selected(ctx context.Context, v *snapshot) (objects map[string]any, missing map[string]string) {
	if len(r.Kind.Observes) == 0 {
		return nil, nil
	}
	wrong := map[string]string{}
	selections := make([]catalog.Selection, 0, len(r.Kind.Observes))
	for _, o := range r.Kind.Observes {
		selection, err := evaluate(r, v, "observe/"+o.Name+"/"+v.Release.String(), func(object map[string]any) (catalog.Selection, error) {
			return o.Selection(object, v.Release)
		})
		if err != nil {
			wrong[o.Name] = err.Error()
			continue
		}
		selections = append(selections, selection)
	}
	objects, missing = r.Observed.Select(ctx, v.CR.GetUID(), selections)
	maps.Copy(missing, wrong)
	return objects, missing
}

func newestRelease(v *snapshot) api.ReleaseStatus {
	if len(v.History) == 0 {
		return api.ReleaseStatus{Name: v.Release.Name, Namespace: v.Release.Namespace}
	}
	return *status.OfRelease(v.History[0])
}

// resourcesOf returns the objects of the release in a stable order, including missing
// ones.
func (r *Reconciler) resourcesOf(v *snapshot) []kindstatus.Resource {
	found := map[apply.Key]kindstatus.Resource{}
	add := func(key apply.Key, health inventory.Health) {
		found[key] = kindstatus.Resource{
			Group: key.Group, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name,
			Ready: health.Ready, Reason: health.Reason, Message: health.Message,
		}
	}
	for _, o := range r.Inventory.OwnedBy(v.CR.GetUID()) {
		add(o.Key, inventory.Health{Ready: true})
	}
	summary := r.Inventory.Health(v.CR.GetUID(), v.Observation.Now)
	for _, o := range slices.Concat(summary.Assumed, summary.Unready) {
		add(o.Key, o.Health)
	}
	keys := slices.SortedFunc(maps.Keys(found), func(a, b apply.Key) int {
		return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.Group, b.Group))
	})
	resources := make([]kindstatus.Resource, len(keys))
	for i, key := range keys {
		resources[i] = found[key]
	}
	return resources
}
