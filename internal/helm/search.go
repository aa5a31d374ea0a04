package helm

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/chartwright/chartwright/internal/api"
)

// search has all kinds watched of which there are objects with the owner's label,
// where the kind's rules allow them. It is for a process that has not seen the
// objects of a release, if the records are gone or must not be relied on. It makes
// one request for each kind that the server has, and skips those that the operator
// may not list.
func (c *Client) search(ctx context.Context, r *run) error {
	lists, err := c.kubernetes.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("read the server's kinds: %w", err)
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch", "delete"}}, lists)
	allowed := r.kube.allow
	// An operator that serves some namespaces has no permissions beyond them, save
	// for what the rules name.
	allowed.Everything = allowed.Everything && !c.config.Confined
	var found []schema.GroupVersionKind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			if !resource.Namespaced && !allowed.clusterScoped(gv.WithKind(resource.Kind).GroupKind()) {
				continue
			}
			is, err := c.owns(ctx, r, allowed, gv.WithResource(resource.Name), resource.Namespaced)
			if err != nil {
				return fmt.Errorf("look for objects of the release: %w", err)
			}
			if is {
				found = append(found, gv.WithKind(resource.Kind))
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return r.kube.need(found)
}

// owns reports whether there are objects of a resource with the owner's label: in all
// namespaces if the kind's rules allow objects there, and else in the namespace of
// the release.
func (c *Client) owns(ctx context.Context, r *run, allowed allow, resource schema.GroupVersionResource, namespaced bool) (bool, error) {
	options := metav1.ListOptions{LabelSelector: api.LabelOwnerUID + "=" + string(r.kube.owner.UID), Limit: 1}
	all := c.own.objects.Metadata.Resource(resource)
	here := all.Namespace(r.kube.namespace)
	var list *metav1.PartialObjectMetadataList
	var err error
	if namespaced && !allowed.Everything && !allowed.OtherNamespaces {
		list, err = here.List(ctx, options)
	} else if list, err = all.List(ctx, options); apierrors.IsForbidden(err) && namespaced {
		list, err = here.List(ctx, options)
	}
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return len(list.Items) > 0, nil
}
