package reconcile

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/release"
)

// findRelease finds the release of a custom resource by the owner in its
// records, so that a name that was chosen once never changes, or chooses one
// that is free, or whose release can be taken over. It returns false where
// there is none.
func (r *Reconciler) findRelease(v *view) bool {
	namespace, err := r.releaseNamespace(v)
	if owned := ofThis(v.cr, r.Index.OwnedBy(v.cr.GetUID()), namespace); owned != nil {
		v.release = types.NamespacedName{Namespace: owned.Namespace, Name: owned.Release}
		v.history = r.Index.History(v.release.Namespace, v.release.Name)
		switch refused := r.refuseNamespace(v, namespace); {
		case err != nil:
		// If only the watches entry has changed, existing releases stay where they are.
		case namespace != v.release.Namespace && r.Kind.NamespaceFromSpec():
			v.observation.Invalid = fmt.Sprintf("releaseNamespace is now %s, and the release is in %s: it cannot be moved. Set it back, or delete the resource and make it anew", namespace, v.release.Namespace)
		case refused != nil:
			v.observation.Invalid, v.invalidReason = refused.Error(), api.ReasonNotAllowed
		}
		return true
	}
	for _, record := range r.Index.ControlledBy(v.cr.GetUID()) {
		if home := v.cr.GetNamespace(); home != "" && record.Namespace != home {
			// An object belongs to none of another namespace.
			continue
		}
		// The operator-sdk has made it for this very resource, whatever its name.
		v.release = types.NamespacedName{Namespace: record.Namespace, Name: record.Release}
		v.history = r.Index.History(v.release.Namespace, v.release.Name)
		v.observation.Adoptable, v.observation.Inherited = true, true
		return true
	}
	if refused := r.refuseNamespace(v, namespace); err == nil && refused != nil {
		err, v.invalidReason = refused, api.ReasonNotAllowed
	}
	if err != nil {
		v.release = types.NamespacedName{Name: catalog.ReleaseNames(v.cr.GetName(), r.Kind.Kind)[0]}
		v.observation.Invalid = err.Error()
		return true
	}
	for _, name := range catalog.ReleaseNames(v.cr.GetName(), r.Kind.Kind) {
		v.release = types.NamespacedName{Namespace: namespace, Name: name}
		if r.Pool.Taken(v.release, v.cr.GetUID()) {
			continue
		}
		history := r.Index.History(namespace, name)
		if len(history) == 0 {
			return true
		}
		switch newest := history[0]; {
		case newest.Owner == r.owner(v).String() && newest.Operator == r.Operator:
			// The custom resource and its release were restored from a
			// backup, and it got another UID.
			v.history = history
			return true
		case newest.OwnerUID == "" && newest.Controller == "" && !r.foreign.has(newest.UID):
			v.history = history
			v.observation.Adoptable = true
			return true
		}
	}
	return false
}

// ofThis returns the newest of the records that name a custom resource as their
// owner, nil where none counts. The UID alone proves nothing: a record is copied
// to another namespace with all that it says, and whoever may write Secrets there
// can write any. So those count that are where the status has reported the
// release, which takes a right of its own to write, or where the resource wants it.
func ofThis(cr *unstructured.Unstructured, owned []release.Record, wanted string) *release.Record {
	if !slices.ContainsFunc(owned, func(r release.Record) bool { return r.Namespace != wanted }) {
		// Nothing else is in question, and a status takes time to read.
		return first(owned, wanted)
	}
	if release := decodeStatus(cr.Object["status"]).Release; release != nil {
		if found := first(owned, release.Namespace); found != nil {
			return found
		}
	}
	return first(owned, wanted)
}

// first returns the first record of a namespace, nil where there is none.
func first(found []release.Record, namespace string) *release.Record {
	if i := slices.IndexFunc(found, func(r release.Record) bool { return r.Namespace == namespace }); i >= 0 {
		return &found[i]
	}
	return nil
}

// releaseNamespace is where the custom resource asks for its release to be.
func (r *Reconciler) releaseNamespace(v *view) (string, error) {
	if r.Kind.Namespace == nil {
		return v.cr.GetNamespace(), nil
	}
	return evaluate(r, v, "releaseNamespace", r.Kind.Namespace.For)
}

// systemNamespaces are the namespaces that Kubernetes itself makes and uses.
var systemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease"}

// refuseNamespace returns an error if the author of a custom resource has chosen
// a namespace of the cluster or of the operator for the release. A namespace that
// the watches entry names, and the namespace of the custom resource, are allowed.
func (r *Reconciler) refuseNamespace(v *view, namespace string) error {
	switch {
	case namespace != r.OwnNamespace && !slices.Contains(systemNamespaces, namespace),
		namespace == v.cr.GetNamespace(), !r.Kind.NamespaceFromSpec(), slices.Contains(r.Kind.Allow.SystemNamespaces, namespace):
		return nil
	}
	return fmt.Errorf("releaseNamespace is %s, a namespace of the cluster or of the operator: choose another, or add %[1]s to allow.systemNamespaces in the watches file", namespace)
}
