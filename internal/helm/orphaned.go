package helm

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/records"
)

// ErrOrphaned marks an uninstall that was not begun because the custom resource
// was deleted with propagationPolicy Orphan (kubectl delete --cascade=orphan).
var ErrOrphaned = errors.New("the custom resource was deleted with propagationPolicy Orphan")

// orphaned reports whether the garbage collector has removed the ownerReference
// from every object of the release that should have one. The collector does so
// before it removes the finalizer orphan from the custom resource, so the
// objects show the user's wish after the finalizer is gone.
//
// The objects are read from the API server, because a watch may be behind. If
// the release is to be uninstalled, this costs one request as a rule.
func (r *run) orphaned(request Request, history []records.Record) (bool, error) {
	if !request.Deleting || !referring(request, history) {
		return false, nil
	}
	found := false
	looked := map[apply.Key]bool{}
	look := func(o apply.Object) (refers bool, err error) {
		key := apply.KeyOf(o)
		if looked[key] || key.Namespace != request.Owner.Namespace || apply.Kept(o) {
			return false, nil
		}
		looked[key] = true
		live, err := r.kube.objects.Get(r.kube.ctx, o)
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		if err != nil || live == nil {
			return false, err
		}
		state := apply.StateOf(key.GroupKind(), live)
		if !state.Ours || state.Owner != request.Owner.UID || state.Kept || state.Deleting {
			return false, nil
		}
		found = true
		return state.Referred, nil
	}
	for _, state := range r.kube.inventory.OwnedBy(request.Owner.UID) {
		o, err := r.kube.named(state.Key)
		if err != nil {
			return false, err
		}
		if refers, err := look(o); err != nil || refers {
			return false, err
		}
	}
	// The inventory may not hold every object.
	stored, err := r.driver.Get(history[0].Secret)
	if err != nil {
		return false, err
	}
	objects, err := r.kube.builder.build(strings.NewReader(stored.Manifest))
	if err != nil {
		return false, err
	}
	for _, info := range objects {
		if refers, err := look(object(info)); err != nil || refers {
			return false, err
		}
	}
	return found, nil
}

// referring reports whether the objects of a release should have ownerReferences,
// as far as the newest and the deployed revision say. An uninstall that has
// begun goes on.
func referring(request Request, history []records.Record) bool {
	if len(history) == 0 || history[0].Status == api.StatusUninstalling || request.Owner.Namespace == "" {
		return false
	}
	refers := func(record records.Record) bool {
		switch {
		case !record.Written() || record.OwnerUID != request.Owner.UID:
			return false
		case record.Inventory.References != nil:
			return *record.Inventory.References > 0
		default:
			return request.Chart != nil && record.ChartDigest == request.Digests.Chart && !request.Chart.Features.DeleteHooks
		}
	}
	deployed := slices.IndexFunc(history, func(record records.Record) bool { return record.Status == api.StatusDeployed })
	return refers(history[0]) && (deployed < 0 || refers(history[deployed]))
}
