package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// idle is how long an idle operator is observed.
const idle = 10 * time.Second

func TestRequests_IdleOperatorMakesNone(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	account := env.NewAccount()
	audit := env.Audit(account.User())
	env.NewOperator(harness.Options{Account: account}).Start()
	var crs []*unstructured.Unstructured
	for i := range 5 {
		crs = append(crs, harness.MakePodSet(fmt.Sprintf("set-%d", i)).Obj(), harness.MakeOvhNginx(fmt.Sprintf("nginx-%d", i)).Obj())
	}
	env.Create(crs...)
	for _, cr := range crs {
		env.WaitReady(cr)
		env.WaitEvent(cr, "Installed")
	}
	for i := range 5 {
		set, nginx := fmt.Sprintf("set-%d", i), fmt.Sprintf("nginx-%d", i)
		waitPods(env, set, 1)
		waitPods(env, nginx, 1)
		waitField(env, harness.MakePodSet(set).Obj(), "podNames", fmt.Sprint(podsOf(env, set)))
		waitField(env, harness.MakePodSet(set).Obj(), "replicas", "1")
	}
	// The operator checks its permissions once, some time after the start.
	env.Wait("the operator to check its permissions", func(context.Context) error {
		if !slices.ContainsFunc(audit.Requests(), func(r harness.Request) bool { return r.ObjectRef.Resource == "selfsubjectrulesreviews" }) {
			return errors.New("not yet")
		}
		return nil
	})
	audit = env.Audit(account.User())
	env.Consistently("idle", idle, func(context.Context) error {
		if requests := audit.Requests(); len(requests) > 0 {
			return fmt.Errorf("the operator requested %v", requests)
		}
		return nil
	})
}

// Not in parallel: an install that takes over two seconds is reported by an
// additional patch, and a CRD of another test makes the operator reload the API
// versions.
func TestRequests_InstallNeedsFew(t *testing.T) {
	env := harness.New(t)
	kind := env.Use(plainKind)
	// Objects that a process reads only once have been read by now.
	warm := harness.MakeCR(kind, "warm").Obj()
	env.Create(warm)
	env.WaitReady(warm)
	env.WaitEvent(warm, "Installed")

	for _, objects := range []int{1, 4, 10} {
		install := func(try int) int {
			audit := env.Audit(harness.SharedUser())
			cr := harness.MakeCR(kind, fmt.Sprintf("web-%d-%d", objects, try)).Set("count", objects).Obj()
			env.Create(cr)
			env.WaitReady(cr)
			env.WaitEvent(cr, "Installed")
			requests := audit.Requests()
			t.Logf("%d objects: %d requests: %v", objects, len(requests), requests)
			return len(requests)
		}
		// On a busy machine one install can last over two seconds, but not three
		// in a row.
		most := 2*objects + 5
		if install(1) > most && install(2) > most && install(3) > most {
			t.Errorf("an install of %d objects took more than %d requests", objects, most)
		}
	}
}
