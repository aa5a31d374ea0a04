package operator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/diagnose"
)

// newDiagnosis returns how to find out why an object is not ready.
func newDiagnosis(mgr manager.Manager) (func(context.Context, apply.Key, types.UID) (string, error), error) {
	client, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up the diagnosis of objects: %w", err)
	}
	return func(ctx context.Context, object apply.Key, uid types.UID) (string, error) {
		cause, err := diagnose.Why(ctx, client, object, uid)
		return cause.String(), err
	}, nil
}
