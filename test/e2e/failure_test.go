package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// failing returns values for an upgrade that fails in a hook after it has
// changed all objects.
func failing() map[string]any {
	return map[string]any{"post-upgrade": map[string]any{"fail": true}}
}

func TestUpgrade_RolledBackAfterFailedRetries(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksRolledBackTwice)
	web := threeRevisions(env, kind, "web")

	web.edit("four", failing())
	status := waitHeld(env, web.cr, 5, 3)
	web.held(5, 3, "three")
	held := condition(t, status, "Held")
	if held.Reason != "RolledBackAfterFailure" || !strings.Contains(held.Message, "to revision 3") || !strings.Contains(held.Message, "the upgrade failed repeatedly") {
		t.Errorf("condition Held is %+v", held)
	}
	env.ExpectRevisions("web", "1 superseded, 2 superseded, 3 superseded, 4 failed, 5 deployed")
	if event := env.WaitEvent(web.cr, "UpgradeFailed"); event.Type != "Warning" || !strings.Contains(event.Note, "web-post-upgrade") {
		t.Errorf("event is %+v", event)
	}
	env.WaitEvent(web.cr, "RolledBack")

	// The hold ends when the spec is edited.
	web.edit("five", nil)
	web.follows(6, "five")

	// A user can request another attempt for the failed spec.
	web.edit("six", failing())
	waitHeld(env, web.cr, 8, 6)
	env.Annotate(web.cr, "rollback-to", "none")
	status = waitHeld(env, web.cr, 10, 8)
	if held := condition(t, status, "Held"); held.Reason != "RolledBackAfterFailure" {
		t.Errorf("condition Held is %+v", held)
	}
}

// A first revision has no previous revision to roll back to.
func TestInstall_RetriedAfterFailure(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksRolledBack)
	web := ownedRelease{t, env, kind, harness.MakeCR(kind, "web").Set("hooks.post-install.fail", true).Obj(), "web"}
	tries := watchTries(env, "web-post-install")
	env.Create(web.cr)
	waitTries(env, tries, 3)
	// The release was not uninstalled between the attempts.
	env.Get(harness.ConfigMap("web"))
	web.edit("mended", nil)
	web.follows(2, "mended")
	env.ExpectRevisions("web", "1 failed, 2 deployed")
}

func TestRetries_KeepDeployedRevisionsInHistory(t *testing.T) {
	t.Parallel()
	const retries = 10
	env := harness.New(t)
	kind := env.Use(hooksWithHistory3)
	web := threeRevisions(env, kind, "web")
	tries := watchTries(env, "web-post-upgrade")
	web.edit("four", failing())
	for i := range retries {
		waitTries(env, tries, i+1)
		env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "UpgradeFailed")
		env.WaitRevisions("web", "1 superseded, 2 superseded, 3 deployed, 4 failed")
		// Do not wait five minutes for the next retry.
		web.annotate("reconcile-requested-at", fmt.Sprintf("try %d", i+2))
	}
	if n := env.CountEvents(web.cr, "UpgradeFailed"); n > retries+1 {
		t.Errorf("%d events report %d failures", n, retries+1)
	}
	web.annotate("rollback-to", "1")
	web.held(5, 1, "one")
	web.edit("five", nil)
	web.follows(6, "five")
}

func TestEdit_OfFailedSpecSkipsBackoff(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	web := oneRevision(env, kind, "web")
	tries := watchTries(env, "web-post-upgrade")
	web.edit("two", failing())
	// The next retry would be after 16 seconds.
	waitTries(env, tries, 5)
	env.WaitRevisions("web", "1 deployed, 2 failed")
	fenceOf(env, kind)
	logged := len(harness.SharedLog())
	if len(backoffs(env, harness.SharedLog()[:logged])) == 0 {
		t.Error("no retry waited")
	}
	web.edit("three", nil)
	web.follows(3, "three")
	if waits := backoffs(env, harness.SharedLog()[logged:]); len(waits) > 0 {
		t.Errorf("the upgrade waited: %v", waits)
	}
}

// backoffs returns the decisions of a log to wait for some time before an action.
func backoffs(env *harness.Env, log string) (found []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, env.Namespace) && strings.Contains(line, `"step":"Wait"`) && !strings.Contains(line, `"after":0}`) {
			found = append(found, line)
		}
	}
	return found
}

func TestEdit_DuringUpgradeCausesOneMoreUpgrade(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	node := newNodeLabel(env)
	web := oneRevision(env, kind, "web")
	web.edit("two", map[string]any{"post-upgrade": map[string]any{"node": node}})
	waitRunningHook(env, "web-post-upgrade")
	web.edit("three", nil)
	web.edit("four", nil)
	expectData(t, env, "web", "message", "two")
	labelNode(env, node)
	web.follows(3, "four")
	fenceOf(env, kind)
	env.ExpectRevisions("web", "1 superseded, 2 superseded, 3 deployed")
}

// The termination grace period in config/manager is 30 seconds.
func TestStop_DuringUpgradeIsRecorded(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serve(env, "Hooks", "hooks")
	node := newNodeLabel(env)
	var all []ownedRelease
	for _, name := range []string{"a", "b", "c"} {
		web := oneRevision(env, kind, name)
		web.edit("two", map[string]any{"post-upgrade": map[string]any{"node": node}})
		waitRunningHook(env, name+"-post-upgrade")
		all = append(all, web)
	}
	operator.Stop()
	for _, web := range all {
		env.ExpectRevisions(web.name, "1 deployed, 2 failed")
		if history := env.Helm("history", web.name); !strings.Contains(history, "the operator is shutting down") {
			t.Errorf("helm history does not contain it:\n%s", history)
		}
	}
	labelNode(env, node)
	operator.Start()
	for _, web := range all {
		web.follows(2, "two")
		env.WaitRevisions(web.name, "1 superseded, 2 deployed")
	}
}

// watchTries counts the Jobs of a hook from now on, one per attempt.
func watchTries(env *harness.Env, job string) (seen func() int) {
	env.T().Helper()
	jobs, changes := env.Follow(env.At(harness.Object("batch/v1", "Job", job)), metav1.ListOptions{FieldSelector: "metadata.name=" + job})
	env.T().Cleanup(changes.Stop)
	var mu sync.Mutex
	uids := map[types.UID]bool{}
	for i := range jobs {
		uids[jobs[i].GetUID()] = true
	}
	go func() {
		for event := range changes.ResultChan() {
			if m, ok := event.Object.(metav1.Object); ok {
				mu.Lock()
				uids[m.GetUID()] = true
				mu.Unlock()
			}
		}
	}()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(uids)
	}
}

// waitTries waits until a hook has had the given number of Jobs.
func waitTries(env *harness.Env, seen func() int, tries int) {
	env.T().Helper()
	env.Wait(fmt.Sprintf("attempt %d", tries), func(context.Context) error {
		if n := seen(); n < tries {
			return fmt.Errorf("%d so far", n)
		}
		return nil
	})
}
