package apply

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Unrefer takes the ownerReference to a custom resource from an object, so that
// the garbage collector leaves it when the custom resource goes. An object that
// is gone, or has none, stays as it is.
func (c Client) Unrefer(ctx context.Context, o Object, owner types.UID) error {
	live, err := c.Get(ctx, o)
	if err != nil || live == nil {
		return err
	}
	left := []metav1.OwnerReference{}
	for _, reference := range live.GetOwnerReferences() {
		if reference.UID != owner {
			left = append(left, reference)
		}
	}
	if len(left) == len(live.GetOwnerReferences()) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		// A list is written whole, and somebody may have changed it.
		"resourceVersion": live.GetResourceVersion(),
		"ownerReferences": left,
	}})
	if err != nil {
		return err
	}
	if _, err := c.metadata(o).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("let go of %s: %w", Describe(o.Unstructured), err)
	}
	return nil
}
