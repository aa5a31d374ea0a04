package apply

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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
	return OwnerName(o.GVK.GroupKind(), o.Namespace, o.Name)
}

// OwnerName is the form of a custom resource's name in annotations.
func OwnerName(gk schema.GroupKind, namespace, name string) string {
	return fmt.Sprintf("%s/%s/%s", gk.String(), namespace, name)
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

// Belongs returns an error if a live object carries the label of another owner. The
// error is ErrForeign and names the other owner. That there is no error does not
// mean that the object is owned, see Owns.
func Belongs(live metav1.Object, owner Owner) error {
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
	return ownEntry(live.GetManagedFields()) != nil && Belongs(live, owner) == nil &&
		(labels[api.LabelOwnerUID] == string(owner.UID) && owner.UID != "" || owner.named(live))
}
