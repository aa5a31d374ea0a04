package helm

import (
	"context"
	"errors"
	"slices"

	helmkube "helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
)

// Orphan lets go of a release whose custom resource is about to go: its objects
// lose the reference to it, by which they would go, too. Objects and records
// keep their labels, so that a custom resource of the same name takes up where
// the old one left. What the operator-sdk has made is taken over first, for its
// objects and records would go with the custom resource; what the kind's rules
// forbid stays as it is.
func (c *Client) Orphan(ctx context.Context, r Request) error {
	if isInherited(c.config.Index.History(r.Namespace, r.Release), r.Owner) {
		if err := c.adopt(ctx, r, true); err != nil {
			return err
		}
	}
	return c.run(ctx, r, func(run *run) error {
		if len(run.history()) == 0 {
			if err := run.search(); err != nil {
				return err
			}
		}
		var errs []error
		states := c.config.Inventory.OwnedBy(r.Owner.UID)
		for _, state := range c.config.Inventory.ClaimedBy(r.Owner.UID) {
			// The release may be in another namespace than the custom resource. The garbage
			// collector would delete what refers to the custom resource.
			if state.Referred && state.Namespace == r.Owner.Namespace {
				states = append(states, state)
			}
		}
		for _, state := range states {
			o, err := run.kube.named(state.Key)
			if err == nil {
				err = run.kube.objects.RemoveOwnerReference(ctx, o, r.Owner.UID)
			}
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		c.config.Inventory.Forget(r.Owner.UID)
		return nil
	})
}

// unrefer removes the ownerReferences to the custom resource from objects.
func (k *kubeClient) unrefer(objects helmkube.ResourceList) error {
	errs := make([]error, 0, len(objects))
	for _, info := range objects {
		errs = append(errs, k.objects.RemoveOwnerReference(k.ctx, object(info), k.Owner.UID))
	}
	return errors.Join(errs...)
}

// named returns what is needed of an object to read, patch or delete it.
func (k *kubeClient) named(key apply.Key) (apply.Object, error) {
	mapping, err := k.builder.mapper.RESTMapping(key.GroupKind())
	if err != nil {
		return apply.Object{}, err
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(mapping.GroupVersionKind)
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return apply.Object{Unstructured: o, Mapping: mapping}, nil
}

// refuseOrphaned returns ErrOrphaned if the garbage collector has removed the
// ownerReference from every object of the release that should have one. The
// collector does so before it removes the finalizer orphan from the custom
// resource, so the objects show the user's wish after the finalizer is gone.
//
// The objects are read from the API server, because a watch may be behind. If
// the release is to be uninstalled, this costs one request as a rule.
func (r *run) refuseOrphaned(history []release.Record) error {
	if !r.Deleting || !referring(r.Request, history) {
		return nil
	}
	looked, found := sets.Set[apply.Key]{}, false
	refers := func(o apply.Object) (bool, error) {
		if looked.Has(apply.KeyOf(o)) {
			return false, nil
		}
		looked.Insert(apply.KeyOf(o))
		state, err := r.kube.referrer(o)
		found = found || state.Managed
		return state.Referred, err
	}
	for _, state := range r.kube.inventory.OwnedBy(r.Owner.UID) {
		o, err := r.kube.named(state.Key)
		if err != nil {
			return err
		}
		if yes, err := refers(o); err != nil || yes {
			return err
		}
	}
	// The inventory may not hold every object.
	stored, err := r.driver.Get(history[0].Secret)
	if err != nil {
		return err
	}
	objects, err := r.kube.builder.build(stored.Manifest)
	if err != nil {
		return err
	}
	for _, info := range objects {
		if yes, err := refers(object(info)); err != nil || yes {
			return err
		}
	}
	if found {
		return ErrOrphaned
	}
	return nil
}

// referrer returns the live state of an object that should have an ownerReference to
// the owner, and the zero State of any other object.
func (k *kubeClient) referrer(o apply.Object) (apply.State, error) {
	if apply.KeyOf(o).Namespace != k.Owner.Namespace || apply.HasKeepPolicy(o) {
		return apply.State{}, nil
	}
	live, err := k.objects.Get(k.ctx, o)
	if apierrors.IsForbidden(err) {
		return apply.State{}, nil
	}
	if err != nil || live == nil {
		return apply.State{}, err
	}
	state := apply.StateOf(o.GroupVersionKind().GroupKind(), live)
	if !state.Managed || state.Owner != k.Owner.UID || state.Kept || state.Deleting {
		return apply.State{}, nil
	}
	return state, nil
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
