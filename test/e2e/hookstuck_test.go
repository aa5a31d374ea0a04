package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// noImage is the image of a hook that cannot be pulled.
const noImage = "registry.example.com/migrate:none"

// unpullable is a hook whose image cannot be pulled.
func unpullable(phase string) map[string]any {
	return map[string]any{phase: map[string]any{"image": noImage}}
}

// waitReadyMessage waits until the message of Ready contains all texts.
func waitReadyMessage(env *harness.Env, cr *unstructured.Unstructured, texts ...string) {
	env.T().Helper()
	env.WaitStatus(cr, fmt.Sprintf("explained by %q", texts), func(status api.Status) error {
		ready := harness.Condition(status, "Ready")
		for _, text := range texts {
			if ready == nil || !strings.Contains(ready.Message, text) {
				return fmt.Errorf("Ready does not contain %q", text)
			}
		}
		return nil
	})
}

// setHookRunning sets the status of a hook's pod, which has no node, to that of
// a pod with a running container.
func setHookRunning(env *harness.Env, job string) {
	env.T().Helper()
	waitRunningHook(env, job)
	env.Wait("the hook's pod to have a status", func(ctx context.Context) error {
		// The scheduler changes the pod, too.
		pods, err := env.Typed.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("%d pods of %s", len(pods.Items), job)
		}
		pod := pods.Items[0]
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "hook", Image: "docker.io/library/busybox:1.37", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}}
		_, err = env.Typed.CoreV1().Pods(env.Namespace).UpdateStatus(ctx, &pod, metav1.UpdateOptions{})
		return err
	})
}

// jobUID returns the UID of a hook's Job.
func jobUID(env *harness.Env, job string) string {
	env.T().Helper()
	return string(env.Get(harness.Job(job)).GetUID())
}

func TestStuckHook_ReadyNamesImageAndEditInterrupts(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksWithin1h)
	web := ownedRelease{t, env, kind, harness.MakeCR(kind, "web").Set("message", "one").Set("hooks", unpullable("pre-install")).Obj(), "web"}
	env.Create(web.cr)
	waitReadyMessage(env, web.cr, "Release web is being installed", "Hook Job", "web-pre-install cannot start", "ImagePullBackOff", noImage)
	if event := env.WaitEvent(web.cr, "HookStuck"); event.Type != "Warning" || !strings.Contains(event.Note, noImage) {
		t.Errorf("the event is %+v", event)
	}
	web.edit("two", nil)
	web.follows(2, "two")
	env.ExpectRevisions("web", "1 failed, 2 deployed")
	env.WaitGone(harness.Job("web-pre-install"))
	if event := env.WaitEvent(web.cr, "Interrupted"); !strings.Contains(event.Note, "the spec was edited") || !strings.Contains(event.Note, noImage) {
		t.Errorf("the event is %+v", event)
	}
	if n := env.CountEvents(web.cr, "HookStuck"); n != 1 {
		t.Errorf("%d events report one hook", n)
	}
}

func TestStuckHook_EditBeforeHookIsStuckInterrupts(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksWithin1h)
	web := oneRevision(env, kind, "web")
	web.edit("two", map[string]any{"pre-upgrade": map[string]any{"node": newNodeLabel(env)}})
	waitRunningHook(env, "web-pre-upgrade")
	web.edit("three", nil)
	web.follows(3, "three")
	env.ExpectRevisions("web", "1 superseded, 2 failed, 3 deployed")
}

func TestStuckHook_DeletionInterrupts(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksWithin1h)
	web := harness.MakeCR(kind, "web").Set("hooks", unpullable("post-install")).Obj()
	env.Create(web)
	waitReadyMessage(env, web, noImage)
	env.Delete(web)
	env.WaitGone(web, harness.ConfigMap("web"))
	env.ExpectRevisions("web", "")
}

func TestStuckHook_RollbackRequestInterrupts(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksWithin1h)
	web := oneRevision(env, kind, "web")
	web.edit("two", unpullable("pre-upgrade"))
	waitReadyMessage(env, web.cr, "Release web is being upgraded", noImage)
	web.annotate("rollback-to", "previous")
	web.held(3, 1, "one")
	env.ExpectRevisions("web", "1 superseded, 2 failed, 3 deployed")
}

func TestStuckHook_DisablingDeleteHooksInterrupts(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksWithin1h)
	web := harness.MakeCR(kind, "web").Set("hooks", unpullable("pre-delete")).Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Delete(web)
	waitReadyMessage(env, web, "Release web is being uninstalled", noImage)
	env.Annotate(web, "uninstall-disable-hooks", "true")
	env.WaitGone(web, harness.ConfigMap("web"))
}

func TestStuckHook_FailureNamesCause(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksWithin1h)
	pulls, fails := harness.MakeCR(kind, "pulls").Set("hooks", unpullable("pre-install")).Obj(),
		harness.MakeCR(kind, "fails").Set("hooks.post-install.fail", true).Obj()
	env.Create(pulls, fails)
	// The Job's own deadline deletes its pods, so the cause is that of an earlier status.
	waitReadyMessage(env, pulls, noImage)
	env.Wait("the Job to have a deadline", func(ctx context.Context) error {
		_, err := env.Typed.BatchV1().Jobs(env.Namespace).Patch(ctx, "pulls-pre-install", "application/merge-patch+json", []byte(`{"spec":{"activeDeadlineSeconds":1}}`), metav1.PatchOptions{})
		return err
	})
	env.WaitCondition(pulls, "Ready", metav1.ConditionFalse, "InstallFailed")
	waitReadyMessage(env, pulls, "pulls-pre-install", "DeadlineExceeded", "ImagePullBackOff", noImage)
	env.WaitCondition(fails, "Ready", metav1.ConditionFalse, "InstallFailed")
	waitReadyMessage(env, fails, "fails-post-install", "BackoffLimitExceeded", "limit; Error: The annotation test.chartwright.dev/outcome asked for it")
}

// A running container may be a migration. Nothing interrupts it, not even a
// deletion, except an abort by a user.
func TestRunningHook_OnlyAbortInterrupts(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	web := oneRevision(env, kind, "web")
	web.edit("two", map[string]any{"pre-upgrade": map[string]any{"node": newNodeLabel(env)}})
	setHookRunning(env, "web-pre-upgrade")
	uid := jobUID(env, "web-pre-upgrade")
	web.annotate("rollback-to", "1")
	waitReadyMessage(env, web.cr, "hook Job "+env.Namespace+"/web-pre-upgrade, which is running", "The rollback request waits until the hook ends", `chartwright.dev/abort to "2"`)
	env.Unannotate(web.cr, "rollback-to")
	web.edit("three", map[string]any{"pre-upgrade": map[string]any{"node": newNodeLabel(env)}})
	waitReadyMessage(env, web.cr, "Release web is being upgraded", "The edit of the spec waits until the hook ends")
	// Longer than the interval between two checks.
	env.Consistently("the hook continues", 12*time.Second, func(context.Context) error {
		if now := jobUID(env, "web-pre-upgrade"); now != uid {
			return fmt.Errorf("the Job's UID is %s, want %s", now, uid)
		}
		return nil
	})
	env.ExpectRevisions("web", "1 deployed, 2 pending-upgrade")
	web.annotate("abort", "1")
	web.annotate("abort", "2")
	env.WaitRevisions("web", "1 deployed, 2 failed, 3 pending-upgrade")
	setHookRunning(env, "web-pre-upgrade")
	if event := env.WaitEvent(web.cr, "Aborted"); event.Type != "Normal" || !strings.Contains(event.Note, "web-pre-upgrade") {
		t.Errorf("the event is %+v", event)
	}

	// If no edit waits, an abort prevents retries of the action.
	web.annotate("abort", "3")
	env.WaitRevisions("web", "1 deployed, 2 failed, 3 failed")
	env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "Aborted")
	env.WaitGone(harness.Job("web-pre-upgrade"))
	fenceOf(env, kind)
	env.ExpectRevisions("web", "1 deployed, 2 failed, 3 failed")
	env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "Aborted")
	env.Unannotate(web.cr, "abort")
	setHookRunning(env, "web-pre-upgrade")
	env.ExpectRevisions("web", "1 deployed, 2 failed, 3 pending-upgrade")

	env.Delete(web.cr)
	waitReadyMessage(env, web.cr, "The deletion waits until the hook ends")
	web.annotate("abort", "3")
	env.WaitGone(web.cr, harness.ConfigMap("web"), harness.Job("web-pre-upgrade"))
}

// An autoscaler may write the field at any time.
func TestStuckHook_ScaleFieldWritesDoNotInterrupt(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksScaled)
	web := oneRevision(env, kind, "web")
	web.edit("two", unpullable("pre-upgrade"))
	waitReadyMessage(env, web.cr, noImage)
	uid := jobUID(env, "web-pre-upgrade")
	env.Kubectl("scale", kind.Resource(), "web", "--replicas=4")
	waitReadyMessage(env, web.cr, noImage)
	env.Consistently("the hook continues", 12*time.Second, func(context.Context) error {
		if now := jobUID(env, "web-pre-upgrade"); now != uid {
			return errors.New("the hook was interrupted")
		}
		return nil
	})
	web.edit("three", nil)
	web.follows(3, "three")
}
