package e2e

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The chart's new manifest has many changes, and one that the API server
// refuses.
func TestUpgrade_RefusedObjectChangesNothing(t *testing.T) {
	t.Parallel()
	e := useEverything(t)
	web := e.cr("web").Obj()
	e.Create(web)
	e.WaitReady(web)
	e.WaitEvent(web, "Installed")
	before := versions(e.settled("web"))

	e.SetSpec(e.cr("web").Set("word", "two").Set("tier", "back").Obj())
	status := e.WaitCondition(web, "Ready", metav1.ConditionFalse, "ObjectRefused")
	message := condition(t, status, "Ready").Message
	for _, wantText := range []string{"no object was changed", "Deployment " + e.Namespace + "/web", "field is immutable", "annotation chartwright.dev/force"} {
		if !strings.Contains(message, wantText) {
			t.Errorf("the message of Ready is %q, want %q", message, wantText)
		}
	}
	if len(message) > 500 || strings.Index(message, "field is immutable") > 200 {
		t.Errorf("the message of Ready has %d bytes, and the cause does not come first: %s", len(message), message)
	}
	condition(t, status, "Stalled")
	if after := versions(e.settled("web")); !maps.Equal(before, after) {
		t.Errorf("resource versions are %v, want %v", after, before)
	}
	e.ExpectRevisions("web", "1 deployed")
	expectData(t, e.Env, "web", "word", "one")

	e.SetSpec(e.cr("web").Set("word", "three").Obj())
	e.WaitRevision(web, 2)
	expectData(t, e.Env, "web", "word", "three")
	after := versions(e.settled("web"))
	for target, version := range before {
		if changed := after[target] != version; changed != (target == "ConfigMap") {
			t.Errorf("%s changed: %v", target, changed)
		}
	}
	e.ExpectRevisions("web", "1 superseded, 2 deployed")
	e.remove(web)
}

// A refused edit has made no revision. A rollback without a number then undoes this edit, and
// not the one before it: the running revision is deployed again, and held.
func TestRollback_PreviousAfterRefusedEdit(t *testing.T) {
	t.Parallel()
	e := useEverything(t)
	web := e.cr("web").Obj()
	target := e.kind.Resource() + "/web"
	e.Create(web)
	e.WaitRevision(web, 1)
	e.SetSpec(e.cr("web").Set("word", "two").Obj())
	e.WaitRevision(web, 2)
	e.WaitReady(web)
	e.SetSpec(e.cr("web").Set("word", "two").Set("tier", "back").Obj())
	status := e.WaitCondition(web, "Ready", metav1.ConditionFalse, "ObjectRefused")
	if status.Previous != 2 {
		t.Errorf("the previous revision of the status is %d", status.Previous)
	}
	before := versions(e.settled("web"))
	reader := e.NewUser(e.kind.On("get"), rule("list", "", "secrets"))
	for _, user := range []*harness.User{reader, e.NewUser(e.kind.On("get"))} {
		runExpecting(t, user, []string{"history", target}, "2 ", "previous Upgrade complete", "1 ", "yes Install complete")
	}

	callerOf(e.Env, e.kind).does([]string{"rollback", target, "--wait"}, "Revision 3 of release web is deployed, a rollback to revision 2, and held")
	if status := waitHeld(e.Env, web, 3, 2); status.Previous != 0 {
		t.Errorf("the previous revision of the status is %d", status.Previous)
	}
	expectData(t, e.Env, "web", "word", "two")
	if after := versions(e.settled("web")); !maps.Equal(before, after) {
		t.Errorf("resource versions are %v, want %v", after, before)
	}
	runExpecting(t, reader, []string{"history", target}, "3 ", "- Rollback to 2", "2 ", "yes Upgrade complete; held", "1 ", "previous Install complete")
	e.remove(web)
}

// A RoleBinding to a Role of the same revision is created, although the API
// server does not find the Role in the dry run. A RoleBinding to a Role that is
// not rendered is refused.
func TestUpgrade_CreatesRoleWithItsRoleBinding(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(grantingKind)
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	env.SetSpec(harness.MakeCR(kind, "web").Set("reader", true).Set("role", "nobodys").Obj())
	env.WaitCondition(web, "Ready", metav1.ConditionFalse, "ObjectRefused")
	env.SetSpec(harness.MakeCR(kind, "web").Set("reader", true).Obj())
	env.WaitRevision(web, 2)
	env.ExpectRevisions("web", "1 superseded, 2 deployed")
	env.Delete(web)
	env.WaitGone(web, harness.Object("rbac.authorization.k8s.io/v1", "RoleBinding", "web"))
}
