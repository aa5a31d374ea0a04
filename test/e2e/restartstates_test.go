package e2e

import (
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// restartState is a state that the next process finds and must continue.
type restartState struct {
	name    string
	kind    harness.Kind
	prepare prepareState
}

// prepareState causes a state. It returns what happens while no operator runs, or nil, and
// the check of the next process.
type prepareState func(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env))

func TestRestart_StoppedContinuesFromEachState(t *testing.T) {
	t.Parallel()
	restartFromEachState(t, (*harness.Operator).Stop, "1 failed")
}

func TestRestart_KilledContinuesFromEachState(t *testing.T) {
	t.Parallel()
	restartFromEachState(t, (*harness.Operator).Kill, "1 pending-install")
}

// restartFromEachState ends an operator, which leaves an install in progress with the
// given revisions, and starts it again. The states share the operator and its restart.
func restartFromEachState(t *testing.T, end func(*harness.Operator), installLeft string) {
	t.Helper()
	env := harness.New(t)
	hooks, within2s, defining := env.NewKind("Hooks"), env.NewKind("Short"), env.NewKind("Defining")
	plain, once, rollsBack := env.NewKind("Plain"), env.NewKind("Once"), env.NewKind("RollsBack")
	for _, kind := range []harness.Kind{hooks, within2s, defining, plain, once, rollsBack} {
		env.InstallCRD(kind)
	}
	ofDefining := harness.MakeEntry(defining, harness.Chart("defining"))
	maps.Copy(ofDefining, definingAllowed)
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(hooks, harness.Chart("hooks")), harness.MakeEntry(within2s, harness.Chart("hooks")).Timeout("2s"), ofDefining,
			harness.MakeEntry(plain, harness.Chart("plain")), harness.MakeEntry(once, harness.Chart("once")),
			harness.MakeEntry(rollsBack, harness.Chart("hooks")).With("onFailure", "Rollback").With("retries", 2)),
		AllNamespaces: true, Args: []string{"--max-concurrent-reconciles=16"},
	}).Start()
	states := []restartState{
		{"orphan", hooks, orphanedRelease},
		{"waits", within2s, deletionThatWaits},
		{"nameless", hooks, deletionWithoutRecords},
		{"paused", hooks, pausedRelease},
		{"tested", hooks, testedRelease},
		{"aborted", hooks, abortedUpgrade},
		{"helm-test-passes", hooks, testedByHelm("helm-test-passes", false)},
		{"helm-test-fails", hooks, testedByHelm("helm-test-fails", true)},
		{"kept", defining, keptClaim},
		{"rolled-back", rollsBack, rolledBackUpgrade(watchTries(env, "rolled-back-post-upgrade"))},
		{"verified", plain, verifiedRelease(func() *harness.Audit { return env.Audit(operator.User()) })},
		{"status-removed", plain, removedStatus},
		{"edited", plain, missedEdit},
		{"deleted", plain, missedDeletion},
		{"created", plain, missedCreation},
		{"install", hooks, interruptedInstall(installLeft)},
		{"edited-install", hooks, editedInstall},
		{"deleted-install", hooks, deletedInstall},
		{"upgrade", hooks, interruptedUpgrade},
		{"uninstall", hooks, interruptedUninstall},
		{"orphaned", plain, orphanedWithoutFinalizer},
		{"one-without-owner", plain, oneWithoutOwner},
		{"job-ran", once, jobThatRan(watchTries(env, "job-ran-migrate"))},
		{"job-finishes", once, jobThatFinishes(watchTries(env, "job-finishes-migrate"))},
		{"job-deleted", once, deletedJob(watchTries(env, "job-deleted-migrate"))},
		{"job-failed", once, failedJob(watchTries(env, "job-failed-migrate"))},
	}
	meanwhile, checks := make([]func(*harness.Env), len(states)), make([]func(*harness.Env), len(states))
	each := func(stage string, do func(env *harness.Env, i int)) {
		t.Run(stage, func(t *testing.T) {
			for i, state := range states {
				t.Run(state.name, func(t *testing.T) { do(env.For(t), i) })
			}
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	each("before the restart", func(env *harness.Env, i int) {
		meanwhile[i], checks[i] = states[i].prepare(env, states[i].kind)
	})
	end(operator)
	for _, do := range meanwhile {
		if do != nil {
			do(env)
		}
	}
	operator.Start()
	for _, kind := range []harness.Kind{hooks, plain, once, rollsBack} {
		fenceOf(env, kind)
	}
	each("after the restart", func(env *harness.Env, i int) { checks[i](env) })
}

// The next custom resource adopts the release.
func orphanedRelease(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	web := oneRevision(env, kind, "orphan")
	before := env.Get(harness.ConfigMap("orphan")).GetUID()
	web.annotate("deletion-policy", "orphan")
	env.Delete(web.cr)
	env.WaitGone(web.cr)
	return nil, func(env *harness.Env) {
		again := oneRevision(env, kind, "orphan")
		again.follows(1, "one")
		env.ExpectRevisions("orphan", "1 deployed")
		if live := env.Get(harness.ConfigMap("orphan")); live.GetUID() != before {
			env.T().Error("the ConfigMap was replaced")
		}
	}
}

func deletionThatWaits(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	web := oneRevision(env, kind, "waits")
	web.annotate("uninstall-wait", "true")
	env.Patch(harness.ConfigMap("waits"), holdingFinalizer)
	env.Delete(web.cr)
	web.waitsForObjects()
	return nil, func(env *harness.Env) {
		web.in(env).waitsForObjects()
		removeFinalizers(env, "waits")
		env.WaitGone(web.cr, harness.ConfigMap("waits"))
	}
}

// No record lists the objects of the release, and the new process never observed it.
// With delete hooks, objects have no ownerReference, so the garbage collector does not
// delete them.
func deletionWithoutRecords(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	web, kept := oneRevision(env, kind, "nameless"), oneRevision(env, kind, "nameless-kept")
	kept.annotate("deletion-policy", "orphan")
	meanwhile = func(env *harness.Env) {
		env.Kubectl("delete", "secret", "--selector=owner=helm,name in (nameless,nameless-kept)")
		env.Delete(web.cr, kept.cr)
	}
	return meanwhile, func(env *harness.Env) {
		env.WaitGone(web.cr, harness.ConfigMap("nameless"), kept.cr)
		expectData(env.T(), env, "nameless-kept", "message", "one")
	}
}

func pausedRelease(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	web := oneRevision(env, kind, "paused")
	web.annotate("pause", "true")
	web.paused(metav1.ConditionTrue)
	// Wait for the event, because the process is killed next.
	env.WaitEvent(web.cr, "Paused")
	meanwhile = func(env *harness.Env) {
		web.in(env).edit("two", nil)
		env.Patch(harness.ConfigMap("paused"), messageChanged)
	}
	return meanwhile, func(env *harness.Env) {
		web := web.in(env)
		web.paused(metav1.ConditionFalse)
		fenceOf(env, kind)
		expectData(env.T(), env, "paused", "message", "theirs")
		env.ExpectRevisions("paused", "1 deployed")
		if n := env.CountEvents(web.cr, "Paused"); n != 1 {
			env.T().Errorf("%d events report the pause", n)
		}
		env.Unannotate(web.cr, "pause")
		web.follows(2, "two")
	}
}

// The hold after failed attempts outlives the process, and ends when the spec is edited.
func rolledBackUpgrade(tries func() int) prepareState {
	return func(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
		web := oneRevision(env, kind, "rolled-back")
		web.edit("two", failing())
		web.held(3, 1, "one")
		return nil, func(env *harness.Env) {
			web := web.in(env)
			web.held(3, 1, "one")
			if n := tries(); n != 2 {
				env.T().Errorf("%d attempts, want 2", n)
			}
			web.edit("three", nil)
			web.follows(4, "three")
		}
	}
}

// One request runs the chart's tests once.
func testedRelease(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	web := oneRevision(env, kind, "tested")
	web.edit("two", map[string]any{"test": map[string]any{}})
	web.follows(2, "two")
	web.annotate("test", "1")
	env.WaitCondition(web.cr, "Tested", metav1.ConditionTrue, "TestsPassed")
	first := expectHook(env.T(), env, "tested-test", "two")
	return nil, func(env *harness.Env) {
		env.WaitCondition(web.cr, "Tested", metav1.ConditionTrue, "TestsPassed")
		if expectHook(env.T(), env, "tested-test", "two") != first {
			env.T().Error("the tests ran twice for one request")
		}
	}
}

// An abort prevents retries of the action.
func abortedUpgrade(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	web := oneRevision(env, kind, "aborted")
	web.edit("two", map[string]any{"pre-upgrade": map[string]any{"node": newNodeLabel(env)}})
	setHookRunning(env, "aborted-pre-upgrade")
	web.annotate("abort", "2")
	env.WaitRevisions("aborted", "1 deployed, 2 failed")
	env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "Aborted")
	env.WaitGone(harness.Job("aborted-pre-upgrade"))
	return nil, func(env *harness.Env) {
		env.ExpectRevisions("aborted", "1 deployed, 2 failed")
		env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "Aborted")
		env.Unannotate(web.cr, "abort")
		setHookRunning(env, "aborted-pre-upgrade")
		env.ExpectRevisions("aborted", "1 deployed, 2 pending-upgrade")
		web.in(env).annotate("abort", "2")
		env.WaitRevisions("aborted", "1 deployed, 2 failed")
	}
}

// The process has nothing to do after "helm test", which removes the annotations of
// the release record.
func testedByHelm(name string, fails bool) prepareState {
	return func(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
		web := oneRevision(env, kind, name)
		web.edit("two", map[string]any{"test": map[string]any{"fail": fails}})
		web.follows(2, "two")
		meanwhile = func(env *harness.Env) {
			if output, err := env.TryHelm("test", name, harness.Timeout); (err != nil) != fails {
				env.T().Fatalf("helm test: %v\n%s", err, output)
			}
		}
		return meanwhile, func(env *harness.Env) {
			waitRestored(env, "sh.helm.release.v1."+name+".v2")
			fenceOf(env, kind)
			env.ExpectRevisions(name, "1 superseded, 2 deployed")
			web := web.in(env)
			web.follows(2, "two")
			// Drift is still corrected, and the next edit is applied.
			env.Patch(harness.ConfigMap(name), messageChanged)
			waitData(env, name, "message", "two")
			web.edit("three", nil)
			web.follows(3, "three")
		}
	}
}

// Operators before this version did not remove the ownerReference of a kept object.
func keptClaim(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	// The operator watches claims, because another release has a claim.
	kept, other := harness.MakeCR(kind, "kept").Set("claim", true).Obj(), harness.MakeCR(kind, "other").Set("claim", true).Obj()
	env.Create(kept, other)
	env.WaitReady(kept, other)
	keepClaim(env, "kept")
	uid := env.Get(claimNamed("kept")).GetUID()
	env.SetSpec(harness.MakeCR(kind, "kept").Set("claim", false).Obj())
	env.WaitRevision(kept, 2)
	expectReleased(env, "kept", uid)
	meanwhile = func(env *harness.Env) {
		owner := env.Get(kept)
		env.Patch(claimNamed("kept"), fmt.Sprintf(`[
			{"op": "add", "path": "/metadata/labels/chartwright.dev~1owner-uid", "value": %q},
			{"op": "add", "path": "/metadata/labels/chartwright.dev~1operator", "value": %q},
			{"op": "add", "path": "/metadata/ownerReferences", "value": [{"apiVersion": %q, "kind": %q, "name": "kept", "uid": %q}]}
		]`, owner.GetUID(), env.Namespace, owner.GetAPIVersion(), owner.GetKind(), owner.GetUID()))
	}
	return meanwhile, func(env *harness.Env) {
		deleteAndCollect(env, kept)
		expectReleased(env, "kept", uid)
	}
}
