package operator

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/reconcile"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// newSources returns the store of what values come from, which watchSources
// feeds.
func (k *kinds) newSources() *valuesfrom.Store {
	return valuesfrom.NewStore(valuesfrom.FromServer(k.clientset.CoreV1(), k.options.signingKeySecret()), k.sourceChanged)
}

// watchSources watches the kinds that some served kind takes values from, and
// no other: an operator that needs no ConfigMap needs no right to them.
func (k *kinds) watchSources(ctx context.Context, a *area) error {
	for _, kind := range []watches.SourceKind{watches.SourceSecret, watches.SourceConfigMap} {
		if !takesFrom(k.options.Kinds, kind) {
			continue
		}
		options := k.cacheOptions()
		a.limit(&options)
		options.DefaultTransform = valuesfrom.Compact
		if kind == watches.SourceSecret {
			// There are many, and nobody takes values from them.
			options.DefaultFieldSelector = fields.OneTermNotEqualSelector("type", release.SecretType)
		}
		gvk := schema.GroupVersionKind{Version: "v1", Kind: string(kind)}
		w, err := k.watch(ctx, gvk, options, k.sources.Handler(kind))
		if err != nil {
			return err
		}
		// Kinds that take no values from there are served all the same.
		if err := k.await(ctx, w, func() {
			k.manager.GetLogger().Info("objects that values come from may not be watched: their changes are not seen", "kind", kind)
		}); err != nil {
			return err
		}
	}
	return nil
}

func takesFrom(kinds []catalog.Kind, kind watches.SourceKind) bool {
	return slices.ContainsFunc(kinds, func(served catalog.Kind) bool {
		return slices.ContainsFunc(served.Sources, func(s catalog.Source) bool { return s.Kind == kind })
	})
}

// sourceChanged calls for a pass over the custom resource whose values come
// from an object that changed.
func (k *kinds) sourceChanged(user types.UID) {
	k.each(func(r *reconcile.Reconciler) { r.SourceChanged(user) })
}
