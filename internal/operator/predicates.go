package operator

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/reconcile"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/watches"
)

// relevantChanges passes updates of a custom resource that can change the result of a
// reconciliation. Changes of the status do not pass, because every report would trigger
// another reconciliation. The reconciler is notified of all changes, so that it can release
// what it stores.
func relevantChanges(r *reconcile.Reconciler) predicate.Funcs {
	allAnnotations := readsAnnotations(r.Kind.Watch)
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			r.Seen(e.ObjectNew)
			return relevantChange(e.ObjectOld, e.ObjectNew) ||
				allAnnotations && !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			return r.Gone(e.Object)
		},
	}
}

// signalChanges passes everything, and sends a signal after updates and deletions.
func signalChanges(changed chan<- struct{}) predicate.Funcs {
	signal := func() bool {
		select {
		case changed <- struct{}{}:
		default: // a signal is already pending
		}
		return true
	}
	return predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return signal() },
		DeleteFunc: func(event.DeleteEvent) bool { return signal() },
	}
}

// relevantChange reports whether an update must trigger a reconciliation. It includes
// metadata changes that do not bump the generation. It includes labels, because names in
// the watches entry may be templates over them; without such templates the reconciliation
// makes no request.
func relevantChange(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!sameOwnAnnotations(before.GetAnnotations(), after.GetAnnotations()) ||
		controllerutil.ContainsFinalizer(before, api.Finalizer) != controllerutil.ContainsFinalizer(after, api.Finalizer) ||
		hasStatus(before) && !hasStatus(after)
}

// hasStatus reports whether the object has a status. A status that was cleared is written
// again.
func hasStatus(object client.Object) bool {
	cr, ok := object.(*unstructured.Unstructured)
	return ok && status.Exists(cr)
}

// sameOwnAnnotations reports whether the annotations that the operator reads are equal.
func sameOwnAnnotations(a, b map[string]string) bool {
	own := func(all map[string]string) map[string]string {
		all = maps.Clone(all)
		maps.DeleteFunc(all, func(key, _ string) bool { return !annotations.IsKnown(key) })
		return all
	}
	return maps.Equal(own(a), own(b))
}

// readsAnnotations reports whether a template of the entry reads annotations, so that a
// change of any annotation is relevant. Otherwise most changes are not relevant, because
// other clients often change their own annotations.
func readsAnnotations(entry watches.Watch) bool {
	texts := []string{entry.ReleaseNamespace, string(entry.CreateNamespace), entry.ServiceAccountName}
	for _, source := range entry.ValuesFrom {
		texts = append(texts, source.Name)
	}
	for _, dependency := range entry.DependsOn {
		texts = slices.AppendSeq(texts, maps.Values(dependency.Templates()))
	}
	for _, observe := range entry.Observe {
		texts = slices.AppendSeq(texts, maps.Values(observe.Selector.MatchLabels))
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return watches.IsTemplate(text) && strings.Contains(text, "annotations")
	})
}
