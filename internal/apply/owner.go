package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
