package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

// findRelease finds the release of a custom resource by the owner in the release
// records, so that a chosen name never changes. Without a release it chooses a name
// that is free or whose release can be adopted. It returns false if there is no such
// name.
func (r *Reconciler) findRelease(v *snapshot) bool {
	namespace, err := r.releaseNamespace(v)
	if owned := ownRecord(v.CR, r.Index.OwnedBy(v.CR.GetUID()), namespace); owned != nil {
		v.Release = types.NamespacedName{Namespace: owned.Namespace, Name: owned.Release}
		v.History = r.Index.History(v.Release.Namespace, v.Release.Name)
		switch {
		case err != nil:
		// If only the watches entry has changed, existing releases are not moved.
		case namespace != v.Release.Namespace && r.Kind.NamespaceFromSpec():
			v.Observation.MoveTo = namespace
			v.Observation.Invalid = r.refuseMove(v, namespace)
		default:
			v.Observation.Invalid = r.refuseNamespace(v, namespace)
		}
		return true
	}
	for _, record := range r.Index.ControlledBy(v.CR.GetUID()) {
		if home := v.CR.GetNamespace(); record.Namespace != cmp.Or(home, namespace) || home == "" && err != nil {
			// A namespaced object cannot have an owner in another namespace, and everyone with write
			// access to Secrets can name a cluster-scoped owner.
			continue
		}
		// The operator-sdk has created the release for this custom resource.
		v.Release = types.NamespacedName{Namespace: record.Namespace, Name: record.Release}
		v.History = r.Index.History(v.Release.Namespace, v.Release.Name)
		v.Observation.Adoptable, v.Observation.Inherited = true, true
		v.Observation.Invalid = r.refuseNamespace(v, record.Namespace)
		return true
	}
	v.Observation.Invalid = r.refuseNamespace(v, namespace)
	if err != nil {
		v.Observation.Invalid = invalid(err)
	}
	if name, acts := r.Pool.ReleaseOf(v.CR.GetUID()); acts {
		// No record of the action exists yet, and another name may have become free.
		v.Release, v.History = name, r.Index.History(name.Namespace, name.Name)
		v.Observation.Adoptable = len(v.History) > 0 && !r.isRestored(v, v.History[0])
		return true
	}
	if v.Observation.Invalid != nil {
		v.Release = types.NamespacedName{Name: catalog.ReleaseNames(v.CR.GetName(), r.Kind.Kind)[0]}
		return true
	}
	var found bool
	v.Release, v.History, found = r.chooseRelease(v, namespace)
	v.Observation.Adoptable = len(v.History) > 0 && !r.isRestored(v, v.History[0])
	return found
}

// chooseRelease returns the first name that the custom resource may use in a namespace, and
// the history of that release, which may be restored or adoptable. It returns false and the
// last name if every name is taken.
func (r *Reconciler) chooseRelease(v *snapshot, namespace string) (name types.NamespacedName, history []release.Record, found bool) {
	for _, candidate := range catalog.ReleaseNames(v.CR.GetName(), r.Kind.Kind) {
		name = types.NamespacedName{Namespace: namespace, Name: candidate}
		if r.Pool.Taken(name, v.CR.GetUID()) {
			continue
		}
		history := r.Index.History(namespace, candidate)
		if len(history) == 0 {
			return name, nil, true
		}
		newest := history[0]
		_, foreign := r.foreign.get(newest.UID)
		if r.isRestored(v, newest) || newest.OwnerUID == "" && newest.Controller == "" && !foreign {
			return name, history, true
		}
	}
	return name, nil, false
}

// isRestored reports whether the custom resource and its release were restored from a
// backup, so that the UID of the custom resource has changed.
func (r *Reconciler) isRestored(v *snapshot, newest release.Record) bool {
	return newest.Owner == r.owner(v).String() && newest.Operator == r.Operator
}

// refuseMove returns a problem if a release cannot be installed in the namespace to which
// the spec moves it. Otherwise the application would be deleted and not created again.
func (r *Reconciler) refuseMove(v *snapshot, namespace string) *plan.Problem {
	if problem := r.refuseNamespace(v, namespace); problem != nil {
		return problem
	}
	if !r.watches(namespace) {
		return invalid(fmt.Errorf("releaseNamespace is now %s, but the release is in %s, and the operator does not watch namespace %[1]s: set the namespace back, or add it to $WATCH_NAMESPACE", namespace, v.Release.Namespace))
	}
	if _, history, found := r.chooseRelease(v, namespace); !found || len(history) > 0 {
		return invalid(fmt.Errorf("releaseNamespace is now %s, but the release is in %s, and the release names %v are taken in namespace %[1]s: set the namespace back, or uninstall the other releases", namespace, v.Release.Namespace, catalog.ReleaseNames(v.CR.GetName(), r.Kind.Kind)))
	}
	return nil
}

// ownRecord returns the newest of the records that name a custom resource as their
// owner, nil if none is trustworthy. The UID proves nothing, because everyone with
// write access to Secrets in a namespace can copy or forge a record there. A record counts only
// in the namespace that the status reports, which needs another permission to write,
// or in the namespace that the custom resource requests.
func ownRecord(cr *unstructured.Unstructured, owned []release.Record, wanted string) *release.Record {
	if !slices.ContainsFunc(owned, func(r release.Record) bool { return r.Namespace != wanted }) {
		// All records are in one namespace, so the status need not be decoded.
		return first(owned, wanted)
	}
	if release := status.Read(cr).Release; release != nil {
		if found := first(owned, release.Namespace); found != nil {
			return found
		}
	}
	return first(owned, wanted)
}

// first returns the first record of a namespace, or nil.
func first(found []release.Record, namespace string) *release.Record {
	if i := slices.IndexFunc(found, func(r release.Record) bool { return r.Namespace == namespace }); i >= 0 {
		return &found[i]
	}
	return nil
}

// releaseNamespace returns the namespace that the custom resource requests for its
// release.
func (r *Reconciler) releaseNamespace(v *snapshot) (string, error) {
	if r.Kind.Namespace == nil {
		return v.CR.GetNamespace(), nil
	}
	return evaluate(r, v, "releaseNamespace", r.Kind.Namespace.For)
}

// systemNamespaces are the namespaces that Kubernetes itself creates and uses.
var systemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease"}

// refuseNamespace returns a problem if the author of a custom resource has chosen
// a namespace of the cluster or of the operator for the release. A namespace that
// the watches entry names, and the namespace of the custom resource, are allowed.
func (r *Reconciler) refuseNamespace(v *snapshot, namespace string) *plan.Problem {
	switch {
	case namespace != r.OwnNamespace && !slices.Contains(systemNamespaces, namespace),
		namespace == v.CR.GetNamespace(), !r.Kind.NamespaceFromSpec(), slices.Contains(r.Kind.Allow.SystemNamespaces, namespace):
		return nil
	}
	return &plan.Problem{Reason: api.ReasonNotAllowed, Message: fmt.Sprintf(
		"releaseNamespace is %s, a namespace of the cluster or of the operator: choose another, or add %[1]s to allow.systemNamespaces in the watches file", namespace)}
}

// owner returns the owner of the release's objects and records, and of the Secret with outputs.
func (r *Reconciler) owner(v *snapshot) apply.Owner {
	return apply.Owner{
		GVK:       r.Kind.GVK(),
		Namespace: v.CR.GetNamespace(),
		Name:      v.CR.GetName(),
		UID:       v.CR.GetUID(),
		Operator:  r.Operator,
	}
}

// claimSignature finds out whether the newest record must be signed, and reserves
// the time for it: the operator signs a limited number of records per second.
func (r *Reconciler) claimSignature(v *snapshot) {
	o := &v.Observation
	if o.Newest == nil || !o.Newest.Owned || !o.Newest.WrittenByUs || o.Newest.Untrusted || o.Newest.Status != api.StatusDeployed {
		return
	}
	if r.Actions.SignedByCurrentKey(v.History[0]) {
		// The key may be replaced once more.
		r.memory.ifKnown(v.CR.GetUID(), func(m *remembered) { m.signAt = time.Time{} })
		return
	}
	if wait := r.memory.signAt(v.CR.GetUID(), o.Now, r.reserveSignature).Sub(o.Now); wait > 0 {
		v.signIn = wait
		return
	}
	o.Unsigned = true
}

// reserveSignature returns when the next record may be signed. An operator that
// finds many unsigned records does not sign them all at once.
func (r *Reconciler) reserveSignature(now time.Time) time.Time {
	if r.Signatures == nil {
		return now
	}
	return now.Add(r.Signatures.ReserveN(now, 1).DelayFrom(now))
}

// observeRefusal changes a request for a revision with an unusable record into a
// request that is refused.
func (r *Reconciler) observeRefusal(v *snapshot) {
	request, target := v.Observation.Request, 0
	switch {
	case request != nil:
		target = request.Revision
	case v.Marks.Untrusted && v.Requests.Rollback != nil && status.Token(v.Requests.Rollback.Value) == v.Marks.Rollback:
		target = v.available(*v.Requests.Rollback)
	}
	for _, record := range v.History {
		if target > 0 && record.Revision == target {
			v.UntrustedTarget = r.unrepeatable.of(record, v.digests.Input)
		}
	}
	if request != nil && v.UntrustedTarget != "" {
		request.Revision = 0
	}
}
