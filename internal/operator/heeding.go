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

// heeding lets through the changes of a custom resource that a pass could act
// on. Its status is none of them, or every report would call for another pass.
// The reconciler sees them all, so that it can forget.
func heeding(r *reconcile.Reconciler) predicate.Funcs {
	allAnnotations := readsAnnotations(r.Kind.Watch)
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			r.Seen(e.ObjectNew)
			return matters(e.ObjectOld, e.ObjectNew) ||
				allAnnotations && !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.Gone(e.Object)
			return false
		},
	}
}

// matters tells of changes that no generation tells of, too. Labels are among
// them, for names in the watches entry may be templates over them. Where they are
// not, the pass costs no request.
func matters(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!sameWords(before.GetAnnotations(), after.GetAnnotations()) ||
		controllerutil.ContainsFinalizer(before, api.Finalizer) != controllerutil.ContainsFinalizer(after, api.Finalizer) ||
		hasStatus(before) && !hasStatus(after)
}

// hasStatus tells whether anything is reported: what somebody cleared is told
// anew.
func hasStatus(object client.Object) bool {
	cr, ok := object.(*unstructured.Unstructured)
	return ok && status.Exists(cr)
}

// sameWords tells whether the annotations that are meant for us are equal.
func sameWords(a, b map[string]string) bool {
	ours := func(from, in map[string]string) bool {
		for key, value := range from {
			if other, ok := in[key]; annotations.IsKnown(key) && (!ok || other != value) {
				return false
			}
		}
		return true
	}
	return ours(a, b) && ours(b, a)
}

// readsAnnotations tells whether a template of the entry speaks of annotations,
// so that any of them may matter. Others write theirs too often to heed them all
// where none does.
func readsAnnotations(entry watches.Watch) bool {
	texts := []string{entry.ReleaseNamespace, string(entry.CreateNamespace), entry.ServiceAccountName}
	for _, source := range entry.ValuesFrom {
		texts = append(texts, source.Name)
	}
	for _, observe := range entry.Observe {
		texts = slices.AppendSeq(texts, maps.Values(observe.Selector.MatchLabels))
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return watches.IsTemplate(text) && strings.Contains(text, "annotations")
	})
}
