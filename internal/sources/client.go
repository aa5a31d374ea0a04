package sources

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/chartwright/chartwright/internal/watches"
)

// FromServer reads objects from the API server, in the operator's own name.
func FromServer(client typedcorev1.CoreV1Interface) Reader {
	return func(ctx context.Context, ref Ref) (Data, error) {
		if ref.Kind == watches.SourceSecret {
			secret, err := client.Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
			if err != nil {
				return Data{}, err
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
