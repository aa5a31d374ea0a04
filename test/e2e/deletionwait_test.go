package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

const holdingFinalizer = `[{"op": "add", "path": "/metadata/finalizers", "value": ["test.chartwright.dev/hold"]}]`

func TestDelete_WaitsForObjectsOnRequest(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksWithin2s)
	waits, goes := oneRevision(env, kind, "waits"), oneRevision(env, kind, "goes")
	waits.annotate("uninstall-wait", "true")
	for _, web := range []ownedRelease{waits, goes} {
		env.Patch(harness.ConfigMap(web.name), holdingFinalizer)
		t.Cleanup(func() { removeFinalizers(env, web.name) })
		env.Delete(web.cr)
	}
	env.WaitGone(goes.cr)
	waits.waitsForObjects()
	// Longer than the timeout.
	env.Consistently("the custom resource exists", 5*time.Second, func(ctx context.Context) error {
		_, err := env.At(waits.cr).Get(ctx, "waits", metav1.GetOptions{})
		return err
	})
	waits.waitsForObjects()
	removeFinalizers(env, "waits")
	env.WaitGone(waits.cr, harness.ConfigMap("waits"))
}

// waitsForObjects waits until a deletion waits for the ConfigMap.
func (r ownedRelease) waitsForObjects() {
	r.t.Helper()
	status := r.env.WaitCondition(r.cr, "Ready", metav1.ConditionFalse, "WaitingForObjects")
	if message := condition(r.t, status, "Ready").Message; !strings.Contains(message, "ConfigMap "+r.env.Namespace+"/"+r.name) {
		r.t.Errorf("the message of Ready is %q", message)
	}
}

// removeFinalizers removes the finalizers of a ConfigMap.
func removeFinalizers(env *harness.Env, name string) {
	patch := []byte(`{"metadata": {"finalizers": null}}`)
	_, err := env.Typed.CoreV1().ConfigMaps(env.Namespace).Patch(context.Background(), name, "application/merge-patch+json", patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		env.T().Error(err)
	}
}
