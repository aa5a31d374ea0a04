package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
)

// Sources is what values come from beside the spec, see sources.Store.
type Sources interface {
	// Merge lays what the sources of a custom resource hold over values. It
	// asks the API server only for what has changed.
	Merge(ctx context.Context, user types.UID, from []valuesfrom.Source, over map[string]any) (map[string]any, valuesfrom.Secrets, error)
	// Versions returns a text that differs if an object of the sources has changed.
	Versions(from []valuesfrom.Source) string
	// Forget ends what a custom resource uses.
	Forget(user types.UID)
}

// errSourceUnread marks a source that the API server did not give, for now. It
// says nothing about the values, so that the pass is made again.
var errSourceUnread = errors.New("values could not be read")

const (
	// sourcePatience is how long the API server may take to give a source.
	sourcePatience = 10 * time.Second
	// forbiddenAgain is when a source is asked for again that the operator may
	// not read: no watch tells of rights.
	forbiddenAgain = time.Minute
)

// sourcesOf returns the sources of a custom resource, and their versions.
func (r *Reconciler) sourcesOf(v *view) (from []valuesfrom.Source, versions string, err error) {
	if len(r.Kind.Sources) == 0 {
		return nil, "", nil
	}
	from, err = evaluate(r, v, "valuesFrom/"+v.release.Namespace, func(object map[string]any) ([]valuesfrom.Source, error) {
		return r.Kind.SourcesFor(&unstructured.Unstructured{Object: object}, v.release.Namespace)
	})
	if err != nil {
		return nil, "", err
	}
	return from, r.Sources.Versions(from), nil
}

// mergeSources lays the sources over the values of a spec.
func (r *Reconciler) mergeSources(ctx context.Context, v *view, spec map[string]any) (map[string]any, error) {
	if len(r.Kind.Sources) == 0 {
		return spec, nil
	}
	from, _, err := r.sourcesOf(v)
	if err != nil {
		return nil, err
	}
	merged, err := r.readSources(ctx, v, from, spec)
	unusable, ok := errors.AsType[*valuesfrom.Error](err)
	switch {
	case err == nil:
		return merged, nil
	case !ok:
		return nil, fmt.Errorf("%w: %w", errSourceUnread, err)
	}
	if v.observation.Invalid == "" {
		v.invalidReason = unusable.Reason
	}
	if unusable.Reason == api.ReasonValuesSourceForbidden {
		r.Wake(v.key, forbiddenAgain)
	}
	return nil, err
}

// recallSecrets finds out what nobody may read of a resource that is deleted,
// whose sources may be gone already.
func (r *Reconciler) recallSecrets(ctx context.Context, v *view) {
	if len(r.Kind.Sources) == 0 {
		return
	}
	from, _, err := r.sourcesOf(v)
	if err != nil {
		return
	}
	// What is wrong with them is of no concern any more.
	_, _ = r.readSources(ctx, v, from, map[string]any{})
}

// readSources lays sources over values, and takes note of what is secret.
func (r *Reconciler) readSources(ctx context.Context, v *view, from []valuesfrom.Source, over map[string]any) (merged map[string]any, err error) {
	ctx, cancel := context.WithTimeout(ctx, sourcePatience)
	defer cancel()
	merged, v.secrets, err = r.Sources.Merge(ctx, v.cr.GetUID(), from, over)
	return merged, err
}

// SourceChanged calls for a pass over the custom resource that uses an object
// that changed, if it is of this kind.
func (r *Reconciler) SourceChanged(user types.UID) {
	if key, ok := r.keys.get(user); ok {
		r.Wake(key, 0)
	}
}

func (r *Reconciler) forgetSources(user types.UID) {
	if len(r.Kind.Sources) > 0 {
		r.Sources.Forget(user)
	}
}
