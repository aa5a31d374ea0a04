package reconcile

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/release"
)

// specFacts is what follows from the fields of a custom resource beside metadata and
// status, and from the sources of its values. It is remembered, so that a custom
// resource in sync is not expanded.
type specFacts struct {
	// digest is that of the fields as text, and versions those of the sources.
	digest   string
	versions string

	// values is the digest of spec and sources, and unscaled the same with the
	// overrides and without the scaled field.
	values   string
	unscaled string
	// spec is the digest of the spec without the scaled field, and scale the value
	// of that field.
	spec     string
	scale    string
	features analysis.Features
	secrets  valuesfrom.Secrets
}

// recalled returns what is remembered of a custom resource of this digest and
// these versions of sources, nil if it was another.
func (m *memory) recalled(uid types.UID, digest, versions string) (known *specFacts) {
	if digest == "" {
		return nil
	}
	m.look(uid, func(r *remembered) {
		if facts := r.facts; facts != nil && facts.digest == digest && facts.versions == versions {
			known = facts
		}
	})
	return known
}

// observeSpec finds out what follows from the spec and its sources. It expands
// the custom resource only if either has changed since the last time.
func (r *Reconciler) observeSpec(ctx context.Context, v *view) error {
	if err := customresource.TooLarge(v.cr); err != nil {
		return err
	}
	digest, uid := customresource.Digest(v.cr), v.cr.GetUID()
	_, versions, err := r.sourcesOf(v)
	if err != nil {
		return err
	}
	if known := r.memory.recalled(uid, digest, versions); known != nil {
		v.facts, v.secrets = known, known.secrets
		return nil
	}
	object, err := customresource.Expand(v.cr)
	if err != nil {
		return err
	}
	facts := &specFacts{digest: digest, versions: versions, spec: r.specDigestOf(object), scale: r.scaleOf(object)}
	spec, err := values.FromSpec(object)
	if err != nil {
		return err
	}
	if spec, err = r.mergeSources(ctx, v, spec); err != nil {
		return err
	}
	// The merge changes its first argument.
	facts.values = values.Digest(spec)
	all := values.Merge(spec, r.Kind.Overrides)
	facts.features = r.Kind.Chart.FeaturesOf(all)
	facts.unscaled = r.withoutScale(all)
	facts.secrets = v.secrets
	v.facts = facts
	if !customresource.Large(v.cr) {
		v.values = all
	}
	r.memory.with(uid, func(known *remembered) { known.facts = facts })
	return nil
}

// valuesOf returns the values of a release. The error wraps helm.ErrStale if they
// are not those that the reconciliation observed, because a source has changed.
func (r *Reconciler) valuesOf(ctx context.Context, v *view) (map[string]any, error) {
	if v.values != nil || v.facts == nil {
		return v.values, nil
	}
	object, err := customresource.Expand(v.cr)
	if err != nil {
		return nil, err
	}
	spec, err := values.FromSpec(object)
	if err != nil {
		return nil, err
	}
	if len(r.Kind.Sources) > 0 {
		from, _, err := r.sourcesOf(v)
		if err != nil {
			return nil, err
		}
		if spec, _, err = r.Sources.Merge(ctx, v.cr.GetUID(), from, spec); err != nil {
			return nil, fmt.Errorf("%w: %w", release.ErrStale, err)
		}
		if values.Digest(spec) != v.facts.values {
			return nil, fmt.Errorf("%w: an object that values come from has changed", release.ErrStale)
		}
	}
	return values.Merge(spec, r.Kind.Overrides), nil
}

// specDigest returns the digest of the spec without the field that is scaled.
func (r *Reconciler) specDigest(v *view) string {
	if v.facts != nil {
		return v.facts.spec
	}
	object, err := customresource.Expand(v.cr)
	if err != nil {
		return token(customresource.Digest(v.cr))
	}
	return r.specDigestOf(object)
}

func (r *Reconciler) specDigestOf(object map[string]any) string {
	spec, err := values.FromSpec(object)
	if err != nil {
		return token(fmt.Sprint(object["spec"]))
	}
	if path := r.Kind.ScalePath(); len(path) > 1 {
		remove(spec, path[1:])
	}
	return values.Digest(spec)[:tokenLength]
}

// scale returns the value of the scaled field, which fits into a label; empty if
// the kind has no scale subresource.
func (r *Reconciler) scale(v *view) string {
	if v.facts != nil {
		return v.facts.scale
	}
	if len(r.Kind.ScalePath()) < 2 {
		return ""
	}
	object, err := customresource.Expand(v.cr)
	if err != nil {
		return unscaled
	}
	return r.scaleOf(object)
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
		return token(fmt.Sprint(value))
	}
}
