package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestRollback_DeploysAndHoldsRevision(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web := harness.MakePodSet("web").Replicas(1).Obj()
	env.Create(web)
	env.WaitReady(web)
	for replicas := 2; replicas <= 3; replicas++ {
		env.SetSpec(harness.MakePodSet("web").Replicas(replicas).Obj())
		env.WaitRevision(web, int64(replicas))
	}

	env.Kubectl("annotate", "podset", "web", "chartwright.dev/rollback-to=1")

	status := waitHeld(env, web, 4, 1)
	waitPods(env, "web", 1)
	env.ExpectRevisions("web", "1 superseded, 2 superseded, 3 superseded, 4 deployed")
	if history := env.Helm("history", "web"); !strings.Contains(history, "Rollback to 1") {
		t.Errorf("helm history does not contain the rollback:\n%s", history)
	}
	if table := env.Kubectl("get", "podset", "web"); !strings.Contains(table, "Held (rev 1)") {
		t.Errorf("kubectl get does not show the hold:\n%s", table)
	}
	held := condition(t, status, "Held")
	for _, wantText := range []string{"to revision 1 at 2", "from revision 3", "until you edit the spec", `chartwright.dev/rollback-to to "none"`} {
		if !strings.Contains(held.Message, wantText) {
			t.Errorf("the message of Held is %q, want %q", held.Message, wantText)
		}
	}
	if held.Reason != "RolledBack" || held.Status != metav1.ConditionTrue {
		t.Errorf("condition Held is %+v", held)
	}
	if r := status.Rollback; r == nil || r.To != 1 || r.From != 3 || r.Since == nil {
		t.Errorf("status.rollback is %+v", r)
	}
	if event := env.WaitEvent(web, "RolledBack"); event.Type != "Normal" || !strings.Contains(event.Note, "is rolled back to revision 1") {
		t.Errorf("event is %+v", event)
	}
}

// Rollback requests for a release with the revisions "one", "two" and "three".
func TestRollback_Requests(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	for _, test := range []struct {
		name string
		do   func(ownedRelease)
	}{
		{"an edit of the spec upgrades", func(web ownedRelease) {
			web.annotate("rollback-to", "1")
			web.held(4, 1, "one")
			web.edit("four", nil)
			web.follows(5, "four")
			// The annotation still exists, but its request was processed.
			web.edit("five", nil)
			web.follows(6, "five")
		}},
		{"an edit to the held spec ends the hold", func(web ownedRelease) {
			web.annotate("rollback-to", "1")
			web.held(4, 1, "one")
			web.edit("one", nil)
			web.follows(4, "one")
			web.env.WaitEvent(web.cr, "Resumed")
		}},
		{"none resumes", func(web ownedRelease) {
			web.annotate("rollback-to", "2")
			web.held(4, 2, "two")
			web.annotate("rollback-to", "none")
			web.follows(5, "three")
			web.env.WaitEvent(web.cr, "Resumed")
		}},
		{"none with nothing held changes nothing", func(web ownedRelease) {
			web.annotate("rollback-to", "none")
			fenceOf(web.env, kind)
			web.follows(3, "three")
		}},
		{"the same value is ignored, another token repeats the request", func(web ownedRelease) {
			web.annotate("rollback-to", "1@a")
			web.held(4, 1, "one")
			web.edit("four", nil)
			web.follows(5, "four")
			web.annotate("rollback-to", "1@a")
			web.env.Unannotate(web.cr, "rollback-to")
			web.annotate("rollback-to", "1@a")
			fenceOf(web.env, kind)
			web.follows(5, "four")
			web.annotate("rollback-to", "1@b")
			web.held(6, 1, "one")
		}},
		{"another revision while one is held", func(web ownedRelease) {
			web.annotate("rollback-to", "1")
			web.held(4, 1, "one")
			web.annotate("rollback-to", "2")
			web.held(5, 2, "two")
			web.annotate("rollback-to", "none")
			web.follows(6, "three")
		}},
		{"previous is the last revision, or the one before while held", func(web ownedRelease) {
			web.annotate("rollback-to", "previous")
			web.held(4, 2, "two")
			web.annotate("rollback-to", "previous@again")
			web.held(5, 1, "one")
			web.annotate("rollback-to", "previous@once-more")
			web.refused("No earlier revision", "1, 2, 3, 4, 5")
			web.held(5, 1, "one")
		}},
		{"previous after a failed upgrade is the last deployed revision", func(web ownedRelease) {
			web.edit("four", map[string]any{"post-upgrade": map[string]any{"fail": true}})
			web.env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "UpgradeFailed")
			web.env.WaitRevisions(web.name, "1 superseded, 2 superseded, 3 deployed, 4 failed")
			web.annotate("rollback-to", "previous")
			web.held(5, 3, "three")
		}},
		{"a rollback does not need a valid spec", func(web ownedRelease) {
			web.env.SetSpec(harness.MakeCR(kind, web.name).Set("hooks", "none at all").Obj())
			web.env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "RenderFailed")
			web.annotate("rollback-to", "1")
			web.held(4, 1, "one")
		}},
		{"a pause delays a rollback", func(web ownedRelease) {
			web.annotate("pause", "true")
			web.annotate("rollback-to", "1")
			status := web.env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "Paused")
			if paused := condition(web.t, status, "Paused"); !strings.Contains(paused.Message, "Rollback") {
				web.t.Errorf("the message of Paused is %q", paused.Message)
			}
			web.env.Unannotate(web.cr, "pause")
			web.held(4, 1, "one")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.do(threeRevisions(env.For(t), kind, test.name))
		})
	}
}

// ownedRelease is a release of the chart "hooks", or of another with a message.
type ownedRelease struct {
	t    *testing.T
	env  *harness.Env
	kind harness.Kind
	cr   *unstructured.Unstructured
	name string
}

// nameFor converts a text to a name.
func nameFor(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, ",", ""), " ", "-")
	return strings.Trim(text[:min(len(text), 40)], "-")
}

// oneRevision creates a release with the message "one". Its name is derived
// from a text.
func oneRevision(env *harness.Env, kind harness.Kind, text string) ownedRelease {
	env.T().Helper()
	name := nameFor(text)
	web := ownedRelease{env.T(), env, kind, harness.MakeCR(kind, name).Set("message", "one").Obj(), name}
	env.Create(web.cr)
	env.WaitRevision(web.cr, 1)
	return web
}

// threeRevisions creates a release with the messages "one", "two" and "three".
func threeRevisions(env *harness.Env, kind harness.Kind, name string) ownedRelease {
	env.T().Helper()
	web := oneRevision(env, kind, name)
	web.edit("two", nil)
	web.follows(2, "two")
	web.edit("three", nil)
	web.follows(3, "three")
	return web
}

func (r ownedRelease) annotate(annotation, value string) {
	r.t.Helper()
	r.env.Annotate(r.cr, annotation, value)
}

// in returns the release for another part of the test.
func (r ownedRelease) in(env *harness.Env) ownedRelease {
	r.t, r.env = env.T(), env
	return r
}

// edit changes the message in the spec, and the hooks.
func (r ownedRelease) edit(message string, hooks map[string]any) {
	r.t.Helper()
	cr := harness.MakeCR(r.kind, r.name).Set("message", message)
	if hooks != nil {
		cr.Set("hooks", hooks)
	}
	r.env.SetSpec(cr.Obj())
}

// held waits until a revision is a rollback to another one and has its message.
func (r ownedRelease) held(revision int64, of int, message string) {
	r.t.Helper()
	waitHeld(r.env, r.cr, revision, of)
	expectData(r.t, r.env, r.name, "message", message)
	if newest := r.env.Status(r.cr).History[0].Description; newest != fmt.Sprintf("Rollback to %d", of) {
		r.t.Errorf("revision %d has the description %q", revision, newest)
	}
}

// follows waits until a revision matches the spec.
func (r ownedRelease) follows(revision int64, message string) {
	r.t.Helper()
	status := r.env.WaitStatus(r.cr, fmt.Sprintf("at revision %d, not held", revision), func(status api.Status) error {
		ready := harness.Condition(status, "Ready")
		if ready == nil || ready.Status != metav1.ConditionTrue || status.State != "Deployed" || status.Release.Revision != revision || harness.Condition(status, "Held") != nil {
			return fmt.Errorf("not at revision %d", revision)
		}
		return nil
	})
	if status.Rollback != nil {
		r.t.Errorf("rollback is %+v", status.Rollback)
	}
	expectData(r.t, r.env, r.name, "message", message)
}

// waitHeld waits until a custom resource is Ready at a revision that holds an
// earlier one.
func waitHeld(env *harness.Env, cr *unstructured.Unstructured, revision int64, of int) api.Status {
	env.T().Helper()
	return env.WaitStatus(cr, fmt.Sprintf("held at revision %d as revision %d", of, revision), func(status api.Status) error {
		return heldAt(status, revision, of)
	})
}

func heldAt(status api.Status, revision int64, of int) error {
	ready, held := harness.Condition(status, "Ready"), harness.Condition(status, "Held")
	switch {
	case ready == nil || ready.Status != metav1.ConditionTrue || held == nil || held.Status != metav1.ConditionTrue:
		return fmt.Errorf("not Ready and Held")
	case status.Release.Revision != revision || status.State != fmt.Sprintf("Held (rev %d)", of):
		return fmt.Errorf("not at revision %d with revision %d", revision, of)
	}
	return nil
}

// fenceOf creates a custom resource of a kind and waits until it is deleted,
// see fence. By then, the operator has processed all earlier events of the
// kind.
func fenceOf(env *harness.Env, kind harness.Kind) {
	env.T().Helper()
	cr := harness.MakeCR(kind, "fence-"+rand.String(5)).Obj()
	env.Create(cr)
	env.WaitCondition(cr, "Deployed", metav1.ConditionTrue, "InstallSuccessful")
	env.Delete(cr)
	env.WaitGone(cr)
}
