package reconcile

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/rollout"
)

// tellRollout tells that the rollout of the kind's chart has stopped, or goes
// on: in the log and, where it has stopped, by an event on those that did it.
// Of those that wait each has a condition; a thousand events would say no more.
func (r *Reconciler) tellRollout(ctx context.Context, news rollout.News) {
	chart := r.Kind.Chart.Name() + "-" + r.Kind.Chart.Version()
	logger := log.Log.WithValues("kind", r.Kind.Kind, "group", r.Kind.Group, "chart", chart)
	if !news.Stopped {
		logger.Info("rollout continues", "waiting", news.Waiting)
		return
	}
	scope := "their namespaces"
	if news.Everywhere {
		scope = "all namespaces"
	}
	logger.Info("rollout stopped by failed upgrades", "scope", scope, "failed", names(news.Failed), "waiting", news.Waiting)
	for _, key := range news.Failed {
		cr := &unstructured.Unstructured{}
		cr.SetGroupVersionKind(r.Kind.GVK())
		if err := r.Reader.Get(ctx, key, cr); err != nil {
			// It goes, and the rollout goes on.
			continue
		}
		r.Recorder.Event(cr, corev1.EventTypeWarning, api.EventRolloutStopped, fmt.Sprintf(
			"The rollout of chart %s has stopped here and in %s: %d others wait until this one is fixed, held, paused or deleted", chart, scope, news.Waiting))
	}
}

// names are those of custom resources, as kubectl's -n and NAME.
func names(keys []types.NamespacedName) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = key.String()
	}
	return list
}
