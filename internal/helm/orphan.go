package helm

import (
	"context"
	"errors"

	helmkube "helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/apply"
)

// Orphan lets go of a release whose custom resource is about to go: its objects
// lose the reference to it, by which they would go, too. Objects and records
// keep their labels, so that a custom resource of the same name takes up where
// the old one left. What the operator-sdk has made is taken over first, for its
// objects and records would go with the custom resource; what the kind's rules
// forbid stays as it is.
func (c *Client) Orphan(ctx context.Context, r Request) error {
	if isInherited(c.index.History(r.Namespace, r.Release), r.Owner) {
		if err := c.adopt(ctx, r, (*kubeClient).leaveRefused, (*kubeClient).unrefer); err != nil {
			return err
		}
	}
	run, err := c.begin(ctx, r)
	if err != nil {
		return err
	}
	if len(c.index.History(r.Namespace, r.Release)) == 0 {
		if err := c.search(ctx, run); err != nil {
			return run.outcome(ctx, err)
		}
	}
	var errs []error
	states := c.inventory.OwnedBy(r.Owner.UID)
	for _, state := range c.inventory.ClaimedBy(r.Owner.UID) {
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
	if err := run.outcome(ctx, errors.Join(errs...)); err != nil {
		return err
	}
	c.inventory.Forget(r.Owner.UID)
	return nil
}

// unrefer removes the ownerReferences to the custom resource from objects.
func (k *kubeClient) unrefer(objects helmkube.ResourceList) error {
	errs := make([]error, 0, len(objects))
	for _, info := range objects {
		errs = append(errs, k.objects.RemoveOwnerReference(k.ctx, object(info), k.owner.UID))
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
