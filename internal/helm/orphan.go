package helm

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// Orphan ends the ownership of a release whose custom resource is being deleted. It
// removes the ownerReferences from the objects, so that the garbage collector does not
// delete them. Objects and records keep their labels, so that a new custom resource of
// the same name can continue the release.
//
// Objects and records of the operator-sdk are adopted first, because they would be
// deleted with the custom resource. Objects that the kind's rules forbid are not
// changed.
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
			// The release may be in another namespace than the custom resource. The
			// garbage collector would delete objects that refer to the custom resource.
			if state.Referred && state.Namespace == r.Owner.Namespace {
				states = append(states, state)
			}
		}
		for _, state := range states {
			o, err := run.kube.named(state.Key)
			if meta.IsNoMatchError(err) {
				// The CustomResourceDefinition was deleted with its objects.
				continue
			}
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

// removeOwnerReferences removes the ownerReferences to the custom resource from objects.
func (k *kubeClient) removeOwnerReferences(objects engine.ResourceList) error {
	errs := make([]error, 0, len(objects))
	for _, info := range objects {
		errs = append(errs, k.objects.RemoveOwnerReference(k.ctx, object(info), k.Owner.UID))
	}
	return errors.Join(errs...)
}

// named returns an object with only its identity, to read, patch or delete it.
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
// ownerReferences from all objects of the release. The garbage collector does so before
// it removes the finalizer "orphan" from the custom resource, so the objects show the
// user's choice when the finalizer is gone.
//
// The objects are read from the API server, because a watch may be behind. For a
// release to be uninstalled, this usually costs one request.
func (r *run) refuseOrphaned(history []release.Record) error {
	if !r.Deleting || !referring(r.Request, history) {
		return nil
	}
	checked, found := sets.Set[apply.Key]{}, false
	refers := func(o apply.Object) (bool, error) {
		if checked.Has(apply.KeyOf(o)) {
			return false, nil
		}
		state, err := r.kube.referrer(o)
		if state.Managed {
			checked.Insert(apply.KeyOf(o))
			found = true
		}
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
	if state.Referred || k.appliedWithReference(o, live) {
		return state, nil
	}
	why, err := k.reason(o, live)
	if err != nil || why != "" {
		return apply.State{}, err
	}
	return state, nil
}

// appliedWithReference reports whether an object had an ownerReference when it was applied
// from a manifest. Older versions added it to guarded objects, too.
func (k *kubeClient) appliedWithReference(o apply.Object, live *metav1.PartialObjectMetadata) bool {
	prepared, err := k.prepareWith(apply.Object{Unstructured: o.DeepCopy(), Mapping: o.Mapping}, true)
	if err != nil || !slices.ContainsFunc(prepared.GetOwnerReferences(), func(reference metav1.OwnerReference) bool { return reference.UID == k.Owner.UID }) {
		return false
	}
	return prepared.GetAnnotations()[api.AnnotationApplied] == live.Annotations[api.AnnotationApplied]
}

// referring reports whether the objects of a release should have ownerReferences,
// according to the newest and the deployed revision. It returns false if an uninstall
// has already begun.
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
