package operator

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory/diagnose"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// newDiagnosis returns how to find out why an object is not ready.
func newDiagnosis(clientset kubernetes.Interface) func(context.Context, apply.Key, types.UID) (string, error) {
	return func(ctx context.Context, object apply.Key, uid types.UID) (string, error) {
		cause, err := diagnose.Why(ctx, clientset, object, uid)
		return cause.String(), err
	}
}

// newHookDiagnosis returns how to find out how far a hook is.
func newHookDiagnosis(clientset kubernetes.Interface) func(context.Context, apply.Key, types.UID) (reconcile.HookReport, error) {
	return func(ctx context.Context, hook apply.Key, uid types.UID) (reconcile.HookReport, error) {
		found, err := diagnose.CheckHook(ctx, clientset, hook, uid, time.Now())
		return reconcile.HookReport{State: found.State, Why: found.Why()}, err
	}
}
