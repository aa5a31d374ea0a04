package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestHooks_Run(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKept)
	with := func(message string) harness.CR {
		return harness.MakeCR(kind, "web").Set("message", message).
			Set("hooks.pre-install", map[string]any{}).
			Set("hooks.post-upgrade", map[string]any{}).
			Set("hooks.pre-delete", map[string]any{})
	}
	web := with("one").Obj()
	env.Create(web)
	env.WaitRevision(web, 1)
	expectHook(t, env, "web-pre-install", "one")
	expectNoHook(t, env, "web-post-upgrade")

	env.SetSpec(with("two").Obj())
	env.WaitRevision(web, 2)
	first := expectHook(t, env, "web-post-upgrade", "two")
	expectHook(t, env, "web-pre-install", "one")

	// before-hook-creation: the Job of the last upgrade is replaced.
	env.SetSpec(with("three").Obj())
	env.WaitRevision(web, 3)
	if second := expectHook(t, env, "web-post-upgrade", "three"); second == first {
		t.Error("the hook's Job is still that of the previous upgrade")
	}
	expectNoHook(t, env, "web-pre-delete")

	env.Delete(web)
	env.WaitGone(web)
	expectHook(t, env, "web-pre-delete", "three")
	env.WaitGone(harness.ConfigMap("web"))
}

func TestHooks_FailureIsReportedAndRetried(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	late, soon := env.Use(hooksWithin1h), env.Use(hooksWithin10s)
	for _, hook := range []struct {
		name     string
		kind     harness.Kind
		spec     map[string]any
		upgrade  bool
		reason   string
		wantText string
	}{
		{"install-that-fails", late, map[string]any{"pre-install": map[string]any{"fail": true}}, false, "InstallFailed", "BackoffLimitExceeded"},
		{"install-that-hangs", soon, map[string]any{"pre-install": map[string]any{"node": newNodeLabel(env)}}, false, "InstallFailed", "install-that-hangs-pre-install did not end within 10s"},
		{"upgrade-that-fails", late, map[string]any{"post-upgrade": map[string]any{"fail": true}}, true, "UpgradeFailed", "BackoffLimitExceeded"},
	} {
		t.Run(hook.name, func(t *testing.T) {
			t.Parallel()
			env := env.For(t)
			cr := harness.MakeCR(hook.kind, hook.name).Set("message", "two").Set("hooks", hook.spec).Obj()
			if hook.upgrade {
				env.Create(harness.MakeCR(hook.kind, hook.name).Obj())
				env.WaitReady(cr)
				env.SetSpec(cr)
			} else {
				env.Create(cr)
			}
			status := env.WaitCondition(cr, "Ready", metav1.ConditionFalse, hook.reason)
			if message := harness.Condition(status, "Ready").Message; !strings.Contains(message, hook.wantText) {
				t.Errorf("the message of Ready is %q, want %q", message, hook.wantText)
			}
			if c := harness.Condition(status, "Reconciling"); c == nil {
				t.Error("condition Reconciling does not report a retry")
			}
			if event := env.WaitEvent(cr, hook.reason); event.Type != "Warning" || !strings.Contains(event.Note, hook.wantText) {
				t.Errorf("event is %+v, want a warning that contains %q", event, hook.wantText)
			}

			env.SetSpec(harness.MakeCR(hook.kind, hook.name).Set("message", "mended").Obj())
			env.WaitReady(cr)
			expectData(t, env, hook.name, "message", "mended")
		})
	}
}

// A failing delete hook blocks the deletion, and is retried until it succeeds.
func TestDeleteHook_FailureBlocksDeletion(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksWithin10s)
	node := newNodeLabel(env)
	web := harness.MakeCR(kind, "web").Set("hooks.pre-delete.node", node).Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Delete(web)
	status := env.WaitCondition(web, "Ready", metav1.ConditionFalse, "UninstallFailed")
	if message := harness.Condition(status, "Ready").Message; !strings.Contains(message, "web-pre-delete did not end within 10s") {
		t.Errorf("the message of Ready is %q", message)
	}
	env.Get(harness.ConfigMap("web"))
	labelNode(env, node)
	env.WaitGone(web, harness.ConfigMap("web"))
	env.ExpectRevisions("web", "")
}

// expectHook waits until a hook's Job is complete, checks its revision by its
// message, and returns its UID.
func expectHook(t *testing.T, env *harness.Env, job, message string) (uid any) {
	t.Helper()
	env.Wait("hook "+job+" to be complete", func(ctx context.Context) error {
		live, err := env.Typed.BatchV1().Jobs(env.Namespace).Get(ctx, job, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if live.Status.Succeeded != 1 {
			return errors.New("it is not complete")
		}
		if got := live.Spec.Template.Annotations["message"]; got != message {
			t.Errorf("hook %s has message %q, want %q", job, got, message)
		}
		uid = live.UID
		return nil
	})
	return uid
}

func expectNoHook(t *testing.T, env *harness.Env, job string) {
	t.Helper()
	env.WaitGone(harness.Job(job))
}
