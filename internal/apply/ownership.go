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

// Owner is the custom resource that objects are applied for.
type Owner struct {
	GVK       schema.GroupVersionKind
	Namespace string
	Name      string
	UID       types.UID
	// Operator is the name of the operator that acts (flag --operator-name).
	Operator string
}

// String names the owner for people: "PodSet.app.example.com/default/web".
func (o Owner) String() string {
	return fmt.Sprintf("%s/%s/%s", o.GVK.GroupKind(), o.Namespace, o.Name)
}

// reference returns the ownerReference to the custom resource. It never blocks
// the owner's deletion, which would need the right to update finalizers.
func (o Owner) reference() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: o.GVK.GroupVersion().String(),
		Kind:       o.GVK.Kind,
		Name:       o.Name,
		UID:        o.UID,
	}
}

// named reports whether an object names the owner as one that was restored from a
// backup does: by its name and the operator, while the UID in its label is of the
// custom resource before the restore.
func (o Owner) named(live metav1.Object) bool {
	return live.GetAnnotations()[api.AnnotationOwner] == o.String() && live.GetLabels()[api.LabelOperator] == o.Operator
}

// CheckOwnership returns an error if a live object carries the label of another owner. The
// error is ErrForeign and names the other owner. That there is no error does not
// mean that the object is owned, see Owns.
func CheckOwnership(live metav1.Object, owner Owner) error {
	labels := live.GetLabels()
	uids := []string{labels[api.LabelOwnerUID], labels[api.LabelHookOwnerUID]}
	if !slices.ContainsFunc(uids, func(uid string) bool { return uid != "" && uid != string(owner.UID) }) || owner.named(live) {
		return nil
	}
	return fmt.Errorf("%w: it belongs to %s", ErrForeign, live.GetAnnotations()[api.AnnotationOwner])
}

// Owns reports whether a live object shows that it was applied for the owner: it
// has an Apply entry of our field manager, and names the owner by the UID in its
// label, or as an object does that was restored from a backup.
func Owns(live metav1.Object, owner Owner) bool {
	labels := live.GetLabels()
	return ownEntry(live.GetManagedFields()) != nil && CheckOwnership(live, owner) == nil &&
		(labels[api.LabelOwnerUID] == string(owner.UID) && owner.UID != "" || owner.named(live))
}

// HasOwnerReference reports whether an object has an ownerReference to an owner.
func HasOwnerReference(object metav1.Object, owner types.UID) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
}

// RemoveOwnerReference removes the ownerReference to a custom resource from an object, so that
// the garbage collector leaves the object when the custom resource goes. An object
// that is gone, or has no such reference, is not changed.
func (c Client) RemoveOwnerReference(ctx context.Context, o Object, owner types.UID) error {
	_, err := c.patchOwnership(ctx, o, func(live *metav1.PartialObjectMetadata) map[string]any {
		return withoutOwnerReference(live, owner)
	})
	return err
}

// Release ends the ownership of an object that stays while its release goes on
// without it, or goes: it removes the ownerReference to the custom resource, and
// what Apply has added to mark the object as the owner's. What Helm marks its
// objects by stays, so that the same release may have the object again, and no
// other release without being asked to take it over. So do the fields that were
// applied. Release returns the object as it is then, nil where there is none. An
// object of another owner is not changed.
func (c Client) Release(ctx context.Context, o Object, owner types.UID) (*metav1.PartialObjectMetadata, error) {
	return c.patchOwnership(ctx, o, func(live *metav1.PartialObjectMetadata) map[string]any {
		patch := withoutOwnerReference(live, owner)
		if live.GetLabels()[api.LabelOwnerUID] != string(owner) {
			return patch
		}
		patch["labels"] = map[string]any{api.LabelOwnerUID: nil, api.LabelOperator: nil}
		patch["annotations"] = map[string]any{api.AnnotationOwner: nil, api.AnnotationApplied: nil}
		return patch
	})
}

// withoutOwnerReference returns the change of the metadata that removes the reference to an
// owner. The change is empty if there is no such reference.
func withoutOwnerReference(live metav1.Object, owner types.UID) map[string]any {
	if !HasOwnerReference(live, owner) {
		return map[string]any{}
	}
	left := slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return r.UID == owner })
	return map[string]any{"ownerReferences": left}
}

// patchOwnership reads an object, changes its metadata, and returns the result. It changes
// nothing if the change is empty.
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
		// A list is written whole, and another client may have changed it.
		metadata["resourceVersion"] = live.GetResourceVersion()
		patch, err := json.Marshal(map[string]any{"metadata": metadata})
		if err != nil {
			return err
		}
		result, err = c.metadata(o).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("end the ownership of %s: %w", Describe(o), err)
	}
	return result, nil
}
