package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/chartwright/chartwright/internal/api"
)

// Owner is the custom resource that owns objects.
type Owner struct {
	GVK       schema.GroupVersionKind
	Namespace string
	Name      string
	UID       types.UID
	// Operator is the name of the operator (flag --operator-name).
	Operator string
}

// String returns the owner as text, for example "PodSet.app.example.com/default/web".
func (o Owner) String() string {
	return fmt.Sprintf("%s/%s/%s", o.GVK.GroupKind(), o.Namespace, o.Name)
}

// Reference returns the ownerReference to the custom resource. It does not set
// blockOwnerDeletion, which requires the permission to update finalizers.
func (o Owner) Reference() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: o.GVK.GroupVersion().String(),
		Kind:       o.GVK.Kind,
		Name:       o.Name,
		UID:        o.UID,
	}
}

// named reports whether an object names the owner by its name and operator. After a restore
// from a backup, the UID in the label is that of the custom resource before the restore.
func (o Owner) named(live metav1.Object) bool {
	return live.GetAnnotations()[api.AnnotationOwner] == o.String() && live.GetLabels()[api.LabelOperator] == o.Operator
}

// CheckOwnership returns ErrForeign, with the name of the other owner, if a live object
// carries the label of another owner. No error does not mean that the object is owned,
// see Owns.
func CheckOwnership(live metav1.Object, owner Owner) error {
	labels := live.GetLabels()
	uids := []string{labels[api.LabelOwnerUID], labels[api.LabelHookOwnerUID]}
	if !slices.ContainsFunc(uids, func(uid string) bool { return uid != "" && uid != string(owner.UID) }) || owner.named(live) {
		return nil
	}
	return fmt.Errorf("%w: owned by %s", ErrForeign, live.GetAnnotations()[api.AnnotationOwner])
}

// Owns reports whether a live object was applied for the owner: it has an Apply entry of the
// operator's field manager, and names the owner by the UID in its label or, after a
// restore from a backup, by name.
func Owns(live metav1.Object, owner Owner) bool {
	labels := live.GetLabels()
	return ownEntry(live.GetManagedFields()) != nil && CheckOwnership(live, owner) == nil &&
		(labels[api.LabelOwnerUID] == string(owner.UID) && owner.UID != "" || owner.named(live))
}

// HasOwnerReference reports whether an object has an ownerReference to the given UID.
func HasOwnerReference(object metav1.Object, owner types.UID) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
}

// RemoveOwnerReference removes the ownerReference to a custom resource from an object, so that
// the garbage collector keeps the object when the custom resource is deleted. It does
// nothing if the object does not exist or has no such reference.
func (c Client) RemoveOwnerReference(ctx context.Context, o Object, owner types.UID) error {
	_, err := c.patchOwnership(ctx, o, func(live *metav1.PartialObjectMetadata) map[string]any {
		return withoutOwnerReference(live, owner)
	})
	return err
}

// Release ends the ownership of an object that continues to exist without its release. It
// removes the ownerReference to the custom resource, and the labels and annotations that mark
// the object as managed. It does not remove Helm's labels and annotations, so that the same
// release can adopt the object again and other releases cannot without a request to do so.
// Applied fields do not change. Release returns the new object, or nil if it does not exist. It
// changes no object of another owner and, unless the UID is empty, none with another UID.
//
// If left is true, the object stays although its owner is deleted: Release marks it, also if
// it was restored from a backup or belongs to a hook. An object of a hook keeps the marks of
// its owner.
func (c Client) Release(ctx context.Context, o Object, owner Owner, uid types.UID, left bool) (*metav1.PartialObjectMetadata, error) {
	return c.patchOwnership(ctx, o, func(live *metav1.PartialObjectMetadata) map[string]any {
		if uid != "" && live.UID != uid {
			return nil
		}
		patch := withoutOwnerReference(live, owner.UID)
		labels, annotations := map[string]any{}, map[string]any{}
		if label := live.Labels[api.LabelOwnerUID]; label == string(owner.UID) || left && label != "" && owner.named(live) {
			labels[api.LabelOwnerUID], labels[api.LabelOperator] = nil, nil
			annotations[api.AnnotationOwner], annotations[api.AnnotationApplied] = nil, nil
		}
		if left && CheckOwnership(live, owner) == nil {
			labels[api.LabelLeft], annotations[api.AnnotationLeftBy] = "true", owner.String()
		}
		if len(labels) > 0 {
			patch["labels"], patch["annotations"] = labels, annotations
		}
		return patch
	})
}

// withoutOwnerReference returns the metadata patch that removes the reference to an owner.
// It is empty if there is no such reference.
func withoutOwnerReference(live metav1.Object, owner types.UID) map[string]any {
	if !HasOwnerReference(live, owner) {
		return map[string]any{}
	}
	left := slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return r.UID == owner })
	return map[string]any{"ownerReferences": left}
}

// patchOwnership reads an object and patches its metadata, unless the patch is empty. It
// returns the result.
func (c Client) patchOwnership(ctx context.Context, o Object, change func(*metav1.PartialObjectMetadata) map[string]any) (result *metav1.PartialObjectMetadata, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live, err := c.Get(ctx, o)
		result = live
		if err != nil || live == nil {
			return err
		}
		metadata := change(live)
		if len(metadata) == 0 {
			return nil
		}
		if planned, err := c.planned(ctx, Leave, o, nil); planned {
			return err
		}
		// The patch replaces whole lists, which another client may have changed.
		metadata["resourceVersion"] = live.GetResourceVersion()
		patch, err := json.Marshal(map[string]any{"metadata": metadata})
		if err != nil {
			return err
		}
		result, err = served(c, o, func(o Object) (*metav1.PartialObjectMetadata, error) {
			return c.metadata(o).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("release ownership of %s: %w", Describe(o), err)
	}
	return result, nil
}
