package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// Refers reports whether an object has an ownerReference to an owner.
func Refers(object metav1.Object, owner types.UID) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
}

// Unrefer removes the ownerReference to a custom resource from an object, so
// that the garbage collector leaves the object when the custom resource is
// deleted. An object without the reference is not changed. The garbage collector
// may remove the same reference at the same time, so conflicts are retried.
func (c Client) Unrefer(ctx context.Context, o Object, owner types.UID) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return c.unrefer(ctx, o, owner) })
}

func (c Client) unrefer(ctx context.Context, o Object, owner types.UID) error {
	live, err := c.Get(ctx, o)
	if err != nil || live == nil {
		return err
	}
	if !Refers(live, owner) {
		return nil
	}
	left := []metav1.OwnerReference{}
	for _, reference := range live.GetOwnerReferences() {
		if reference.UID != owner {
			left = append(left, reference)
		}
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
