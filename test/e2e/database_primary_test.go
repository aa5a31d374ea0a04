package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Another primary is prepared by a Job. Then the Service and the status name it,
// and no pod restarts. A rollback names the previous one again.
func TestDatabase_PrimarySwitches(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	web := harness.MakeCR(harness.Database, "web").Set("replicas", 2).Obj()
	env.Create(web)
	env.WaitRevision(web, 1)
	pods := uidsOf(waitRunning(env, "web", 2))
	waitField(env, web, "primary", "web-0")
	writers := func() string {
		return env.Kubectl("get", "service", "web", "-o", `jsonpath={.spec.selector.statefulset\.kubernetes\.io/pod-name}`)
	}

	jobs := watchJobs(env)
	env.SetSpec(harness.MakeCR(harness.Database, "web").Set("replicas", 2).Set("primary", 1).Obj())
	env.WaitRevision(web, 2)
	waitField(env, web, "primary", "web-1")
	waitField(env, web, "phase", "Running")
	if got := writers(); got != "web-1" {
		t.Errorf("the Service selects %s", got)
	}
	if words := jobs(); !slices.Equal(words, []string{"upgrade", "init"}) {
		t.Errorf("Jobs of the switch were %v", words)
	}
	if now := uidsOf(waitRunning(env, "web", 2)); !slices.Equal(now, pods) {
		t.Error("pods restarted")
	}

	// A primary that does not exist is refused.
	env.SetSpec(harness.MakeCR(harness.Database, "web").Set("replicas", 1).Set("primary", 1).Obj())
	status := env.WaitCondition(web, "Ready", metav1.ConditionFalse, "RenderFailed")
	if message := harness.Condition(status, "Ready").Message; !strings.Contains(message, "primary: there is no pod 1: replicas is 1") {
		t.Errorf("the condition's message is %q", message)
	}

	env.Annotate(web, "rollback-to", "1")
	env.WaitRevision(web, 3)
	if got := writers(); got != "web-0" {
		t.Errorf("after the rollback, the Service selects %s", got)
	}
}

// Users delete the StatefulSet. The operator creates it again, with the same
// claims, and deletes the claims only with the custom resource.
func TestDatabase_StatefulSetDeleted(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	for _, kind := range []harness.Kind{harness.Database, harness.Experimental} {
		cr := harness.MakeCR(kind, "web").Obj()
		env.Create(cr)
		env.WaitReady(cr)
		selector := "app.kubernetes.io/instance=web,app.kubernetes.io/component!=backup"
		claims := func() string {
			return env.Kubectl("get", "persistentvolumeclaims", "-l", selector, "-o", "jsonpath={.items[*].metadata.uid}{.items[*].metadata.deletionTimestamp}")
		}
		before := claims()
		if before == "" {
			t.Fatalf("%s has no claims", kind.Kind)
		}
		gone := env.Get(harness.Object("apps/v1", "StatefulSet", "web")).GetUID()
		env.Kubectl("delete", "statefulset", "web")
		env.Wait("the StatefulSet to be recreated", func(ctx context.Context) error {
			set, err := env.Typed.AppsV1().StatefulSets(env.Namespace).Get(ctx, "web", metav1.GetOptions{})
			if err == nil && set.UID == gone {
				err = errors.New("it is the same")
			}
			return err
		})
		env.WaitReady(cr)
		if now := claims(); now != before {
			t.Errorf("the claims of %s were %s and are %s", kind.Kind, before, now)
		}
		env.Delete(cr)
		env.WaitGone(cr)
		env.Kubectl("wait", "--for=delete", "persistentvolumeclaims", "-l", selector, harness.Timeout)
	}
}
