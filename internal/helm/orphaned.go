package helm

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
)

// ErrOrphaned marks an uninstall that was not begun because the custom resource
// was deleted with propagationPolicy Orphan (kubectl delete --cascade=orphan).
var ErrOrphaned = errors.New("the custom resource was deleted with propagationPolicy Orphan")

// refuseOrphaned returns ErrOrphaned if the garbage collector has removed the
// ownerReference from every object of the release that should have one. The
// collector does so before it removes the finalizer orphan from the custom
// resource, so the objects show the user's wish after the finalizer is gone.
//
// The objects are read from the API server, because a watch may be behind. If
// the release is to be uninstalled, this costs one request as a rule.
func (r *run) refuseOrphaned(request Request, history []release.Record) error {
	if !request.Deleting || !referring(request, history) {
		return nil
	}
	s := referenceSearch{kube: r.kube, looked: map[apply.Key]bool{}}
	for _, state := range r.kube.inventory.OwnedBy(request.Owner.UID) {
		o, err := r.kube.named(state.Key)
		if err != nil {
			return err
		}
		if refers, err := s.look(o); err != nil || refers {
			return err
		}
	}
	// The inventory may not hold every object.
	stored, err := r.driver.Get(history[0].Secret)
	if err != nil {
		return err
	}
	objects, err := r.kube.builder.build(strings.NewReader(stored.Manifest))
	if err != nil {
		return err
	}
	for _, info := range objects {
		if refers, err := s.look(object(info)); err != nil || refers {
			return err
		}
	}
	if s.found {
		return ErrOrphaned
	}
	return nil
}

// referenceSearch looks for an object with an ownerReference to the owner.
type referenceSearch struct {
	kube   *kubeClient
	looked map[apply.Key]bool
	// found: there is an object that should have one.
	found bool
}

// look reports whether an object that should have an ownerReference has it.
func (s *referenceSearch) look(o apply.Object) (refers bool, err error) {
	key := apply.KeyOf(o)
	if s.looked[key] || key.Namespace != s.kube.owner.Namespace || apply.HasKeepPolicy(o) {
		return false, nil
	}
	s.looked[key] = true
	live, err := s.kube.objects.Get(s.kube.ctx, o)
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil || live == nil {
		return false, err
	}
	state := apply.StateOf(key.GroupKind(), live)
	if !state.Managed || state.Owner != s.kube.owner.UID || state.Kept || state.Deleting {
		return false, nil
	}
	s.found = true
	return state.Referred, nil
}

// referring reports whether the objects of a release should have ownerReferences,
// as far as the newest and the deployed revision say. An uninstall that has
// begun goes on.
func referring(request Request, history []release.Record) bool {
	if len(history) == 0 || history[0].Status == api.StatusUninstalling || request.Owner.Namespace == "" {
		return false
	}
	refers := func(record release.Record) bool {
		switch {
		case !record.Written() || record.OwnerUID != request.Owner.UID:
			return false
		case record.Inventory.References != nil:
			return *record.Inventory.References > 0
		default:
			return request.Chart != nil && record.ChartDigest == request.Digests.Chart && !request.Chart.Features.DeleteHooks
		}
	}
	deployed := slices.IndexFunc(history, func(record release.Record) bool { return record.Status == api.StatusDeployed })
	return refers(history[0]) && (deployed < 0 || refers(history[deployed]))
}
