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

// A chart with hooks of all phases goes through its life twice, by the helm CLI
// and by the operator. What is created and deleted, and in what order, is the same
// if the watches entry keeps the objects of hooks.
func TestHooksRunAsUnderTheCLI(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serve(env, "Phases", "phases", keepsHookObjects)
	chart := harness.Chart("phases")
	cr := func(message string) harness.CR { return harness.MakeCR(kind, "ours").Set("message", message) }
	ours := cr("one").Obj()
	const admin = "kubernetes-admin"
	for _, stage := range []struct {
		name string
		cli  []string
		// fails: helm says so.
		fails bool
		ask   func()
		wait  func()
	}{
		{
			name: "install", cli: []string{"install", "cli", chart, "--set", "message=one"},
			ask:  func() { env.Create(ours) },
			wait: func() { env.WaitRevision(ours, 1) },
		},
		{
			name: "upgrade", cli: []string{"upgrade", "cli", chart, "--set", "message=two"},
			ask:  func() { env.SetSpec(cr("two").Obj()) },
			wait: func() { env.WaitRevision(ours, 2) },
		},
		{
			name: "test", cli: []string{"test", "cli"},
			ask:  func() { env.Annotate(ours, "test", "1") },
			wait: func() { env.WaitCondition(ours, "Tested", metav1.ConditionTrue, "TestsPassed") },
		},
		{
			name: "rollback", cli: []string{"rollback", "cli", "1"},
			ask:  func() { env.Annotate(ours, "rollback-to", "1") },
			wait: func() { waitHeld(env, ours, 3, 1) },
		},
		{
			name: "upgrade whose hook fails", fails: true,
			cli: []string{"upgrade", "cli", chart, "--set", "message=three", "--set", "fail=pre-upgrade"},
			ask: func() {
				env.SetSpec(cr("three").Set("fail", "pre-upgrade").Obj())
				env.Wait("the upgrade to begin", func(context.Context) error {
					if records := env.Records("ours"); len(records) != 4 {
						return fmt.Errorf("there are %d records", len(records))
					}
					return nil
				})
				// It is not to be tried again.
				env.Annotate(ours, "pause", "true")
			},
			wait: func() { env.WaitRevisions("ours", "1 superseded, 2 superseded, 3 deployed, 4 failed") },
		},
		{
			name: "uninstall", cli: []string{"uninstall", "cli"},
			ask:  func() { env.Delete(ours) },
			wait: func() { env.WaitGone(ours) },
		},
	} {
		audit, own := env.Audit(admin), env.Audit(operator.User())
		stage.ask()
		if output, err := env.TryHelm(stage.cli...); (err != nil) != stage.fails {
			t.Fatalf("helm %v: %v\n%s", stage.cli, err, output)
		}
		stage.wait()
		theirs := hookSteps(audit, "cli")
		if diff := cmp.Diff(theirs, hookSteps(own, "ours")); diff != "" {
			t.Errorf("%s (-helm +operator):\n%s", stage.name, diff)
		}
		if len(theirs) < 5 {
			t.Errorf("%s: helm did just %v", stage.name, theirs)
		}
	}
	if diff := cmp.Diff(leftOf(env, "cli"), leftOf(env, "ours")); diff != "" {
		t.Errorf("left are (-helm +operator):\n%s", diff)
	}
}

// hookSteps tells what was made and deleted of a release, in order, without what
// came to nothing.
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

// leftOf tells what there is of a release.
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

// Hooks that wait must not keep others from being served.
func TestHooksThatNeverEndDelayNobody(t *testing.T) {
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

	// They are told of as what they are, and end with the process.
	status := env.WaitStatus(all[0], "installing", func(status api.Status) error {
		if ready := harness.Condition(status, "Ready"); ready == nil || ready.Reason != "Installing" {
			return fmt.Errorf("it is not")
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
