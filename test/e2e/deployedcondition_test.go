package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestDeployed_StaysTrueDuringUpgradesAndRollbacks watches every status of a
// custom resource. The proxy delays each write, so that the operator writes the
// status between the two records that Helm writes at the end of an upgrade.
func TestDeployed_StaysTrueDuringUpgradesAndRollbacks(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Hooks")
	env.InstallCRD(kind)
	proxy := env.NewProxy()
	env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("hooks"))),
		Account: env.NewAccount(),
		Proxy:   proxy,
	}).Start()
	// Hooks make the actions long enough for the operator to write the status
	// meanwhile.
	phases := map[string]any{}
	for _, phase := range []string{"pre-upgrade", "post-upgrade", "pre-rollback", "post-rollback"} {
		phases[phase] = map[string]any{}
	}
	web := ownedRelease{t, env, kind, harness.MakeCR(kind, "web").Set("message", "one").Set("hooks", phases).Obj(), "web"}
	env.Create(web.cr)
	env.WaitRevision(web.cr, 1)
	seen := watchDeployed(env, web.cr)
	proxy.Rule(harness.Rule{Fault: harness.Delay, Match: harness.Call.Write})

	// Every second revision is a rollback. Annotations cause reconciliations
	// during the action.
	for revision := int64(2); revision <= 5; revision++ {
		if revision%2 == 0 {
			web.edit(strconv.FormatInt(revision, 10), phases)
		} else {
			web.annotate("rollback-to", fmt.Sprintf("1@%d", revision))
		}
		env.Wait(fmt.Sprintf("revision %d", revision), func(ctx context.Context) error {
			web.annotate("reconcile-period", strconv.Itoa(1000+int(seen.Load()%7))+"h")
			live, err := env.At(web.cr).Get(ctx, web.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			status, err := harness.StatusOf(live)
			if err == nil && (status.Release.Revision != revision || status.Release.Status != "deployed") {
				err = fmt.Errorf("the release is %+v", status.Release)
			}
			return err
		})
	}
	if n := seen.Load(); n < 8 {
		t.Errorf("only %d statuses were observed", n)
	}
}

// watchDeployed fails the test if, from now on, a status of the custom resource
// does not report a deployed revision. It counts the statuses.
func watchDeployed(env *harness.Env, cr *unstructured.Unstructured) *atomic.Int64 {
	t := env.T()
	t.Helper()
	_, watcher := env.Follow(env.At(cr), metav1.ListOptions{FieldSelector: "metadata.name=" + cr.GetName()})
	seen, done := &atomic.Int64{}, make(chan struct{})
	t.Cleanup(func() {
		watcher.Stop()
		<-done
	})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			live, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type != watch.Modified || live.GetDeletionTimestamp() != nil {
				continue
			}
			seen.Add(1)
			status, err := harness.StatusOf(live)
			if err != nil {
				t.Error(err)
				continue
			}
			if c := harness.Condition(status, "Deployed"); c == nil || c.Status != metav1.ConditionTrue || status.DeployedRelease == nil {
				t.Errorf("at revision %+v condition Deployed is %+v and deployedRelease is %+v", status.Release, c, status.DeployedRelease)
				return
			}
		}
	}()
	return seen
}
