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
	kind, operator := serve(env, "Hooks", "hooks", harness.Entry{"timeout": "2s"})
	waits, goes := oneRevision(env, kind, "waits"), oneRevision(env, kind, "goes")
	waits.annotate("uninstall-wait", "true")
	for _, web := range []ownedRelease{waits, goes} {
		env.Patch(harness.ConfigMap(web.name), holdingFinalizer)
		t.Cleanup(func() { removeFinalizers(env, web.name) })
		env.Delete(web.cr)
	}
	env.WaitGone(goes.cr)
	// Longer than the timeout, and in another process.
	stays := func() {
		env.WaitCondition(waits.cr, "Ready", metav1.ConditionFalse, "WaitingForObjects")
		status := env.Status(waits.cr)
		if message := condition(t, status, "Ready").Message; !strings.Contains(message, "ConfigMap "+env.Namespace+"/waits") {
			t.Errorf("the message of Ready is %q", message)
		}
	}
	stays()
	env.Consistently("the custom resource exists", 5*time.Second, func(ctx context.Context) error {
		_, err := env.At(waits.cr).Get(ctx, "waits", metav1.GetOptions{})
		return err
	})
	operator.Kill()
	operator.Start()
	fenceOf(env, kind)
	stays()
	removeFinalizers(env, "waits")
	env.WaitGone(waits.cr, harness.ConfigMap("waits"))
}

// removeFinalizers removes the finalizers of a ConfigMap.
func removeFinalizers(env *harness.Env, name string) {
	patch := []byte(`{"metadata": {"finalizers": null}}`)
	_, err := env.Typed.CoreV1().ConfigMaps(env.Namespace).Patch(context.Background(), name, "application/merge-patch+json", patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		env.T().Error(err)
	}
}

// No record lists the objects of the release, and the new process never observed it. With delete hooks, objects have no ownerReference, so the
// garbage collector does not delete them.
func TestDelete_WithoutRecordsFindsObjectsByLabel(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serve(env, "Hooks", "hooks")
	web, kept := oneRevision(env, kind, "web"), oneRevision(env, kind, "kept")
	kept.annotate("deletion-policy", "orphan")
	operator.Kill()
	env.Kubectl("delete", "secret", "--selector=owner=helm")
	env.Delete(web.cr, kept.cr)
	operator.Start()
	env.WaitGone(web.cr, harness.ConfigMap("web"), kept.cr)
	expectData(t, env, "kept", "message", "one")
}
