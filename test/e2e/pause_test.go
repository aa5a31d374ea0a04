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
	kind := env.Use(hooksKind)
	for _, test := range []struct {
		name string
		do   func(ownedRelease)
	}{
		{"an edit waits", func(web ownedRelease) {
			web.annotate("pause", "true")
			if message := web.paused(metav1.ConditionTrue); !strings.Contains(message, "no changes pending") {
				web.t.Errorf("the message of Paused is %q", message)
			}
			web.edit("two", nil)
			if message := web.paused(metav1.ConditionFalse); !strings.Contains(message, "pending step: Upgrade") {
				web.t.Errorf("the message of Paused is %q", message)
			}
			expectData(web.t, web.env, web.name, "message", "one")
			web.env.ExpectRevisions(web.name, "1 deployed")
			web.env.Unannotate(web.cr, "pause")
			web.follows(2, "two")
			for _, reason := range []string{"Paused", "Unpaused"} {
				web.env.WaitEvent(web.cr, reason)
				if n := web.env.CountEvents(web.cr, reason); n != 1 {
					web.t.Errorf("%d events with reason %s", n, reason)
				}
			}
		}},
		{"an install waits", func(web ownedRelease) {
			web.name += "-new"
			web.cr = harness.MakeCR(kind, web.name).Set("message", "one").Annotate("pause", "true").Obj()
			web.env.Create(web.cr)
			web.paused(metav1.ConditionFalse)
			web.env.ExpectRevisions(web.name, "")
			web.annotate("pause", "false")
			web.follows(1, "one")
		}},
		{"drift is not corrected", func(web ownedRelease) {
			web.annotate("pause", "true")
			web.paused(metav1.ConditionTrue)
			web.env.Patch(harness.ConfigMap(web.name), messageChanged)
			web.env.WaitStatus(web.cr, "drifted", func(status api.Status) error {
				paused, drifted := harness.Condition(status, "Paused"), harness.Condition(status, "Drifted")
				if paused == nil || !strings.Contains(paused.Message, "pending step: Repair") || drifted == nil {
					return errors.New("no correction waits")
				}
				return nil
			})
			fenceOf(web.env, kind)
			expectData(web.t, web.env, web.name, "message", "theirs")
			web.env.Unannotate(web.cr, "pause")
			waitData(web.env, web.name, "message", "one")
			web.follows(1, "one")
		}},
		{"a deletion continues", func(web ownedRelease) {
			web.annotate("pause", "true")
			web.paused(metav1.ConditionTrue)
			web.env.Delete(web.cr)
			web.env.WaitGone(web.cr, harness.ConfigMap(web.name))
		}},
		{"a deletion waits if it is included", func(web ownedRelease) {
			web.annotate("pause", "including-deletion")
			web.paused(metav1.ConditionTrue)
			web.env.Delete(web.cr)
			if message := web.paused(metav1.ConditionFalse); !strings.Contains(message, "pending step: Uninstall") {
				web.t.Errorf("the message of Paused is %q", message)
			}
			fenceOf(web.env, kind)
			expectData(web.t, web.env, web.name, "message", "one")
			web.env.ExpectRevisions(web.name, "1 deployed")
			web.annotate("pause", "true")
			web.env.WaitGone(web.cr, harness.ConfigMap(web.name))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.do(oneRevision(env.For(t), kind, test.name))
		})
	}
}

// An invalid annotation is reported once and blocks nothing.
func TestAnnotations_InvalidAreReportedOnce(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	for _, bad := range []struct{ key, value, wantText string }{
		{"pause", "please", `chartwright.dev/pause is "please": expected "true", "false" or "including-deletion"`},
		{"reconcile-period", "soon", `chartwright.dev/reconcile-period is "soon": expected a duration`},
		{"reconcile-period", "100ms", `chartwright.dev/reconcile-period is "100ms": the operator allows 200ms or more, and uses 200ms`},
		{"deletion-policy", "keep", `chartwright.dev/deletion-policy is "keep": expected "orphan", "delete" or "delete-data"`},
		{"uninstall-wait", "a while", `chartwright.dev/uninstall-wait is "a while": expected "true" or "false"`},
		{"take-ownership", "all", `chartwright.dev/take-ownership is "all"`},
		{"upgrade-disable-hooks", "some", `chartwright.dev/upgrade-disable-hooks is "some"`},
		{"uninstall-disable-hooks", "some", `chartwright.dev/uninstall-disable-hooks is "some"`},
		{"rollback", "1", `unknown annotation chartwright.dev/rollback: expected one of abort, approve, deletion-order, deletion-policy, depends-on, force`},
		{"rollback-to", "yesterday", ""},
	} {
		t.Run(bad.key, func(t *testing.T) {
			t.Parallel()
			web := oneRevision(env.For(t), kind, bad.key+"-"+bad.value)
			web.annotate(bad.key, bad.value)
			kind := "InvalidAnnotations"
			if bad.wantText == "" {
				kind = "RollbackRefused"
			}
			status := web.env.WaitCondition(web.cr, kind, metav1.ConditionTrue, "InvalidValue")
			if message := condition(t, status, kind).Message; !strings.Contains(message, bad.wantText) {
				t.Errorf("the message of condition %s is %q, want %q", kind, message, bad.wantText)
			}
			if event := web.env.WaitEvent(web.cr, kind); event.Type != "Warning" || !strings.Contains(event.Note, bad.wantText) {
				t.Errorf("event is %+v, want a warning that contains %q", event, bad.wantText)
			}

			// Everything else continues.
			web.edit("two", nil)
			web.follows(2, "two")
			web.env.Patch(harness.ConfigMap(web.name), messageChanged)
			waitData(web.env, web.name, "message", "two")
			if n := web.env.CountEvents(web.cr, kind); n != 1 {
				t.Errorf("%d events report it", n)
			}
			web.env.Delete(web.cr)
			web.env.WaitGone(web.cr, harness.ConfigMap(web.name))
		})
	}
	t.Run("corrected", func(t *testing.T) {
		t.Parallel()
		web := oneRevision(env.For(t), kind, "mended")
		web.annotate("pause", "please")
		web.env.WaitCondition(web.cr, "InvalidAnnotations", metav1.ConditionTrue, "InvalidValue")
		web.env.Unannotate(web.cr, "pause")
		web.env.WaitStatus(web.cr, "without the condition", func(status api.Status) error {
			if c := harness.Condition(status, "InvalidAnnotations"); c != nil {
				return fmt.Errorf("the message is %q", c.Message)
			}
			return nil
		})
	})
}

// paused waits until a release is paused with the given status of Ready, and
// returns the message of condition Paused.
func (r ownedRelease) paused(ready metav1.ConditionStatus) string {
	r.t.Helper()
	status := r.env.WaitStatus(r.cr, "paused with Ready="+string(ready), func(status api.Status) error {
		paused, is := harness.Condition(status, "Paused"), harness.Condition(status, "Ready")
		if paused == nil || paused.Reason != "Paused" || is == nil || is.Status != ready || ready == metav1.ConditionFalse && is.Reason != "Paused" {
			return errors.New("not paused")
		}
		return nil
	})
	if status.State != "Paused" {
		r.t.Errorf("state is %q", status.State)
	}
	return condition(r.t, status, "Paused").Message
}
