package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/chartwright/chartwright/internal/api"
)

// Upgrade takes over what the named managers have written by other means than
// server-side apply, so that a field which a chart no longer has is removed
// and not left to them. It needs to be done once, before the first apply. It is
// given the object as it was read, and returns it as it then is, nil where it is
// gone.
func (c Client) Upgrade(ctx context.Context, o Object, live *metav1.PartialObjectMetadata, managers []string) (*metav1.PartialObjectMetadata, error) {
	names := sets.New(managers...).Delete(controllers)
	upgraded, err := c.take(ctx, o, live, names)
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return upgraded, err
	}
	// Somebody has written it since it was read.
	if live, err = c.Get(ctx, o); err != nil || live == nil {
		return nil, err
	}
	return c.take(ctx, o, live, names)
}

// seize makes us the manager of everything that others have written by
// updates, so that the next apply removes what it does not name. Entries of
// subresources stay, and so do those of Kubernetes' own controllers.
func (c Client) seize(ctx context.Context, o Object) error {
	live, err := c.Get(ctx, o)
	if err != nil || live == nil {
		return err
	}
	managers := sets.New[string]()
	for _, e := range live.GetManagedFields() {
		if e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" && e.Manager != controllers {
			managers.Insert(e.Manager)
		}
	}
	_, err = c.take(ctx, o, live, managers)
	return err
}

// take rewrites the entries of managers as ours, and returns the result.
func (c Client) take(ctx context.Context, o Object, live *metav1.PartialObjectMetadata, managers sets.Set[string]) (*metav1.PartialObjectMetadata, error) {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, managers, api.FieldManager)
	if err == nil && patch != nil {
		live, err = c.metadata(o).Patch(ctx, o.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: api.FieldManager})
	}
	if err != nil {
		return nil, fmt.Errorf("take over the fields of %s: %w", Describe(o.Unstructured), err)
	}
	return live, nil
}
