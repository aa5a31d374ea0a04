package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
)

// outputsClient reads what outputs are computed from, and writes the Secrets with sensitive
// outputs. It implements reconcile.Outputs.
type outputsClient struct {
	mapper  meta.RESTMapper
	read    valuesfrom.Reader
	secrets typedcorev1.SecretsGetter
}

// Read implements reconcile.Outputs.
func (c outputsClient) Read(ctx context.Context, object apply.Key) (*unstructured.Unstructured, error) {
	mapping, err := c.mapper.RESTMapping(object.GroupKind())
	if err != nil {
		return nil, err
	}
	return c.read(ctx, valuesfrom.Ref{Kind: mapping.GroupVersionKind, Namespace: object.Namespace, Name: object.Name})
}

// outputsManager is the field manager of Secrets with outputs. It is not that of the
// objects of a release, so that an uninstall does not delete them before the custom
// resource is gone: the garbage collector does so.
const outputsManager = api.FieldManager + "-outputs"

// Publish implements reconcile.Outputs.
func (c outputsClient) Publish(ctx context.Context, owner apply.Owner, secret *corev1.Secret, keep []string) (*corev1.Secret, error) {
	secret.Labels = map[string]string{
		api.LabelManagedBy: api.FieldManager, api.LabelOwnerUID: string(owner.UID), api.LabelOperator: owner.Operator,
	}
	secret.Annotations = map[string]string{api.AnnotationOwner: owner.String()}
	secret.OwnerReferences = []metav1.OwnerReference{owner.Reference()}
	secrets := c.secrets.Secrets(secret.Namespace)
	live, err := secrets.Get(ctx, secret.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: outputsManager})
	case err != nil:
		return nil, fmt.Errorf("read Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	case live.Annotations[api.AnnotationOwner] != owner.String() || live.Labels[api.LabelOperator] != owner.Operator:
		return nil, fmt.Errorf("%w: Secret %s/%s already exists, and is not for the outputs of this custom resource: rename or delete it", apply.ErrForeign, secret.Namespace, secret.Name)
	}
	wanted := live.DeepCopy()
	maps.DeleteFunc(wanted.Data, func(key string, _ []byte) bool { return !slices.Contains(keep, key) })
	if wanted.Data == nil {
		wanted.Data = map[string][]byte{}
	}
	maps.Copy(wanted.Data, secret.Data)
	maps.Copy(wanted.Labels, secret.Labels)
	wanted.OwnerReferences = secret.OwnerReferences
	if apiequality.Semantic.DeepEqual(wanted, live) {
		return live, nil
	}
	return secrets.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: outputsManager})
}
