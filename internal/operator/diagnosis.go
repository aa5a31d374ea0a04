package operator

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/diagnose"
)

// newDiagnosis returns how to find out why an object is not ready.
func newDiagnosis(clientset kubernetes.Interface) func(context.Context, apply.Key, types.UID) (string, error) {
	return func(ctx context.Context, object apply.Key, uid types.UID) (string, error) {
		cause, err := diagnose.Why(ctx, clientset, object, uid)
		return cause.String(), err
	}
}
