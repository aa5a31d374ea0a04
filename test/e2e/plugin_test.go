package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// requested is the output of a verb that makes a request, with -o json.
type requested struct {
	Verb, Kind, Namespace, Name, Annotation, Value, Outcome, Message, State string
	Revision                                                                int64
}

// caller is a user with permission to read and patch custom resources of one
// kind only.
type caller struct {
	*harness.User
	t *testing.T
}

func callerOf(env *harness.Env, kind harness.Kind) caller {
	return caller{env.NewUser(kind.On("get", "list", "watch", "patch")), env.T()}
}

// does runs the plugin, and checks that it exits with code 0 and prints all
// texts.
func (c caller) does(args []string, wantText ...string) harness.Output {
	c.t.Helper()
	return c.ends(0, args, wantText...)
}

// ends runs the plugin, and checks its exit code and the texts on standard
// output or, if the code is not 0, on standard error.
func (c caller) ends(code int, args []string, wantText ...string) harness.Output {
	c.t.Helper()
	result := c.Chartwright(args...)
	text := result.Stdout
	if code != 0 {
		text = result.Stderr
	}
	if result.Code != code {
		c.t.Fatalf("%s exits with code %d, want %d:\n%s%s", strings.Join(args, " "), result.Code, code, result.Stdout, result.Stderr)
	}
	for _, want := range wantText {
		if !strings.Contains(text, want) {
			c.t.Errorf("the output of %s does not contain %q:\n%s%s", strings.Join(args, " "), want, result.Stdout, result.Stderr)
		}
	}
	return result
}

// reads runs the plugin with -o json.
func (c caller) reads(code int, args ...string) requested {
	c.t.Helper()
	result := c.ends(code, append(args, "-o", "json"))
	var a requested
	if err := json.Unmarshal([]byte(result.Stdout), &a); err != nil {
		c.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, result.Stdout)
	}
	return a
}

// TestPlugin_Requests runs each verb that makes a request, with permissions
// only for the custom resource, and checks the outcome.
func TestPlugin_Requests(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	for _, test := range []struct {
		name string
		do   func(c caller, web ownedRelease, target string)
	}{
		{"rollback to the last good one, and back", func(c caller, web ownedRelease, target string) {
			result := c.does([]string{"rollback", target, "--wait"}, target, "Revision 4 of release "+web.name, "a rollback to revision 2, and held")
			// The first and the last state.
			if !strings.Contains(result.Stderr, "  Deployed: Revision 3") || !strings.Contains(result.Stderr, "  Held (rev 2): Revision 4") {
				web.t.Errorf("the progress output is\n%s", result.Stderr)
			}
			// With --wait, the request is complete when the program exits.
			if err := heldAt(web.env.Status(web.cr), 4, 2); err != nil {
				web.t.Error(err)
			}
			c.does([]string{"unhold", target, "--wait"}, "Revision 5 of release "+web.name+" is deployed")
			web.follows(5, "three")
		}},
		{"rollback to a revision, repeatedly", func(c caller, web ownedRelease, _ string) {
			first := c.reads(0, "rollback", kind.Resource(), web.name, "1", "--wait")
			second := c.reads(0, "rollback", kind.Resource(), web.name, "1", "--wait")
			if first.Outcome != "Done" || first.Revision != 4 || second.Revision != 5 || first.Value == second.Value || !strings.HasPrefix(first.Value, "1@") {
				web.t.Errorf("the results are\n%+v\n%+v", first, second)
			}
			want := requested{
				Verb: "rollback", Kind: kind.Resource(), Namespace: web.env.Namespace, Name: web.name, Annotation: api.AnnotationRollbackTo,
				Value: second.Value, Outcome: "Done", Message: second.Message, State: "Held (rev 1)", Revision: 5,
			}
			if second != want {
				web.t.Errorf("the result is %+v, want %+v", second, want)
			}
			web.held(5, 1, "one")
		}},
		{"rollback to a missing revision", func(c caller, web ownedRelease, target string) {
			c.ends(1, []string{"rollback", target, "9", "--wait"}, "Error: ", "refused: Revision 9 is not stored", "Available revisions: 1, 2, 3")
			refused := c.reads(1, "rollback", target, "9", "--wait")
			if refused.Outcome != "Failed" || !strings.Contains(refused.Message, "Revision 9 is not stored") {
				web.t.Errorf("the result is %+v", refused)
			}
			web.follows(3, "three")
		}},
		{"rollback from a failing upgrade, and unhold", func(c caller, web ownedRelease, target string) {
			web.edit("four", map[string]any{"post-upgrade": map[string]any{"fail": true}})
			web.env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "UpgradeFailed")
			c.does([]string{"rollback", target, "--wait"}, "a rollback to revision 3")
			if err := heldAt(web.env.Status(web.cr), 5, 3); err != nil {
				web.t.Error(err)
			}
			c.ends(1, []string{"unhold", target, "--wait"}, target, "UpgradeFailed: ")
		}},
		{"pause, waiting request, resume", func(c caller, web ownedRelease, target string) {
			c.does([]string{"pause", target, "--wait"}, "Paused by the annotation")
			web.edit("four", nil)
			web.paused(metav1.ConditionFalse)
			c.ends(1, []string{"rollback", target, "--wait"}, "is paused", "resume")
			web.env.ExpectRevisions(web.name, "1 superseded, 2 superseded, 3 deployed")
			// The rollback waits, too. It undoes the edit, which has made no revision.
			c.does([]string{"resume", target, "--wait"}, "held")
			web.held(4, 3, "three")
		}},
		{"pause including deletion", func(c caller, web ownedRelease, target string) {
			c.does([]string{"pause", target, "--including-deletion", "--wait"})
			web.env.Delete(web.cr)
			web.paused(metav1.ConditionFalse)
			if result := c.reads(0, "resume", target); result.Outcome != "Requested" || result.Value != "" {
				web.t.Errorf("the result is %+v", result)
			}
			web.env.WaitGone(web.cr, harness.ConfigMap(web.name))
		}},
		{"reconcile corrects an object that is not watched", func(c caller, web ownedRelease, target string) {
			before := web.env.Get(web.cr).GetGeneration()
			result := c.reads(0, "reconcile", target, "--wait")
			status := web.env.Status(web.cr)
			if status.Answered == nil || status.Answered.ReconcileRequestedAt != result.Value || result.Outcome != "Done" {
				web.t.Errorf("the result is %+v, and the status has %+v", result, status.Answered)
			}
			if web.env.Get(web.cr).GetGeneration() != before {
				web.t.Error("the spec was changed")
			}
			web.follows(3, "three")
		}},
		{"reconcile reports a repeated failure", func(c caller, web ownedRelease, target string) {
			web.edit("four", map[string]any{"post-upgrade": map[string]any{"fail": true}})
			web.env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "UpgradeFailed")
			c.ends(1, []string{"reconcile", target, "--wait"}, "UpgradeFailed: ")
		}},
		{"reconcile of a spec that the chart refuses", func(c caller, web ownedRelease, target string) {
			web.env.SetSpec(harness.MakeCR(kind, web.name).Set("hooks", "none at all").Obj())
			web.env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "RenderFailed")
			c.ends(1, []string{"reconcile", target, "--wait"}, "RenderFailed: ")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			env := env.For(t)
			web := threeRevisions(env, kind, test.name)
			test.do(callerOf(env, kind), web, "hooks."+kind.Group+"/"+web.name)
			expectOneManager(t, env, web.cr)
		})
	}
}

// expectOneManager checks that the plugin has written only annotations, under
// its own field manager.
func expectOneManager(t *testing.T, env *harness.Env, cr *unstructured.Unstructured) {
	t.Helper()
	live, err := env.At(cr).Get(t.Context(), cr.GetName(), metav1.GetOptions{})
	if err != nil {
		return // it was deleted
	}
	for _, entry := range live.GetManagedFields() {
		fields := ""
		if entry.FieldsV1 != nil {
			fields = entry.FieldsV1.GetRawString()
		}
		mentions := strings.Contains(fields, "rollback-to") || strings.Contains(fields, "reconcile-requested-at") || strings.Contains(fields, "f:"+api.AnnotationPause)
		if mentions != (entry.Manager == api.FieldManagerCLI) || entry.Manager == api.FieldManagerCLI && strings.Contains(fields, "f:spec") {
			t.Errorf("manager %s has fields %s", entry.Manager, fields)
		}
	}
}

// TestPlugin_StoppedOperator runs commands while the operator does not respond.
func TestPlugin_StoppedOperator(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serve(env, "Hooks", "hooks")
	web, other := oneRevision(env, kind, "web"), threeRevisions(env, kind, "other")
	operator.Stop()
	t.Run("missing permissions", func(t *testing.T) { missPermissions(env.For(t), web) })
	t.Run("timeout", func(t *testing.T) { timeOut(env.For(t), web) })
	t.Run("check", func(t *testing.T) {
		web.edit("two", nil)
		result := callerOf(env.For(t), kind).ends(2, []string{"check"}, "Error: 1 of 2 custom resources pending")
		if !strings.Contains(result.Stdout, "NotObserved") {
			t.Errorf("check prints\n%s", result.Stdout)
		}
	})
	t.Run("deletion", func(t *testing.T) {
		web.env.Kubectl("delete", kind.Resource(), "web", "--wait=false")
		c, target := callerOf(env.For(t), kind), kind.Resource()+"/web"
		const wantText = "being deleted since 20"
		c.does([]string{"list", kind.Resource()}, wantText)
		c.does([]string{"status", target}, "False", "Uninstalling: "+wantText, "finalizers: chartwright.dev/uninstall; the operator did not observe the last edit or deletion yet")
		if result := c.ends(2, []string{"check"}); !strings.Contains(result.Stdout, "Uninstalling") || !strings.Contains(result.Stdout, wantText) {
			t.Errorf("check prints\n%s", result.Stdout)
		}
	})
	t.Run("lost connection", func(t *testing.T) { loseConnection(env.For(t), other, operator) })
}

// timeOut checks that the program prints the last known state and exits with its
// own exit code if the operator does not respond.
func timeOut(env *harness.Env, web ownedRelease) {
	t := env.T()
	t.Helper()
	c := callerOf(env, web.kind)
	target := web.kind.Resource() + "/web"
	c.ends(2, []string{"rollback", target, "1", "--wait", "--timeout", "5s"}, "timed out after 5s; last state: unchanged, no operator has reacted to the request: check that its pods run (kubectl get pods ")
	if result := c.reads(2, "reconcile", target, "--wait", "--timeout", "1s"); result.Outcome != "Unknown" {
		t.Errorf("the result is %+v", result)
	}
	// Without --wait the program exits immediately, and the operator finds the
	// request later.
	c.does([]string{"pause", target}, "paused")
	if annotations := env.Get(web.cr).GetAnnotations(); annotations[api.AnnotationPause] != "true" {
		t.Errorf("the annotations are %v", annotations)
	}
	c.does([]string{"resume", target}, "resumed")
	if annotations := env.Get(web.cr).GetAnnotations(); annotations[api.AnnotationPause] != "" {
		t.Errorf("the annotations are %v", annotations)
	}
}

// missPermissions checks that the error names the missing permission, and that
// nothing is written. A request that the operator has answered needs no watch.
func missPermissions(env *harness.Env, web ownedRelease) {
	t, kind := env.T(), web.kind
	t.Helper()
	target := kind.Resource() + "/web"
	missing := func(verb, purpose string) string {
		return fmt.Sprintf("missing permission to %s %s in namespace %s, which is required %s; required rule: {apiGroups: [%q], resources: [%q], verbs: [%q]}",
			verb, kind.Resource(), env.Namespace, purpose, kind.Group, "hookses", verb)
	}
	for _, test := range []struct {
		name     string
		may      []string
		args     []string
		wantText string
	}{
		{"no get", []string{"patch"}, []string{"pause", target}, missing("get", "to read the custom resource")},
		{"no patch", []string{"get", "watch"}, []string{"rollback", target, "1"}, missing("patch", "to request a rollback")},
		{"no patch to unhold", []string{"get"}, []string{"unhold", target}, missing("patch", "to release the hold")},
		{"no patch to reconcile", []string{"get"}, []string{"reconcile", target}, missing("patch", "to request a reconciliation")},
		{"no watch", []string{"get", "patch"}, []string{"reconcile", target, "--wait"}, missing("watch", "to wait for the outcome")},
		{"no list", []string{"get"}, []string{"rollout", "status", kind.Resource(), "-n", env.Namespace}, missing("list", "to show the rollout")},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := env.For(t)
			c := caller{env.NewUser(kind.On(test.may...)), t}
			result := c.ends(1, test.args, test.wantText)
			if result.Stdout != "" {
				t.Errorf("the output is %s", result.Stdout)
			}
		})
	}
	t.Run("all namespaces", func(t *testing.T) {
		callerOf(env.For(t), kind).ends(1, []string{"rollout", "status", kind.Resource()},
			"missing permission to list "+kind.Resource()+", which is required to show the rollout in all namespaces (-n selects one);")
	})
	if set := env.Get(web.cr).GetAnnotations(); set[api.AnnotationPause] != "" || set[api.AnnotationRollbackTo] != "" {
		t.Errorf("something was written: %v", set)
	}
}

// TestPlugin_RefusesInvalidCommands: foreign custom resources and invalid
// arguments are refused before anything is written.
func TestPlugin_RefusesInvalidCommands(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Unserved")
	env.InstallCRD(kind)
	lone := harness.MakeCR(kind, "web").Obj()
	env.Create(lone)
	c := callerOf(env, kind)
	for _, test := range []struct{ args, wantText string }{
		{"pause unserved/web", "unserved." + kind.Group + "/web is not managed by Chartwright"},
		{"pause unserved/other", "unserved." + kind.Group + "/other not found in namespace " + env.Namespace},
		{"pause nothing/web", `the server doesn't have a resource type "nothing"`},
		{"pause unserved", "expected a custom resource as KIND/NAME"},
		{"pause", "expected a custom resource as KIND/NAME"},
		{"pause unserved web more", `unexpected argument "more"`},
		{"rollback unserved/web 2 more", `unexpected argument "more"`},
		{"rollback unserved/web two", `invalid revision "two"`},
		{"rollback unserved/web 0", `invalid revision "0"`},
		{"rollback unserved/web none", `"kubectl chartwright unhold"`},
		{"pause unserved/web -o xml", "expected table, json or yaml"},
		{"pause unserved/web --color loud", "expected auto, always or never"},
		{"rollout status", `expected a kind, such as "kubectl chartwright rollout status podset"`},
		{"rollout", `expected a command, such as "kubectl chartwright rollout status podset"`},
		{"rollout pause", `expected a kind, such as "kubectl chartwright rollout pause podset"`},
		{"rollout pause nothing", `the server doesn't have a resource type "nothing"`},
		{"stop unserved/web", `unknown command "stop" for "kubectl chartwright"`},
	} {
		c.ends(1, strings.Fields(test.args), test.wantText)
	}
	if set := env.Get(lone).GetAnnotations(); len(set) > 0 {
		t.Errorf("something was written: %v", set)
	}
}
