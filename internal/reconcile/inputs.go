package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// specFacts are computed from the custom resource without metadata and status, and
// from the sources of its values. They are remembered, so that a custom resource in
// sync is not expanded.
type specFacts struct {
	// digest is the digest of those fields as text, and versions are the versions of the
	// sources.
	digest   string
	versions string

	// values is the digest of spec and sources. unscaled includes the overrides, but not
	// the scaled field.
	values   string
	unscaled string
	// spec is the digest of the spec without the scaled field, and scale the value
	// of that field.
	spec     string
	scale    string
	features analysis.Features
	secrets  valuesfrom.Secrets
}

// observeInputs computes the inputs of the release. A custom resource that is being
// deleted needs only some of them.
func (r *Reconciler) observeInputs(ctx context.Context, v *snapshot) error {
	if r.Kind.Chart == nil {
		// The kind is known from release records only, so that its entry, which may name an
		// account, is unknown.
		v.Observation.AccountUnknown = true
		return nil
	}
	if r.Kind.ServiceAccount != nil {
		account, err := evaluate(r, v, "serviceAccountName", r.Kind.ServiceAccount.For)
		// During a deletion, hooks of the release must not run as the operator, and only objects
		// in the inventory are deleted.
		v.serviceAccount, v.Observation.AccountUnknown = account, err != nil
		if err != nil && !v.Observation.Deleting {
			return err
		}
	}
	if v.Observation.Deleting {
		r.recallSecrets(ctx, v)
		v.digests.Chart = r.chartDigest()
		return nil
	}
	if r.Kind.CreateNamespace != nil {
		var err error
		if v.createNamespace, err = evaluate(r, v, "createNamespace", r.Kind.CreateNamespace.BoolFor); err != nil {
			return err
		}
	}
	if err := r.observeSpec(ctx, v); err != nil {
		return err
	}
	capabilities, err := r.Actions.Capabilities().Digest(v.facts.features)
	if err != nil {
		return fmt.Errorf("%w: %w", errUndiscovered, err)
	}
	v.digests = release.Digests{Chart: r.chartDigest(), Values: v.facts.values}
	v.digests.Input = values.DigestOf(inputFormat, v.digests.Chart, v.digests.Values, v.Release.Namespace, v.Release.Name, capabilities)
	return nil
}

// errUndiscovered reports that .Capabilities could not be read from the API server. It
// does not make the values invalid.
var errUndiscovered = errors.New("the capabilities of the API server could not be read")

// chartDigest returns the digest of the chart, the overrides, and the mode Helm of the numbers
// if the watches entry names it: then all releases are upgraded. The mode Integer upgrades none,
// because it is for releases that have integers.
func (r *Reconciler) chartDigest() string {
	parts := []string{r.Kind.Chart.Digest}
	if len(r.Kind.Overrides) > 0 {
		parts = append(parts, values.Digest(r.Kind.Overrides))
	}
	if r.Kind.Numbers == watches.NumbersHelm {
		parts = append(parts, "numbers "+string(watches.NumbersHelm))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return values.DigestOf(parts...)
}

// inputFormat is part of every input digest. It must change if the same inputs lead to
// another release, because then every release must be upgraded.
const inputFormat = api.Domain + "/1"

// observeSpec computes the facts of the spec and its sources. It expands the custom
// resource only if either has changed since the last time.
func (r *Reconciler) observeSpec(ctx context.Context, v *snapshot) error {
	if err := customresource.TooLarge(v.CR); err != nil {
		return err
	}
	digest, uid := customresource.Digest(v.CR), v.CR.GetUID()
	from, versions, err := r.sourcesOf(v)
	if err != nil {
		return err
	}
	if known := r.memory.of(uid).facts; known != nil && digest != "" && known.digest == digest && known.versions == versions {
		v.facts, v.Secrets = known, known.secrets
		return nil
	}
	object, spec, err := expand(v)
	if err != nil {
		return err
	}
	facts := &specFacts{digest: digest, versions: versions, spec: r.specDigestOf(object), scale: r.scaleOf(object)}
	if spec, err = r.mergeSources(ctx, v, from, spec); err != nil {
		return err
	}
	// The merge changes its first argument.
	facts.values = values.Digest(spec)
	all := values.Merge(spec, r.Kind.Overrides)
	facts.features = r.Kind.Chart.FeaturesOf(all)
	facts.unscaled = r.withoutScale(all)
	facts.secrets = v.Secrets
	v.facts = facts
	if !customresource.Large(v.CR) {
		v.values = all
	}
	r.memory.with(uid, func(known *remembered) { known.facts = facts })
	return nil
}

// content returns the content of a custom resource.
func content(v *snapshot) (map[string]any, error) {
	cr, err := v.Complete()
	if err != nil {
		return nil, err
	}
	return customresource.Expand(cr)
}

// expand returns the content of a custom resource and the values in its spec.
func expand(v *snapshot) (object, spec map[string]any, err error) {
	if object, err = content(v); err != nil {
		return nil, nil, err
	}
	spec, err = values.FromSpec(object)
	return object, spec, err
}

// valuesOf returns the values of a release. The error wraps release.ErrStale if a
// source has changed since the custom resource was observed.
func (r *Reconciler) valuesOf(ctx context.Context, v *snapshot) (map[string]any, error) {
	if v.values != nil || v.facts == nil {
		return v.values, nil
	}
	_, spec, err := expand(v)
	if err != nil {
		return nil, err
	}
	if len(r.Kind.Sources) > 0 {
		from, _, err := r.sourcesOf(v)
		if err != nil {
			return nil, err
		}
		if spec, _, err = r.Sources.Merge(ctx, v.CR.GetUID(), from, spec); err != nil {
			if _, unusable := errors.AsType[*valuesfrom.Error](err); !unusable {
				return nil, err
			}
			return nil, fmt.Errorf("%w: %w", release.ErrStale, err)
		}
		if values.Digest(spec) != v.facts.values {
			return nil, fmt.Errorf("%w: an object in valuesFrom has changed", release.ErrStale)
		}
	}
	return values.Merge(spec, r.Kind.Overrides), nil
}

// specAndScale returns the digest of the spec without the scaled field, and the value
// of the scaled field, which fits into a label; empty if the kind has no scale
// subresource.
func (r *Reconciler) specAndScale(v *snapshot) (spec, scale string) {
	if v.facts != nil {
		return v.facts.spec, v.facts.scale
	}
	object, err := content(v)
	if err != nil {
		return status.Token(customresource.Digest(v.CR)), r.scaleOf(nil)
	}
	return r.specDigestOf(object), r.scaleOf(object)
}

func (r *Reconciler) specDigestOf(object map[string]any) string {
	spec, err := values.FromSpec(object)
	if err != nil {
		return status.Token(fmt.Sprint(object["spec"]))
	}
	if path := r.Kind.ScalePath(); len(path) > 1 {
		remove(spec, path[1:])
	}
	return values.Digest(spec)[:status.TokenLength]
}

func (r *Reconciler) scaleOf(object map[string]any) string {
	path := r.Kind.ScalePath()
	if len(path) < 2 {
		return ""
	}
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	switch number, whole := value.(int64); {
	case err != nil, !found:
		return unscaled
	case whole:
		return strconv.FormatInt(number, 10)
	default:
		return status.Token(fmt.Sprint(value))
	}
}

// remove removes a field from nested maps, and the maps that are empty afterwards:
// they may have been created with the field.
func remove(from map[string]any, path []string) {
	if len(path) == 1 {
		delete(from, path[0])
		return
	}
	if inner, ok := from[path[0]].(map[string]any); ok {
		remove(inner, path[1:])
		if len(inner) == 0 {
			delete(from, path[0])
		}
	}
}
