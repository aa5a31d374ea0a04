package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// outputsClient reads what outputs are computed from, and writes the Secrets with sensitive
// outputs. It implements reconcile.Outputs.
type outputsClient struct {
	mapper meta.RESTMapper
	core   typedcorev1.CoreV1Interface
	// signingKey is the Secret with the operator's signing key, which outputs must not read.
	signingKey types.NamespacedName
}

// Read implements reconcile.Outputs. It limits the response before it decodes it: decoded, an
// object with many short fields takes many times the memory of its text.
func (c outputsClient) Read(ctx context.Context, object apply.Key, left *reconcile.ReadLimit) (*unstructured.Unstructured, error) {
	isSecret := object.GroupKind() == valuesfrom.SecretKind.GroupKind()
	if isSecret && object.Namespace == c.signingKey.Namespace && object.Name == c.signingKey.Name {
		return nil, errSigningKey
	}
	mapping, err := c.mapper.RESTMapping(object.GroupKind())
	if err != nil {
		return nil, err
	}
	version := mapping.GroupVersionKind.GroupVersion()
	prefix := []string{"/apis", version.Group, version.Version}
	if version.Group == "" {
		prefix = []string{"/api", version.Version}
	}
	body, err := c.core.RESTClient().Get().AbsPath(prefix...).
		NamespaceIfScoped(object.Namespace, mapping.Scope.Name() == meta.RESTScopeNameNamespace).
		Resource(mapping.Resource.Resource).Name(object.Name).
		SetHeader("Accept", runtime.ContentTypeJSON).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, int64(left.Bytes)+1))
	if err != nil {
		return nil, err
	}
	size := len(data)
	if size > left.Bytes {
		return nil, left.Take(size, boundedyaml.JSONValues(data))
	}
	if data, err = withoutManagedFields(data); err != nil {
		return nil, err
	}
	if err := left.Take(size, boundedyaml.JSONValues(data)); err != nil {
		return nil, err
	}
	read := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &read.Object); err != nil {
		return nil, err
	}
	if _, marked := read.GetLabels()[api.LabelSigningKey]; marked && isSecret {
		return nil, errSigningKey
	}
	return read, nil
}

// errSigningKey is returned instead of the signing key of an operator.
var errSigningKey = errors.New("the Secret holds the signing key of an operator")

// withoutManagedFields removes metadata.managedFields from an object as JSON.
func withoutManagedFields(data []byte) ([]byte, error) {
	var fields, metadata map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(fields["metadata"], &metadata); err != nil {
		return nil, err
	}
	delete(metadata, "managedFields")
	var err error
	if fields["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// outputsManager is the field manager of Secrets with outputs. It is not that of the
// objects of a release, so that an uninstall does not delete them before the custom
// resource is gone: the garbage collector does so.
const outputsManager = api.FieldManager + "-outputs"

// isPublished reports whether a Secret is that with the outputs of a custom resource.
func isPublished(secret *corev1.Secret, owner apply.Owner) bool {
	return secret.Annotations[api.AnnotationOwner] == owner.String() && secret.Labels[api.LabelOperator] == owner.Operator
}

// Withdraw implements reconcile.Outputs.
func (c outputsClient) Withdraw(ctx context.Context, owner apply.Owner, secret types.NamespacedName) error {
	secrets := c.core.Secrets(secret.Namespace)
	live, err := secrets.Get(ctx, secret.Name, metav1.GetOptions{})
	if err == nil && !isPublished(live, owner) {
		return nil
	}
	if err == nil {
		err = secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &live.UID}})
	}
	switch apply.AnswerOf(err) {
	case apply.Gone, apply.Conflict:
		// Another client has deleted the Secret, and maybe created another one.
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete Secret %s, because no output is sensitive any longer: %w", secret, err)
	}
	return nil
}

// Publish implements reconcile.Outputs.
func (c outputsClient) Publish(ctx context.Context, owner apply.Owner, secret *corev1.Secret, keep []string) (*corev1.Secret, error) {
	secret.Labels = map[string]string{
		api.LabelManagedBy: api.FieldManager, api.LabelOwnerUID: string(owner.UID), api.LabelOperator: owner.Operator,
	}
	secret.Annotations = map[string]string{api.AnnotationOwner: owner.String()}
	secret.OwnerReferences = []metav1.OwnerReference{owner.Reference()}
	secrets := c.core.Secrets(secret.Namespace)
	live, err := secrets.Get(ctx, secret.Name, metav1.GetOptions{})
	switch {
	case apply.AnswerOf(err) == apply.Gone:
		return secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: outputsManager})
	case err != nil:
		return nil, fmt.Errorf("read Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	case !isPublished(live, owner):
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
