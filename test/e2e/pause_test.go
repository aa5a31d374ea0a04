package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestPause(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, _ := serve(env, "Hooks", "hooks")
	for _, test := range []struct {
		name string
		do   func(ownedRelease)
	}{
		{"an edit waits", func(web ownedRelease) {
			web.ask("pause", "true")
			if message := web.paused(metav1.ConditionTrue); !strings.Contains(message, "no changes pending") {
				web.t.Errorf("condition Paused says %q", message)
			}
			web.edit("two", nil)
			if message := web.paused(metav1.ConditionFalse); !strings.Contains(message, "pending step: Upgrade") {
				web.t.Errorf("condition Paused says %q", message)
			}
			expectData(web.t, web.env, web.name, "message", "one")
			web.env.ExpectRevisions(web.name, "1 deployed")
			web.env.Unannotate(web.cr, "pause")
			web.follows(2, "two")
			for _, reason := range []string{"Paused", "Unpaused"} {
				web.env.WaitEvent(web.cr, reason)
				if n := web.env.CountEvents(web.cr, reason); n != 1 {
					web.t.Errorf("%d events %s", n, reason)
				}
			}
		}},
		{"an install waits", func(web ownedRelease) {
			web.name += "-new"
			web.cr = harness.MakeCR(kind, web.name).Set("message", "one").Annotate("pause", "true").Obj()
			web.env.Create(web.cr)
			web.paused(metav1.ConditionFalse)
			web.env.ExpectRevisions(web.name, "")
			web.ask("pause", "false")
			web.follows(1, "one")
		}},
		{"drift stays", func(web ownedRelease) {
			web.ask("pause", "true")
			web.paused(metav1.ConditionTrue)
			web.env.Patch(harness.ConfigMap(web.name), messageChanged)
			web.env.WaitStatus(web.cr, "drifted", func(status api.Status) error {
				paused, drifted := harness.Condition(status, "Paused"), harness.Condition(status, "Drifted")
				if paused == nil || !strings.Contains(paused.Message, "pending step: Repair") || drifted == nil {
					return errors.New("no repair waits")
				}
				return nil
			})
			fenceOf(web.env, kind)
			expectData(web.t, web.env, web.name, "message", "theirs")
			web.env.Unannotate(web.cr, "pause")
			waitData(web.env, web.name, "message", "one")
			web.follows(1, "one")
		}},
		{"a deletion goes on", func(web ownedRelease) {
			web.ask("pause", "true")
			web.paused(metav1.ConditionTrue)
			web.env.Delete(web.cr)
			web.env.WaitGone(web.cr, harness.ConfigMap(web.name))
		}},
		{"a deletion waits if it is included", func(web ownedRelease) {
			web.ask("pause", "including-deletion")
			web.paused(metav1.ConditionTrue)
			web.env.Delete(web.cr)
			if message := web.paused(metav1.ConditionFalse); !strings.Contains(message, "pending step: Uninstall") {
				web.t.Errorf("condition Paused says %q", message)
			}
			fenceOf(web.env, kind)
			expectData(web.t, web.env, web.name, "message", "one")
			web.env.ExpectRevisions(web.name, "1 deployed")
			web.ask("pause", "true")
			web.env.WaitGone(web.cr, harness.ConfigMap(web.name))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.do(oneRevision(env.For(t), kind, test.name))
		})
	}
}

func TestPauseOutlivesTheOperator(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serve(env, "Hooks", "hooks")
	web := oneRevision(env, kind, "web")
	web.ask("pause", "true")
	web.paused(metav1.ConditionTrue)
	// Or it is lost with the process.
	env.WaitEvent(web.cr, "Paused")
	operator.Kill()
	web.edit("two", nil)
	env.Patch(harness.ConfigMap("web"), messageChanged)
	operator.Start()
	web.paused(metav1.ConditionFalse)
	fenceOf(env, kind)
	expectData(t, env, "web", "message", "theirs")
	env.ExpectRevisions("web", "1 deployed")
	if n := env.CountEvents(web.cr, "Paused"); n != 1 {
		t.Errorf("%d events tell of the pause", n)
	}
	env.Unannotate(web.cr, "pause")
	web.follows(2, "two")
}

// What cannot be understood is told once, and stops nothing.
func TestInvalidAnnotations(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, _ := serve(env, "Hooks", "hooks")
	for _, bad := range []struct{ key, value, says string }{
		{"pause", "please", `chartwright.dev/pause is "please": expected "true", "false" or "including-deletion"`},
		{"reconcile-period", "soon", `chartwright.dev/reconcile-period is "soon": expected a duration`},
		{"reconcile-period", "100ms", `chartwright.dev/reconcile-period is "100ms": the operator allows 10s or more, and uses 10s`},
		{"deletion-policy", "keep", `chartwright.dev/deletion-policy is "keep": expected "orphan" or "delete"`},
		{"uninstall-wait", "a while", `chartwright.dev/uninstall-wait is "a while": expected "true" or "false"`},
		{"take-ownership", "all", `chartwright.dev/take-ownership is "all"`},
		{"upgrade-disable-hooks", "some", `chartwright.dev/upgrade-disable-hooks is "some"`},
		{"uninstall-disable-hooks", "some", `chartwright.dev/uninstall-disable-hooks is "some"`},
		{"rollback", "1", `chartwright.dev/rollback is not known; known are abort, deletion-policy, force`},
		{"rollback-to", "yesterday", ""},
	} {
		t.Run(bad.key, func(t *testing.T) {
			t.Parallel()
			web := oneRevision(env.For(t), kind, bad.key+"-"+bad.value)
			web.ask(bad.key, bad.value)
			kind := "InvalidAnnotations"
			if bad.says == "" {
				kind = "RollbackRefused"
			}
			status := web.env.WaitCondition(web.cr, kind, metav1.ConditionTrue, "InvalidValue")
			if message := condition(t, status, kind).Message; !strings.Contains(message, bad.says) {
				t.Errorf("condition %s says %q, expected %q", kind, message, bad.says)
			}
			if event := web.env.WaitEvent(web.cr, kind); event.Type != "Warning" || !strings.Contains(event.Note, bad.says) {
				t.Errorf("event is %+v, expected a warning that says %q", event, bad.says)
			}

			// The rest goes on.
			web.edit("two", nil)
			web.follows(2, "two")
			web.env.Patch(harness.ConfigMap(web.name), messageChanged)
			waitData(web.env, web.name, "message", "two")
			if n := web.env.CountEvents(web.cr, kind); n != 1 {
				t.Errorf("%d events tell of it", n)
			}
			web.env.Delete(web.cr)
			web.env.WaitGone(web.cr, harness.ConfigMap(web.name))
		})
	}
	t.Run("mended", func(t *testing.T) {
		t.Parallel()
		web := oneRevision(env.For(t), kind, "mended")
		web.ask("pause", "please")
		web.env.WaitCondition(web.cr, "InvalidAnnotations", metav1.ConditionTrue, "InvalidValue")
		web.env.Unannotate(web.cr, "pause")
		web.env.WaitStatus(web.cr, "free of it", func(status api.Status) error {
			if c := harness.Condition(status, "InvalidAnnotations"); c != nil {
				return fmt.Errorf("it says %q", c.Message)
			}
			return nil
		})
	})
}

// paused waits until a release is paused, Ready or not, and returns what the
// condition says.
func (r ownedRelease) paused(ready metav1.ConditionStatus) string {
	r.t.Helper()
	status := r.env.WaitStatus(r.cr, "paused with Ready="+string(ready), func(status api.Status) error {
		paused, is := harness.Condition(status, "Paused"), harness.Condition(status, "Ready")
		if paused == nil || paused.Reason != "Paused" || is == nil || is.Status != ready || ready == metav1.ConditionFalse && is.Reason != "Paused" {
			return errors.New("it is not")
		}
		return nil
	})
	if status.State != "Paused" {
		r.t.Errorf("state is %q", status.State)
	}
	return condition(r.t, status, "Paused").Message
}
