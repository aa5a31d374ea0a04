package e2e

import (
	"context"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// States of restartFromEachState with an action in progress, or with changes
// that the operator does not observe.

// A request to verify that was processed is not processed again.
func verifiedRelease(audit func() *harness.Audit) prepareState {
	return func(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
		cr := harness.MakeCR(kind, "verified").Obj()
		env.Create(cr)
		env.WaitReady(cr)
		requestVerification(env, cr)
		fenceOf(env, kind)
		var next *harness.Audit
		return func(*harness.Env) { next = audit().About("verified") }, func(env *harness.Env) {
			if writes := next.Writes(""); len(writes) > 0 {
				env.T().Errorf("the operator wrote %v", writes)
			}
			env.ExpectRevisions("verified", "1 deployed")
		}
	}
}

// Foreign writes to the status do not change the release, and the next reconciliation
// corrects the status.
func removedStatus(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	cr := harness.MakeCR(kind, "status-removed").Obj()
	env.Create(cr)
	env.WaitReady(cr)
	before := env.Get(harness.ConfigMap("status-removed-0"))
	meanwhile = func(env *harness.Env) {
		env.Kubectl("patch", kind.Resource(), "status-removed", "--subresource=status", "--type=json", "-p", `[{"op": "remove", "path": "/status"}]`)
	}
	return meanwhile, func(env *harness.Env) {
		env.WaitRevision(cr, 1)
		env.ExpectRevisions("status-removed", "1 deployed")
		if now := env.Get(harness.ConfigMap("status-removed-0")); now.GetResourceVersion() != before.GetResourceVersion() {
			env.T().Error("the ConfigMap was changed")
		}
	}
}

func missedEdit(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	cr := harness.MakeCR(kind, "edited").Obj()
	env.Create(cr)
	env.WaitReady(cr)
	return func(env *harness.Env) { env.SetSpec(harness.MakeCR(kind, "edited").Set("message", "two").Obj()) }, func(env *harness.Env) {
		env.WaitRevision(cr, 2)
		env.ExpectRevisions("edited", "1 superseded, 2 deployed")
	}
}

func missedDeletion(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	cr := harness.MakeCR(kind, "deleted").Obj()
	env.Create(cr)
	env.WaitReady(cr)
	return func(env *harness.Env) { env.Delete(cr) }, func(env *harness.Env) {
		env.WaitGone(cr)
		env.ExpectRevisions("deleted", "")
	}
}

func missedCreation(_ *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	cr := harness.MakeCR(kind, "created").Obj()
	return func(env *harness.Env) { env.Create(cr) }, func(env *harness.Env) { env.WaitRevision(cr, 1) }
}

// An install is interrupted while its pre-install hook waits for a node.
func interruptedInstall(left string) prepareState {
	return func(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
		node := newNodeLabel(env) + "-install"
		cr := harness.MakeCR(kind, "install").Set("hooks.pre-install.node", node).Obj()
		env.Create(cr)
		first := waitRunningHook(env, "install-pre-install")
		env.ExpectRevisions("install", "1 pending-install")
		env.WaitCondition(cr, "Ready", metav1.ConditionUnknown, "Installing")
		meanwhile = func(env *harness.Env) {
			env.ExpectRevisions("install", left)
			history := env.Helm("history", "install")
			if reason := "the operator is shutting down"; strings.Contains(left, "failed") && !strings.Contains(history, reason) {
				env.T().Errorf("helm history does not contain %q:\n%s", reason, history)
			}
		}
		return meanwhile, func(env *harness.Env) {
			waitRecreated(env, "install-pre-install", first)
			labelNode(env, node)
			env.WaitRevision(cr, 1)
			env.WaitRevisions("install", "1 deployed")
			env.Get(harness.ConfigMap("install"))
		}
	}
}

func editedInstall(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	cr := harness.MakeCR(kind, "edited-install").Set("hooks.pre-install.node", newNodeLabel(env)).Obj()
	env.Create(cr)
	waitRunningHook(env, "edited-install-pre-install")
	meanwhile = func(env *harness.Env) {
		env.SetSpec(harness.MakeCR(kind, "edited-install").Set("message", "no hook").Obj())
	}
	return meanwhile, func(env *harness.Env) {
		env.WaitReady(cr)
		expectData(env.T(), env, "edited-install", "message", "no hook")
	}
}

func deletedInstall(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	cr := harness.MakeCR(kind, "deleted-install").Set("hooks.pre-install.node", newNodeLabel(env)).Obj()
	env.Create(cr)
	waitRunningHook(env, "deleted-install-pre-install")
	return func(env *harness.Env) { env.Delete(cr) }, func(env *harness.Env) {
		env.WaitGone(cr)
		env.ExpectRevisions("deleted-install", "")
	}
}

// An upgrade is interrupted while its post-upgrade hook waits for a node.
func interruptedUpgrade(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	node := newNodeLabel(env) + "-upgrade"
	cr := harness.MakeCR(kind, "upgrade").Obj()
	env.Create(cr)
	env.WaitReady(cr)
	env.SetSpec(harness.MakeCR(kind, "upgrade").Set("message", "two").Set("hooks.post-upgrade.node", node).Obj())
	waitRunningHook(env, "upgrade-post-upgrade")
	return nil, func(env *harness.Env) {
		labelNode(env, node)
		env.WaitReady(cr)
		expectData(env.T(), env, "upgrade", "message", "two")
		// The interrupted attempt has no revision of its own.
		env.WaitRevisions("upgrade", "1 superseded, 2 deployed")
	}
}

func interruptedUninstall(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	node := newNodeLabel(env) + "-uninstall"
	cr := harness.MakeCR(kind, "uninstall").Set("hooks.pre-delete.node", node).Obj()
	env.Create(cr)
	env.WaitReady(cr)
	env.Delete(cr)
	waitRunningHook(env, "uninstall-pre-delete")
	// The objects still exist while the hook runs.
	env.Get(harness.ConfigMap("uninstall"))
	return nil, func(env *harness.Env) {
		labelNode(env, node)
		env.WaitGone(cr, harness.ConfigMap("uninstall"))
		env.ExpectRevisions("uninstall", "")
	}
}

// The garbage collector removes the finalizer orphan before the operator starts.
func orphanedWithoutFinalizer(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	cr := harness.MakeCR(kind, "orphaned").Set("count", 2).Obj()
	env.Create(cr)
	env.WaitReady(cr)
	env.SetSpec(harness.MakeCR(kind, "orphaned").Set("count", 2).Set("message", "two").Obj())
	env.WaitRevision(cr, 2)
	meanwhile = func(env *harness.Env) {
		deleteOrphaning(env, kind, "orphaned")
		waitCollected(env, cr)
	}
	return meanwhile, func(env *harness.Env) {
		env.WaitGone(cr)
		fenceOf(env, kind)
		env.ExpectRevisions("orphaned", "1 superseded, 2 deployed")
		expectLeft(env, "orphaned-0", "orphaned-1")
	}
}

// A single object without its ownerReference does not mean that the deletion orphans the
// release.
func oneWithoutOwner(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
	cr := harness.MakeCR(kind, "one-without-owner").Set("count", 2).Obj()
	env.Create(cr)
	env.WaitReady(cr)
	meanwhile = func(env *harness.Env) {
		env.Patch(harness.ConfigMap("one-without-owner-0"), `[{"op": "remove", "path": "/metadata/ownerReferences"}]`)
		env.Delete(cr)
	}
	return meanwhile, func(env *harness.Env) {
		env.WaitGone(cr, harness.ConfigMap("one-without-owner-0"), harness.ConfigMap("one-without-owner-1"))
		env.ExpectRevisions("one-without-owner", "")
	}
}

// For states with Jobs, runs returns how often the Job has run.

// A Job with a TTL that finished does not run again: the next process reads that from the
// record.
func jobThatRan(runs func() int) prepareState {
	return func(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
		cr := harness.MakeCR(kind, "job-ran").Obj()
		env.Create(cr)
		env.WaitRevision(cr, 1)
		env.WaitGone(ttlJob("job-ran"))
		env.WaitReady(cr)
		env.Wait("the record to contain the finished Job", func(context.Context) error {
			for _, record := range env.Records("job-ran") {
				if record.Labels["status"] == "deployed" && strings.Contains(record.Annotations["chartwright.dev/inventory"], env.Namespace+"/job-ran-migrate") {
					return nil
				}
			}
			return errors.New("not yet")
		})
		return nil, func(env *harness.Env) {
			staysReady(env, cr, runs, 1)
			requestVerification(env, cr)
			staysReady(env, cr, runs, 1)
			if n := env.CountEvents(cr, "DriftCorrected"); n > 0 {
				env.T().Errorf("%d events DriftCorrected", n)
			}
		}
	}
}

// The operator did not observe that the Job finished, but its TTL may have deleted it.
func jobThatFinishes(runs func() int) prepareState {
	return func(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
		node := newNodeLabel(env) + "-job"
		cr := harness.MakeCR(kind, "job-finishes").Set("node", node).Obj()
		env.Create(cr)
		env.WaitRevision(cr, 1)
		meanwhile = func(env *harness.Env) {
			labelNode(env, node)
			env.WaitGone(ttlJob("job-finishes"))
		}
		return meanwhile, func(env *harness.Env) {
			env.WaitReady(cr)
			staysReady(env, cr, runs, 1)
		}
	}
}

// A Job that was deleted before it finished is recreated, also if the operator did not
// observe the deletion, because the TTL cannot have elapsed.
func deletedJob(runs func() int) prepareState {
	return func(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
		cr := harness.MakeCR(kind, "job-deleted").Set("node", newNodeLabel(env)).Set("ttl", 3600).Obj()
		env.Create(cr)
		env.WaitRevision(cr, 1)
		env.Kubectl("delete", "job", "job-deleted-migrate")
		waitTries(env, runs, 2)
		return func(env *harness.Env) { env.Kubectl("delete", "job", "job-deleted-migrate") },
			func(env *harness.Env) { waitTries(env, runs, 3) }
	}
}

func failedJob(runs func() int) prepareState {
	return func(env *harness.Env, kind harness.Kind) (meanwhile, check func(*harness.Env)) {
		cr := harness.MakeCR(kind, "job-failed").Set("fail", true).Obj()
		env.Create(cr)
		env.WaitCondition(cr, "Deployed", metav1.ConditionTrue, "InstallSuccessful")
		env.WaitGone(ttlJob("job-failed"))
		env.WaitCondition(cr, "Ready", metav1.ConditionFalse, "ObjectFailed")
		return nil, func(env *harness.Env) {
			if ready := harness.Condition(env.Status(cr), "Ready"); ready.Reason != "ObjectFailed" || runs() != 1 {
				env.T().Errorf("%+v, and %d runs", ready, runs())
			}
		}
	}
}
