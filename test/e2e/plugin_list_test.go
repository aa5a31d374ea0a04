package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestPlugin_ListAndCheck: list shows all custom resources of the operator, and
// the exit code of check is 0 or 1. TestPlugin_StoppedOperator has the exit code 2.
func TestPlugin_ListAndCheck(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	web := oneRevision(env, kind, "web")
	env.WaitReady(web.cr)
	c := callerOf(env, kind)

	result := c.does([]string{"list", kind.Resource(), "-o", "json"})
	var list struct {
		Items []struct {
			Kind, Namespace, Name, Ready, Chart, Message string
			Revision                                     int64
		}
	}
	if err := json.Unmarshal([]byte(result.Stdout), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "web" || list.Items[0].Ready != "True" || list.Items[0].Revision != 1 || list.Items[0].Namespace != env.Namespace {
		t.Errorf("the list is %+v", list)
	}
	// Without a kind, the kinds that the user cannot list are skipped.
	all := c.does([]string{"list"}, "KIND", "web")
	if strings.Contains(all.Stdout, "NAMESPACE") || !strings.Contains(all.Stderr, "kinds were skipped because you cannot list them") {
		t.Errorf("list prints\n%s%s", all.Stdout, all.Stderr)
	}
	c.ends(1, []string{"list", kind.Resource(), "-A"}, "missing permission to list "+kind.Resource()+", which is required to list the custom resources in all namespaces")
	c.ends(1, []string{"list", "pods"}, "missing permission to list pods in namespace "+env.Namespace)

	c.does([]string{"check", kind.Resource()}, "1 checked, 0 failed, 0 pending")
	c.does([]string{"pause", kind.Resource() + "/web", "--wait"})
	c.does([]string{"check", kind.Resource()}, "1 checked, 0 failed, 0 pending", "Info", "Paused")
	c.does([]string{"resume", kind.Resource() + "/web", "--wait"})

	web.edit("two", map[string]any{"post-upgrade": map[string]any{"fail": true}})
	env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "UpgradeFailed")
	if result := c.ends(1, []string{"check", kind.Resource()}, "Error: 1 of 1 custom resources failed"); !strings.Contains(result.Stdout, "UpgradeFailed") {
		t.Errorf("check prints\n%s", result.Stdout)
	}
}

// TestPlugin_FormerNames: former names of commands and flags still work.
func TestPlugin_FormerNames(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	web := threeRevisions(env, kind, "web")
	c := callerOf(env, kind)
	target := kind.Resource() + "/web"
	const deprecated = `"resume" releases the hold, which is deprecated: use "kubectl chartwright unhold"`

	c.does([]string{"rollback", target, "--wait"})
	c.does([]string{"pause", target, "--wait"})
	// Paused and held: resume only ends the pause.
	if result := c.does([]string{"resume", target, "--wait"}, "held"); strings.Contains(result.Stderr, deprecated) {
		t.Errorf("resume of a paused resource warns:\n%s", result.Stderr)
	}
	web.held(4, 2, "two")
	// Only held: resume releases the hold.
	if result := c.does([]string{"resume", target, "--wait"}, "Revision 5 of release web is deployed"); !strings.Contains(result.Stderr, deprecated) {
		t.Errorf("resume of a held resource does not warn:\n%s", result.Stderr)
	}
	web.follows(5, "three")

	c.does([]string{"rollback", target, "2", "--wait"})
	c.does([]string{"pause", target, "--wait"})
	c.does([]string{"unpause", target, "--wait"})
	// unpause never releases a hold.
	c.does([]string{"unpause", target, "--wait"}, "held")
	c.does([]string{"unhold", target, "--wait"})
	if result := c.reads(0, "unhold", target, "--wait"); result.Verb != "unhold" || result.Outcome != "Done" {
		t.Errorf("unhold of a resource that is not held: %+v", result)
	}

	status := c.does([]string{"rollout", "status", kind.Resource(), "-n", env.Namespace})
	if former := c.does([]string{"rollout", kind.Resource(), "-n", env.Namespace}); former.Stdout != status.Stdout {
		t.Errorf("rollout prints\n%swant\n%s", former.Stdout, status.Stdout)
	}
	if result := c.Chartwright("--help"); strings.Contains(result.Stdout, "unpause") {
		t.Errorf("the help shows a former name:\n%s", result.Stdout)
	}
	for _, args := range [][]string{{"version"}, {"--version"}, {"version", "-o", "yaml"}} {
		c.does(args, "v3.")
	}
}
