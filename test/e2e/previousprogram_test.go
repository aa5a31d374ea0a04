package e2e

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// previousProgram returns the operator of the previous version, which only "make
// test-previous" builds, for example in the nightly workflow. Other tests restore
// the states that the tests of this file write: see testdata/previous/README.md.
func previousProgram(t *testing.T) string {
	t.Helper()
	program := os.Getenv("CHARTWRIGHT_PREVIOUS")
	if program == "" {
		t.Skip("part of make check-long (test-previous)")
	}
	return program
}

func (s previousState) makeNote(name, text string) *unstructured.Unstructured {
	return harness.MakeCR(s.note, name).Set("text", text).Obj()
}

// hold rolls a release back from its second revision to its first.
func (s previousState) hold(name string) {
	s.T().Helper()
	s.Annotate(s.makeNote(name, ""), "rollback-to", "1")
	s.WaitRevision(s.makeNote(name, ""), 3)
}

// store writes the state to its file.
func (s previousState) store() {
	s.T().Helper()
	ours := func(object *unstructured.Unstructured) bool {
		labels := object.GetLabels()
		return object.GroupVersionKind().Group == s.note.Group || labels["owner"] == "helm" ||
			labels[api.LabelOwnerUID] != "" || labels[api.LabelHookOwnerUID] != ""
	}
	s.Store(previousFile(s.Namespace+".yaml"), ours, s.note.GroupVersionKind, s.task.GroupVersionKind,
		schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"},
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"})
}

// The previous version creates the state previous.
func TestPreviousVersion_CreateState(t *testing.T) {
	t.Parallel()
	program := previousProgram(t)
	s := newPreviousState(t, previous)
	operator := s.newOperator(program).Start()
	task := func(name string) *unstructured.Unstructured {
		return harness.MakeCR(s.task, name).Set("text", "one").Obj()
	}
	crs := []*unstructured.Unstructured{s.makeNote("deployed", "one"), s.makeNote("several", "one"), s.makeNote("held", "one"), task("hooked"), task("failed")}
	s.Create(crs...)
	s.WaitReady(crs...)
	for _, name := range []string{"several", "held"} {
		s.SetSpec(s.makeNote(name, "two"))
		s.WaitRevision(s.makeNote(name, ""), 2)
	}
	s.SetSpec(s.makeNote("several", "three"))
	s.WaitRevision(s.makeNote("several", ""), 3)
	s.hold("held")
	s.SetSpec(s.failing())
	s.WaitCondition(s.failing(), "Ready", metav1.ConditionFalse, "UpgradeFailed")
	operator.Stop()
	for name, revisions := range previousReleases {
		s.ExpectRevisions(name, revisions)
	}
	s.store()
	if err := os.WriteFile(previousFile("version"), []byte(operator.Version()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An upgrade, a downgrade and another upgrade create no revision, and end no hold.
// The previous version writes no record of the current version unless it upgrades the
// release.
func TestPreviousVersion_DowngradeChangesNothing(t *testing.T) {
	t.Parallel()
	program := previousProgram(t)
	s := newPreviousState(t, downgraded)
	before := s.newOperator(program).Start()
	for _, name := range []string{"signed", "held", "held-new"} {
		s.Create(s.makeNote(name, "one"))
	}
	for _, name := range []string{"held", "held-new"} {
		s.WaitReady(s.makeNote(name, ""))
		s.SetSpec(s.makeNote(name, "two"))
		s.WaitRevision(s.makeNote(name, ""), 2)
	}
	s.hold("held")
	s.WaitReady(s.makeNote("signed", ""))
	before.Stop()

	current := s.newOperator("")
	audit := s.Audit(current.User())
	current.Start()
	s.waitReconciled(3)
	s.WaitReady(s.makeNote("signed", ""))
	s.expectOnlyReports(audit, "")
	s.expectHeld("held")
	s.hold("held-new")
	s.Create(s.makeNote("edited", "one"))
	s.WaitReady(s.makeNote("edited", ""))
	current.Stop()
	records := func() (all []corev1.Secret) {
		for _, name := range []string{"signed", "held", "held-new"} {
			all = append(all, s.Records(name)...)
		}
		return all
	}
	signed := records()

	after := s.newOperator(program)
	audit = s.Audit(after.User())
	after.Start()
	s.waitReconciled(4)
	s.SetSpec(s.makeNote("edited", "two"))
	s.WaitRevision(s.makeNote("edited", ""), 2)
	s.expectHeld("held")
	s.expectHeld("held-new")
	after.Stop()
	if diff := cmp.Diff(signed, records()); diff != "" {
		t.Errorf("the previous version changed records:\n%s", diff)
	}
	s.expectOnlyReports(audit, "edited")
	for name, revisions := range downgradedReleases {
		s.ExpectRevisions(name, revisions)
	}
	s.store()
	s.expectKeptAfterDowngrade(nil)
}

// During a rolling update, the standby of the other version writes nothing but the
// signing key. When it becomes the leader, it creates no revision.
func TestPreviousVersion_ReplicasOfTwoVersions(t *testing.T) {
	t.Parallel()
	program := previousProgram(t)
	for name, test := range map[string]struct {
		leader, standby string
	}{
		"upgrade":   {leader: program},
		"downgrade": {standby: program},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := harness.New(t)
			r := newReplicas(t, env, harness.Options{Program: test.leader}, harness.Options{Program: test.standby})
			leader, standby := env.Audit(r.leader.User()), env.Audit(r.standby.User())
			for _, name := range []string{"web", "held"} {
				env.Create(harness.MakeCR(r.kind, name).Set("message", "one").Obj())
			}
			r.waitInstalled(2)
			held := harness.MakeCR(r.kind, "held").Set("message", "two").Obj()
			env.SetSpec(held)
			env.WaitRevision(held, 2)
			env.Annotate(held, "rollback-to", "1")
			env.WaitRevision(held, 3)
			for _, request := range standby.Requests() {
				if request.ObjectRef.Name != harness.SigningKey(env.Namespace) {
					t.Errorf("the standby requested %s", request)
				}
			}
			env.Wait("the standby to read the lease", func(context.Context) error {
				_, leases := standby.WatchesAndLeases()
				if len(leases) == 0 {
					return errors.New("no request yet")
				}
				for _, request := range leases {
					if request.Verb != "get" {
						t.Errorf("the standby requested %s", request)
					}
				}
				return nil
			})

			written := len(leader.Writes(""))
			r.leader.Stop()
			env.Wait("the standby to become the leader", func(context.Context) error {
				_, leases := standby.WatchesAndLeases()
				if !slices.ContainsFunc(leases, func(r harness.Request) bool { return r.Write() }) {
					return errors.New("it did not write the lease")
				}
				return nil
			})
			// This release is installed after the reconciliation of the others has begun.
			late := harness.MakeCR(r.kind, "late").Obj()
			env.Create(late)
			env.WaitReady(late)
			r.standby.Stop()
			env.ExpectRevisions("web", "1 deployed")
			env.ExpectRevisions("held", "1 superseded, 2 superseded, 3 deployed")
			for _, request := range standby.Writes("late") {
				key := request.ObjectRef.Name == harness.SigningKey(env.Namespace)
				if request.ObjectRef.Subresource != "status" && request.ObjectRef.Resource != "events" && !key {
					t.Errorf("the new leader wrote %s", request)
				}
			}
			if all := leader.Writes(""); len(all) > written {
				for _, request := range all[written:] {
					// The event that the leadership has ended is sent if the process has time for it.
					if request.ObjectRef.Resource != "events" {
						t.Errorf("the previous leader wrote %s", request)
					}
				}
			}
		})
	}
}

// TestPreviousVersion_ApprovalWaits: an approval that waits in the previous version waits in the
// current one, too, and the other way round. Nothing is changed before it is given.
func TestPreviousVersion_ApprovalWaits(t *testing.T) {
	t.Parallel()
	program := previousProgram(t)
	env := harness.New(t)
	l := losses{env, env.NewKind("Losses")}
	env.InstallCRD(l.kind)
	entry := harness.MakeEntry(l.kind, harness.Chart("losses"))
	maps.Copy(entry, lossesAllowed)
	watches := env.Watches(entry)
	start := func(program string) *harness.Operator {
		return env.NewOperator(harness.Options{Program: program, Watches: watches, Account: env.NewAccount()}).Start()
	}
	operator := start(program)
	cr := l.cr("web", map[string]any{"claims": []any{"a"}})
	env.Create(cr)
	env.WaitReady(cr)
	env.SetSpec(l.cr("web", map[string]any{"message": "two"}))
	waitApproval(env, cr, "delete PersistentVolumeClaim")
	claim := env.Get(harness.Object("v1", "PersistentVolumeClaim", "web-a"))
	for _, next := range []string{"", program, ""} {
		operator.Stop()
		operator = start(next)
		audit := env.Audit(operator.User())
		fenceOf(env, l.kind)
		waitApproval(env, cr, "delete PersistentVolumeClaim")
		expectUnwritten(t, audit, "web")
		env.ExpectRevisions("web", "1 deployed")
		if live := env.Get(claim); live.GetUID() != claim.GetUID() || live.GetDeletionTimestamp() != nil {
			t.Errorf("the claim has the metadata %v", live.Object["metadata"])
		}
	}
	approve(env, cr, "delete PersistentVolumeClaim")
	env.WaitGone(claim)
	env.ExpectRevisions("web", "1 superseded, 2 deployed")
}
