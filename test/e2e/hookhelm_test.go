package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// A chart with hooks of all phases is installed, changed and uninstalled twice:
// by the helm CLI and by the operator. Both create and delete the same objects
// in the same order if the watches entry keeps the objects of hooks.
func TestHooks_RunAsWithHelmCLI(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(phasesKind)
	chart := harness.Chart("phases")
	cr := func(message string) harness.CR { return harness.MakeCR(kind, "ours").Set("message", message) }
	served := cr("one").Obj()
	const admin = "kubernetes-admin"
	for _, stage := range []struct {
		name string
		cli  []string
		// fails reports whether helm exits with an error.
		fails   bool
		request func()
		wait    func()
	}{
		{
			name: "install", cli: []string{"install", "cli", chart, "--set", "message=one"},
			request: func() { env.Create(served) },
			wait:    func() { env.WaitRevision(served, 1) },
		},
		{
			name: "upgrade", cli: []string{"upgrade", "cli", chart, "--set", "message=two"},
			request: func() { env.SetSpec(cr("two").Obj()) },
			wait:    func() { env.WaitRevision(served, 2) },
		},
		{
			name: "test", cli: []string{"test", "cli"},
			request: func() { env.Annotate(served, "test", "1") },
			wait:    func() { env.WaitCondition(served, "Tested", metav1.ConditionTrue, "TestsPassed") },
		},
		{
			name: "rollback", cli: []string{"rollback", "cli", "1"},
			request: func() { env.Annotate(served, "rollback-to", "1") },
			wait:    func() { waitHeld(env, served, 3, 1) },
		},
		{
			name: "upgrade with failing hook", fails: true,
			cli: []string{"upgrade", "cli", chart, "--set", "message=three", "--set", "fail=pre-upgrade"},
			request: func() {
				env.SetSpec(cr("three").Set("fail", "pre-upgrade").Obj())
				env.Wait("the upgrade to begin", func(context.Context) error {
					if records := env.Records("ours"); len(records) != 4 {
						return fmt.Errorf("%d records exist", len(records))
					}
					return nil
				})
				// The failed upgrade should not be retried.
				env.Annotate(served, "pause", "true")
			},
			wait: func() { env.WaitRevisions("ours", "1 superseded, 2 superseded, 3 deployed, 4 failed") },
		},
		{
			name: "uninstall", cli: []string{"uninstall", "cli"},
			request: func() { env.Delete(served) },
			wait:    func() { env.WaitGone(served) },
		},
	} {
		audit, own := env.Audit(admin), env.Audit(harness.SharedUser())
		stage.request()
		if output, err := env.TryHelm(stage.cli...); (err != nil) != stage.fails {
			t.Fatalf("helm %v: %v\n%s", stage.cli, err, output)
		}
		stage.wait()
		byHelm := hookSteps(audit, "cli")
		if diff := cmp.Diff(byHelm, hookSteps(own, "ours")); diff != "" {
			t.Errorf("%s (-helm +operator):\n%s", stage.name, diff)
		}
		if len(byHelm) < 5 {
			t.Errorf("%s: helm did only %v", stage.name, byHelm)
		}
	}
	if diff := cmp.Diff(leftOf(env, "cli"), leftOf(env, "ours")); diff != "" {
		t.Errorf("remaining objects differ (-helm +operator):\n%s", diff)
	}
}

// hookSteps returns the objects of a release that were created and deleted, in
// order, without failed requests.
func hookSteps(audit *harness.Audit, release string) []string {
	var found []string
	for _, write := range audit.Writes("") {
		name, is := strings.CutPrefix(write.ObjectRef.Name, release+"-")
		if !is || write.ResponseStatus.Code >= 400 || strings.Contains(write.RequestURI, "dryRun") {
			continue
		}
		verb := write.Verb
		if name == "main" && verb != "delete" {
			verb = "bring"
		}
		found = append(found, fmt.Sprint(verb, " ", write.ObjectRef.Resource, " ", name))
	}
	return found
}

// leftOf returns the remaining objects of a release.
func leftOf(env *harness.Env, release string) []string {
	env.T().Helper()
	var found []string
	for _, kind := range []string{"configmaps", "jobs"} {
		for name := range strings.FieldsSeq(env.Kubectl("get", kind, "-o", "name")) {
			_, name, _ = strings.Cut(name, "/")
			if name, is := strings.CutPrefix(name, release+"-"); is {
				found = append(found, kind+" "+name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// Hooks that never finish must not delay other custom resources.
func TestHooks_NeverEndingDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	const stuck = 20
	env := harness.New(t)
	kind := env.NewKind("Hooks")
	env.InstallCRD(kind)
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("hooks"))),
		Account: env.NewAccount(),
		Args:    []string{"--max-concurrent-actions", "4"},
	}).Start()
	never := newNodeLabel(env)
	var all []*unstructured.Unstructured
	for i := range stuck {
		all = append(all, harness.MakeCR(kind, fmt.Sprintf("stuck-%d", i)).Set("hooks.pre-install.node", never).Obj())
	}
	env.Create(all...)
	for _, cr := range all {
		waitRunningHook(env, cr.GetName()+"-pre-install")
	}
	good := ownedRelease{t, env, kind, harness.MakeCR(kind, "good").Set("message", "one").Obj(), "good"}
	env.Create(good.cr)
	good.follows(1, "one")
	good.edit("two", nil)
	good.follows(2, "two")

	// The release is reported as being installed, and the process can still be
	// stopped.
	status := env.WaitStatus(all[0], "installing", func(status api.Status) error {
		if ready := harness.Condition(status, "Ready"); ready == nil || ready.Reason != "Installing" {
			return fmt.Errorf("the status does not report it")
		}
		return nil
	})
	condition(t, status, "Reconciling")
	operator.Stop()
	for _, cr := range all {
		env.ExpectRevisions(cr.GetName(), "1 failed")
	}
	operator.Start()
	labelNode(env, never)
	env.WaitReady(all...)
}
