package status

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

const wanted = "digest-of-the-spec"

// viewOf returns the snapshot of a custom resource at generation 4 with these
// revisions, newest first, after the changes.
func viewOf(statuses []string, changes ...func(*Snapshot)) *Snapshot {
	v := &Snapshot{CR: &unstructured.Unstructured{Object: map[string]any{"kind": "PodSet"}}, Release: releaseOf("web")}
	v.CR.SetName("web")
	v.CR.SetGeneration(4)
	v.Observation = plan.Observation{Finalizer: true, Desired: wanted}
	for i, status := range statuses {
		v.History = append(v.History, release.Record{
			Namespace: "apps", Release: "web", Revision: len(statuses) - i, Status: status,
			Description: release.Description{
				Chart: "podset", ChartVersion: "1.0.0", AppVersion: "9", Description: "done",
				Deployed: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)),
			},
		})
	}
	if len(statuses) > 0 {
		v.Observation.Newest = &plan.Revision{Number: len(statuses), Status: statuses[0], Digest: wanted, Owned: true, WrittenByUs: true}
	}
	for _, change := range changes {
		change(v)
	}
	return v
}

func withFailure(target plan.TargetKey, reason string, stalled bool) func(*Snapshot) {
	return func(v *Snapshot) {
		f := Failure{Failure: plan.Failure{Target: target}, Reason: reason, Message: "because", Stalled: stalled}
		v.Failure, v.Observation.Failure = &f, &f.Failure
	}
}

func beingDeleted(v *Snapshot) { v.Observation.Deleting = true }

func runningStep(step plan.Step) func(*Snapshot) {
	return func(v *Snapshot) { v.Observation.Running = &plan.Running{Step: step} }
}

// conditions returns the conditions of a status as strings: "Ready=True Deployed".
func conditions(s api.Status) []string {
	found := []string{}
	for _, c := range s.Conditions {
		found = append(found, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	return found
}

func TestCompute_Conditions(t *testing.T) {
	deployed := []string{api.StatusDeployed}
	upgraded := []string{api.StatusDeployed, api.StatusSuperseded}
	for _, test := range []struct {
		name string
		v    *Snapshot
		d    plan.Decision
		want []string
	}{
		{"in sync after the install", viewOf(deployed), plan.Decision{State: plan.StateInSync}, []string{"Ready=True Deployed", "Deployed=True InstallSuccessful"}},
		{"in sync after an upgrade", viewOf(upgraded), plan.Decision{State: plan.StateInSync}, []string{"Ready=True Deployed", "Deployed=True UpgradeSuccessful"}},
		{"being installed", viewOf(nil, runningStep(plan.StepInstall)), plan.Decision{State: plan.StateBusy}, []string{"Ready=Unknown Installing", "Reconciling=True Installing", "Deployed=False NotInstalled"}},
		{"being upgraded", viewOf(deployed, runningStep(plan.StepUpgrade)), plan.Decision{State: plan.StateBusy}, []string{"Ready=Unknown Upgrading", "Reconciling=True Upgrading", "Deployed=True InstallSuccessful"}},
		{"being uninstalled", viewOf(deployed, beingDeleted, runningStep(plan.StepUninstall)), plan.Decision{State: plan.StateBusy}, []string{"Ready=False Uninstalling", "Reconciling=True Uninstalling", "Deployed=True InstallSuccessful"}},
		{"being unlocked", viewOf([]string{api.StatusPendingInstall}, runningStep(plan.StepUnlock)), plan.Decision{State: plan.StateBusy}, []string{"Ready=Unknown Interrupted", "Reconciling=True Interrupted", "Deployed=False NotInstalled"}},
		{"being verified", viewOf(deployed, runningStep(plan.StepVerify)), plan.Decision{State: plan.StateBusy}, []string{"Ready=True Deployed", "Deployed=True InstallSuccessful"}},
		{"a failed upgrade", viewOf([]string{api.StatusFailed, api.StatusDeployed}, withFailure(ofSpec, api.ReasonUpgradeFailed, false)), plan.Decision{State: plan.StateFailed, Step: plan.StepWait, After: 1}, []string{"Ready=False UpgradeFailed", "Reconciling=True UpgradeFailed", "Deployed=True InstallSuccessful"}},
		{"a failed upgrade during its retry", viewOf(deployed, withFailure(ofSpec, api.ReasonUpgradeFailed, false), runningStep(plan.StepUpgrade)), plan.Decision{State: plan.StateBusy}, []string{"Ready=False UpgradeFailed", "Reconciling=True UpgradeFailed", "Deployed=True InstallSuccessful"}},
		{"a failure that needs a user", viewOf(deployed, withFailure(ofSpec, api.ReasonInvalidValues, true)), plan.Decision{State: plan.StateFailed, Step: plan.StepWait, After: 1}, []string{"Ready=False InvalidValues", "Stalled=True InvalidValues", "Deployed=True InstallSuccessful"}},
		{"the failure of an older spec", viewOf(deployed, withFailure(plan.TargetKey{Digest: "older"}, api.ReasonInvalidValues, true)), plan.Decision{State: plan.StateInSync}, []string{"Ready=True Deployed", "Deployed=True InstallSuccessful"}},
		{"the failure of an uninstall", viewOf(deployed, beingDeleted, withFailure(plan.TargetKey{Goal: plan.GoalGone}, api.ReasonUninstallFailed, false)), plan.Decision{State: plan.StateDeleting, Step: plan.StepWait, After: 1}, []string{"Ready=False UninstallFailed", "Reconciling=True UninstallFailed", "Deployed=True InstallSuccessful"}},
		{"a failed upgrade, then deleted", viewOf(deployed, beingDeleted, withFailure(ofSpec, api.ReasonUpgradeFailed, false)), plan.Decision{State: plan.StateDeleting, Step: plan.StepUninstall}, []string{"Ready=False Uninstalling", "Reconciling=True Uninstalling", "Deployed=True InstallSuccessful"}},
		{"deleted, uninstalled by another program", viewOf([]string{api.StatusUninstalling}, beingDeleted), plan.Decision{State: plan.StateDeleting, Step: plan.StepWait, After: 1}, []string{"Ready=False Uninstalling", "Reconciling=True Uninstalling", "Deployed=False NotInstalled"}},
		{"uninstalled by another program", viewOf([]string{api.StatusUninstalling}), plan.Decision{State: plan.StateUninstalling, Step: plan.StepWait, After: 1}, []string{"Ready=False Uninstalling", "Reconciling=True Uninstalling", "Deployed=False NotInstalled"}},
		{"a spec that is not an object", viewOf(deployed, func(v *Snapshot) {
			v.Observation.Invalid = &plan.Problem{Reason: api.ReasonInvalidValues, Message: "spec: …"}
		}), plan.Decision{State: plan.StateInvalid}, []string{"Ready=False InvalidValues", "Stalled=True InvalidValues", "Deployed=True InstallSuccessful"}},
		{"no free name", viewOf(nil), plan.Decision{State: plan.StateConflict}, []string{"Ready=False ReleaseNameConflict", "Stalled=True ReleaseNameConflict", "Deployed=False NotInstalled"}},
		{"changed by another program", viewOf([]string{api.StatusPendingUpgrade, api.StatusDeployed}), plan.Decision{State: plan.StateLocked, Step: plan.StepWait, After: 1}, []string{"Ready=Unknown Locked", "Reconciling=True Locked", "Deployed=True InstallSuccessful"}},
		{"other numbers than those of the entry", viewOf(deployed, func(v *Snapshot) { v.History[0].KeptNumbers = "ConfigMap web: data.port" }), plan.Decision{State: plan.StateInSync}, []string{"Ready=True Deployed", "Deployed=True InstallSuccessful", "NumbersKept=True FieldsDiffer"}},
		{"other numbers, and the entry names those of the release", viewOf(deployed, func(v *Snapshot) {
			v.History[0].KeptNumbers, v.NumbersChosen = "ConfigMap web: data.port", true
		}), plan.Decision{State: plan.StateInSync}, []string{"Ready=True Deployed", "Deployed=True InstallSuccessful"}},
		{"a failed install", viewOf([]string{api.StatusFailed}, withFailure(ofSpec, api.ReasonInstallFailed, false)), plan.Decision{State: plan.StateFailed}, []string{"Ready=False InstallFailed", "Reconciling=True InstallFailed", "Deployed=False NotInstalled"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := Compute(test.v, test.d, nil)
			if diff := cmp.Diff(test.want, conditions(s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			ready := meta.FindStatusCondition(s.Conditions, api.ConditionReady)
			if s.State != ready.Reason || ready.Message == "" || ready.ObservedGeneration != 4 || s.ObservedGeneration != 4 {
				t.Errorf("state %s, generation %d, Ready %+v", s.State, s.ObservedGeneration, ready)
			}
			// A second reconciliation must not patch the status.
			again := Compute(test.v, test.d, s.Conditions)
			if patch, err := difference(s, again); err != nil || patch != nil {
				t.Errorf("the next reconciliation would patch %v, %v", patch, err)
			}
		})
	}
}

func TestCompute_ReleaseAndHistory(t *testing.T) {
	s := Compute(viewOf([]string{api.StatusFailed, api.StatusDeployed, api.StatusSuperseded}), plan.Decision{State: plan.StateOutOfSync}, nil)
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if diff := cmp.Diff(&api.ReleaseStatus{
		Name: "web", Namespace: "apps", Revision: 3, Status: "failed", Chart: "podset-1.0.0", ChartVersion: "1.0.0", AppVersion: "9", LastDeployed: &at,
	}, s.Release); diff != "" {
		t.Errorf("release (-want +got):\n%s", diff)
	}
	if s.DeployedRelease == nil || s.DeployedRelease.Name != "web" {
		t.Errorf("deployedRelease %+v", s.DeployedRelease)
	}
	if len(s.History) != 3 || s.History[0].Revision != 3 || s.History[2].Status != "superseded" || s.History[1].Description != "done" {
		t.Errorf("history %+v", s.History)
	}
	many := Compute(viewOf(slices.Repeat([]string{api.StatusSuperseded}, 30)), plan.Decision{State: plan.StateOutOfSync}, nil)
	if len(many.History) != api.HistoryLimit || many.History[0].Revision != 30 {
		t.Errorf("%d of 30 revisions are listed, from %d on", len(many.History), many.History[0].Revision)
	}
	none := Compute(viewOf(nil), plan.Decision{State: plan.StateAbsent, Step: plan.StepInstall}, nil)
	if none.Release != nil || none.DeployedRelease != nil || none.History != nil {
		t.Errorf("without a release: %+v", none)
	}
}

// TestStatus_DeployedWhileARevisionIsPending covers the histories between the
// writes of an action, newest revision first.
func TestStatus_DeployedWhileARevisionIsPending(t *testing.T) {
	const (
		installing, upgrading, rollingBack = api.StatusPendingInstall, api.StatusPendingUpgrade, api.StatusPendingRollback
	)
	for _, test := range []struct {
		name     string
		statuses []string
		// want is the revision that counts as deployed, 0 for none.
		want int
	}{
		{"an upgrade has begun", []string{upgrading, dep, sup}, 2},
		{"an upgrade ends, and its revision is not marked deployed yet", []string{upgrading, sup, sup}, 2},
		{"an upgrade has ended", []string{dep, sup, sup}, 3},
		{"a rollback has begun", []string{rollingBack, dep, sup}, 2},
		{"a rollback ends, and its revision is not marked deployed yet", []string{rollingBack, sup}, 1},
		{"an upgrade ends, after failed ones", []string{upgrading, fai, fai, sup, sup}, 2},
		{"an upgrade of a release that was never deployed", []string{upgrading, fai}, 0},
		{"an install has begun", []string{installing}, 0},
		{"an install has failed", []string{fai}, 0},
		{"every revision is superseded, and no action is pending", []string{sup, sup}, 0},
		{"an uninstall has begun", []string{api.StatusUninstalling, sup}, 0},
		{"uninstalled, history kept", []string{api.StatusUninstalled, sup}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := Compute(viewOf(test.statuses), plan.Decision{State: plan.StateBusy, Step: plan.StepWait}, nil)
			c := meta.FindStatusCondition(s.Conditions, api.ConditionDeployed)
			want := "No revision is deployed"
			if test.want > 0 {
				want = fmt.Sprintf("Revision %d of release web is deployed", test.want)
			}
			if (c.Status == metav1.ConditionTrue) != (test.want > 0) || c.Message != want || (s.DeployedRelease != nil) != (test.want > 0) {
				t.Errorf("condition Deployed is %+v, deployedRelease %+v, want %q", c, s.DeployedRelease, want)
			}
		})
	}
}

func TestCompute_KeepsConditionsOfOthers(t *testing.T) {
	earlier := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	before := []metav1.Condition{
		{Type: "Backup", Status: metav1.ConditionTrue, Reason: "Done", LastTransitionTime: earlier},
		{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: earlier},
		{Type: api.ConditionReady, Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: earlier},
		{Type: "Audit", Status: metav1.ConditionFalse, Reason: "None", LastTransitionTime: earlier},
	}
	given := slices.Clone(before)
	s := Compute(viewOf([]string{api.StatusDeployed}), plan.Decision{State: plan.StateInSync}, given)
	if diff := cmp.Diff([]string{"Ready=True Deployed", "Deployed=True InstallSuccessful", "Backup=True Done", "Audit=False None"}, conditions(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ready := meta.FindStatusCondition(s.Conditions, api.ConditionReady); !ready.LastTransitionTime.Equal(&earlier) {
		t.Errorf("the transition time of an unchanged Ready is %s", ready.LastTransitionTime)
	}
	if diff := cmp.Diff(before, given); diff != "" {
		t.Errorf("the given conditions changed (-want +got):\n%s", diff)
	}
}

// anyStatus draws a random status.
func anyStatus(t *rapid.T, label string) api.Status {
	word := rapid.SampledFrom([]string{"", "a", "b"})
	moment := rapid.Custom(func(t *rapid.T) *metav1.Time {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		at := metav1.NewTime(time.Unix(rapid.Int64Range(1, 3).Draw(t, "at"), 0).UTC())
		return &at
	})
	return rapid.Custom(func(t *rapid.T) api.Status {
		s := api.Status{ObservedGeneration: rapid.Int64Range(0, 2).Draw(t, "generation"), State: word.Draw(t, "state")}
		for range rapid.IntRange(0, 2).Draw(t, "conditions") {
			s.Conditions = append(s.Conditions, metav1.Condition{
				Type: word.Draw(t, "type"), Status: metav1.ConditionTrue, Reason: word.Draw(t, "reason"), Message: word.Draw(t, "message"),
				LastTransitionTime: metav1.NewTime(time.Unix(rapid.Int64Range(1, 2).Draw(t, "since"), 0).UTC()),
			})
		}
		if rapid.Bool().Draw(t, "release") {
			s.Release = &api.ReleaseStatus{
				Name: word.Draw(t, "name"), Namespace: word.Draw(t, "namespace"), Revision: rapid.Int64Range(0, 2).Draw(t, "revision"),
				Status: word.Draw(t, "status"), Chart: word.Draw(t, "chart"), LastDeployed: moment.Draw(t, "deployed"),
			}
		}
		if rapid.Bool().Draw(t, "deployed") {
			s.DeployedRelease = &api.DeployedRelease{Name: word.Draw(t, "release name")}
		}
		for range rapid.IntRange(0, 2).Draw(t, "history") {
			s.History = append(s.History, api.HistoryEntry{Revision: rapid.Int64Range(0, 2).Draw(t, "entry"), Description: word.Draw(t, "description"), LastDeployed: moment.Draw(t, "at")})
		}
		return s
	}).Draw(t, label)
}

// merge applies a merge patch according to RFC 7386.
func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(object, key)
		} else {
			object[key] = merge(object[key], value)
		}
	}
	return object
}

func asJSON(t *rapid.T, value any) any {
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestDifference_IsAMergePatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := anyStatus(t, "from"), anyStatus(t, "to")
		patch, err := difference(from, to)
		if err != nil {
			t.Fatal(err)
		}
		if equal := cmp.Equal(asJSON(t, from), asJSON(t, to)); equal != (patch == nil) {
			t.Fatalf("equal %v, patch %v", equal, patch)
		}
		if patch == nil {
			return
		}
		if diff := cmp.Diff(asJSON(t, to), merge(asJSON(t, from), asJSON(t, patch))); diff != "" {
			t.Fatalf("the patch %v has another result (-want +got):\n%s", patch, diff)
		}
	})
}

func TestRead_InvalidStatusIsEmpty(t *testing.T) {
	for _, broken := range []any{nil, "text", []any{}, map[string]any{"conditions": "none"}, map[string]any{"observedGeneration": "four"}, map[string]any{"release": []any{}}} {
		if diff := cmp.Diff(api.Status{}, Read(storedAs(broken))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", broken, diff)
		}
	}
	got := Read(storedAs(map[string]any{"observedGeneration": int64(4), "podNames": []any{"a"}, "release": map[string]any{"name": "web"}}))
	if got.ObservedGeneration != 4 || got.Release.Name != "web" {
		t.Errorf("got %+v", got)
	}
}

func TestWorking_MessageNamesTheRelease(t *testing.T) {
	for _, step := range []plan.Step{plan.StepInstall, plan.StepUpgrade, plan.StepUninstall, plan.StepUnlock, plan.StepAdopt} {
		if s := working(step, viewOf(nil)); !strings.Contains(s.message, "web") || s.reason == "" {
			t.Errorf("%s: %+v", step, s)
		}
	}
}
