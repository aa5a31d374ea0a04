package valuesfrom

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/watches"
)

// errSigningKey marks a Secret that values never come from.
var errSigningKey = errors.New("the Secret holds the signing key of an operator")

// FromServer reads objects from the API server, in the operator's own name. It
// refuses Secrets that hold the signing key of an operator; signingKey is that of
// this operator.
func FromServer(client typedcorev1.CoreV1Interface, signingKey types.NamespacedName) Reader {
	return func(ctx context.Context, ref Ref) (Data, error) {
		if ref.Kind == watches.SourceSecret {
			if signingKey == (types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}) {
				return Data{}, errSigningKey
			}
			secret, err := client.Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
			if err != nil {
				return Data{}, err
			}
			if _, marked := secret.Labels[api.LabelSigningKey]; marked {
				return Data{}, errSigningKey
			}
			return Data{ResourceVersion: secret.ResourceVersion, Keys: secret.Data}, nil
		}
		configMap, err := client.ConfigMaps(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return Data{}, err
		}
		keys := make(map[string][]byte, len(configMap.Data))
		for key, text := range configMap.Data {
			keys[key] = []byte(text)
		}
		return Data{ResourceVersion: configMap.ResourceVersion, Keys: keys}, nil
	}
}
