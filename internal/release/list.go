package release

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/metadata"

	"github.com/chartwright/chartwright/internal/apply"
)

// List calls visit with the records of the named releases in a namespace, or of all releases
// without a name. It reads only the metadata of the Secrets.
func List(ctx context.Context, client metadata.Interface, namespace string, names []string, visit func(Record)) error {
	selector := labels.SelectorFromSet(labels.Set{LabelOwner: OwnerHelm})
	if len(names) > 0 {
		named, err := labels.NewRequirement(LabelName, selection.In, names)
		if err != nil {
			return err
		}
		selector = selector.Add(*named)
	}
	options := metav1.ListOptions{LabelSelector: selector.String(), FieldSelector: "type=" + SecretType}
	secrets := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	return apply.EachListed(ctx, secrets, options, func(secret *metav1.PartialObjectMetadata) {
		if record, ok := FromMeta(secret); ok {
			visit(record)
		}
	})
}
