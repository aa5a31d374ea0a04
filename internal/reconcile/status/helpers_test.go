package status

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// asking parses annotations, given as keys without our prefix, and values.
func asking(pairs ...string) func(*Snapshot) {
	return func(v *Snapshot) {
		from := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			from[api.Domain+"/"+pairs[i]] = pairs[i+1]
		}
		v.Requests = annotations.Parse(from)
	}
}

// marked sets marks on the newest revision, which this operator wrote.
func marked(m release.Marks) func(*Snapshot) {
	return func(v *Snapshot) { v.Marks, v.History[0].Marks = m, m }
}

// written replaces every record by one that this operator wrote.
func written(v *Snapshot) {
	for i, record := range v.History {
		read, _ := release.FromMeta(secretOf(record))
		v.History[i] = read
	}
}

func TestRefusal(t *testing.T) {
	refusedTo := func(value string) release.Marks { return release.Marks{Rollback: Token(value), Refused: true} }
	upgraded := []string{dep, fai, sup}
	for _, test := range []struct {
		name   string
		v      *Snapshot
		asked  string
		reason string
		want   string
	}{
		{"no request", viewOf(upgraded), "", "", ""},
		{"not answered yet", viewOf(upgraded), "7", "", ""},
		{"carried out", viewOf(upgraded, marked(release.Marks{Rollback: Token("1")})), "1", "", ""},
		{"beyond maxHistory", viewOf(upgraded, marked(refusedTo("1")), func(v *Snapshot) { v.Excess = v.History[len(v.History)-1:] }), "1", api.ReasonNoSuchRevision, "Revision 1 exceeds the kind's maxHistory, although its record exists; nothing was changed. Available revisions: 3"},
		{"no such revision", viewOf(upgraded, marked(refusedTo("7"))), "7", api.ReasonNoSuchRevision, "Revision 7 is not stored, or was never deployed; nothing was changed. Available revisions: 1, 3"},
		{"another request was refused before", viewOf(upgraded, marked(refusedTo("7"))), "8", "", ""},
		{"repeated, not answered yet", viewOf(upgraded, marked(refusedTo("7"))), "7@again", "", ""},
		{"no earlier revision", viewOf([]string{dep}, marked(refusedTo("previous"))), "previous", api.ReasonNoSuchRevision, "No earlier revision was ever deployed and ready; nothing was changed. Available revisions: 1"},
		{"no deployed revision", viewOf([]string{fai}, marked(refusedTo("previous"))), "previous", api.ReasonNoSuchRevision, "No earlier revision was ever deployed and ready; no revision is available"},
		{"malformed", viewOf(upgraded), "latest", api.ReasonInvalidValue, `rollback-to is "latest": expected a revision, "previous" or "none", optionally with "@" and any text to repeat a request; nothing was changed. Available revisions: 1, 3`},
		{"malformed, no release", viewOf(nil), "0", api.ReasonInvalidValue, `rollback-to is "0": expected a revision, "previous" or "none", optionally with "@" and any text to repeat a request; no revision is available`},
	} {
		t.Run(test.name, func(t *testing.T) {
			asking("rollback-to", test.asked)(test.v)
			if got := refusal(test.v); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if test.want != "" && refusalReason(test.v) != test.reason {
				t.Errorf("reason %s, want %s", refusalReason(test.v), test.reason)
			}
		})
	}
	long := viewOf(nil, asking("rollback-to", strings.Repeat("x", 10_000)))
	if got := refusal(long); len(got) > 400 {
		t.Errorf("a message of %d bytes", len(got))
	}
}

// TestHookMessage tests the addition to Ready while an action waits for a hook.
func TestHookMessage(t *testing.T) {
	waits := func(state api.HookState, why string, change plan.Change) *Snapshot {
		return viewOf([]string{api.StatusPendingUpgrade, dep}, func(v *Snapshot) {
			v.Observation.Change = change
			v.Observation.Running = &plan.Running{Step: plan.StepUpgrade, Hook: &plan.Hook{Name: "Job apps/web", State: state, Why: why}}
		})
	}
	const how = ` waits until the hook ends. To end the hook now, even if it is working, set the annotation chartwright.dev/abort to "2"`
	for _, test := range []struct {
		v    *Snapshot
		want string
	}{
		{viewOf([]string{dep}), ""},
		{waits("", "", ""), ""},
		{waits(api.HookStarting, "", ""), ". Waiting for hook Job apps/web"},
		{waits(api.HookStarting, "Pending", ""), ". Waiting for hook Job apps/web: Pending"},
		{waits(api.HookRunning, "", ""), ". Waiting for hook Job apps/web, which is running"},
		{waits(api.HookRunning, "", plan.ChangeScale), ". Waiting for hook Job apps/web, which is running"},
		{waits(api.HookRunning, "", plan.ChangeEdit), ". Waiting for hook Job apps/web, which is running. The edit of the spec" + how},
		{waits(api.HookStuck, "ImagePullBackOff", ""), ". Hook Job apps/web cannot start: ImagePullBackOff"},
		{waits(api.HookStuck, "ImagePullBackOff", plan.ChangeEdit), ". Hook Job apps/web cannot start: ImagePullBackOff"},
		{waits(api.HookCrashing, "exit code 1", ""), ". Hook Job apps/web keeps failing: exit code 1"},
	} {
		if got := hookMessage(test.v); got != test.want {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
}

// TestRefused_WithoutRecords: an uninstall may delete all revisions before a request is processed.
// While the spec cannot be installed, no record stores the answer.
func TestRefused_WithoutRecords(t *testing.T) {
	v := viewOf(nil)
	v.Requests.Rollback = &annotations.Rollback{Value: "16", Revision: 16}
	v.Observation.Request = &plan.Request{Token: Token("16")}
	if got := Refused(v); got != "" {
		t.Errorf("before an attempt: %q", got)
	}
	v.Failure = &Failure{Failure: plan.Failure{Target: plan.Target(v.Observation)}, Reason: api.ReasonInvalidValues}
	if got, want := Refused(v), "No revision is stored"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRefusal_NamesTheUntrustedRecord: a restart loses the cause, which must not cause
// another event.
func TestRefusal_NamesTheUntrustedRecord(t *testing.T) {
	v := viewOf([]string{api.StatusDeployed, api.StatusSuperseded})
	v.Requests.Rollback = &annotations.Rollback{Value: "1", Revision: 1}
	v.Marks = release.Marks{Rollback: Token("1"), Refused: true, Untrusted: true}
	v.UntrustedTarget = "Secret apps/one is forged"
	message := refusal(v)
	if !strings.Contains(message, "Revision 1 has a release record that is not authenticated") || !strings.Contains(message, v.UntrustedTarget) || refusalReason(v) != api.ReasonRecordUntrusted {
		t.Errorf("%s: %q", refusalReason(v), message)
	}
	v.UntrustedTarget = ""
	if after := Refused(v); !strings.HasPrefix(message, after) {
		t.Errorf("message %q after a restart, which would emit an event", after)
	}
	if again := release.MarksOf([]release.Record{{Marks: v.Marks}}); again.Refused {
		t.Error("marks count on a record that no operator wrote")
	}
}

// stored returns conditions of the operator-sdk: "ReleaseFailed=True".
func stored(texts ...string) []metav1.Condition {
	var conditions []metav1.Condition
	for _, text := range texts {
		kind, status, _ := strings.Cut(text, "=")
		conditions = append(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status)})
	}
	return conditions
}

// TestOperatorSDKConditions_UpdatedOnlyIfPresent: custom resources without them get none.
func TestOperatorSDKConditions_UpdatedOnlyIfPresent(t *testing.T) {
	deployed, inSync := []string{api.StatusDeployed}, plan.Decision{State: plan.StateInSync}
	waits := plan.Decision{State: plan.StateFailed, Step: plan.StepWait, After: 1}
	always := stored("Initialized=True", "Deployed=True", "ReleaseFailed=False", "Irreconcilable=False", "Paused=False")
	refused := func(v *Snapshot) {
		v.Observation.Unverified = true
		v.RepairFailure = &Failure{Reason: api.ReasonRefused, Message: "no"}
		v.RepairFailure.Target = plan.TargetOf(plan.StepRepair, v.Observation)
	}
	for _, test := range []struct {
		name   string
		stored []metav1.Condition
		v      *Snapshot
		d      plan.Decision
		want   []string
	}{
		{"without them", nil, viewOf(deployed), inSync, nil},
		{"without them, failed", nil, viewOf(deployed, withFailure(ofSpec, api.ReasonUpgradeFailed, false)), waits, nil},
		{"in sync", stored("Initialized=True", "Deployed=True"), viewOf(deployed), inSync, []string{"Initialized=True "}},
		{"failed before", stored("Initialized=True", "ReleaseFailed=True", "Irreconcilable=True"), viewOf(deployed), inSync, []string{"Initialized=True "}},
		{
			"failed install", stored("Initialized=True"), viewOf([]string{api.StatusFailed}, withFailure(ofSpec, api.ReasonInstallFailed, false)), waits,
			[]string{"Initialized=True ", "ReleaseFailed=True InstallError"},
		},
		{
			"failed upgrade", stored("Initialized=True"), viewOf(deployed, withFailure(ofSpec, api.ReasonUpgradeFailed, false)), waits,
			[]string{"Initialized=True ", "ReleaseFailed=True UpgradeError"},
		},
		{
			"failed uninstall", stored("Initialized=True"), viewOf(deployed, beingDeleted, withFailure(plan.TargetKey{Goal: plan.GoalGone}, api.ReasonUninstallFailed, false)), waits,
			[]string{"Initialized=True ", "ReleaseFailed=True UninstallError"},
		},
		{
			"invalid values of a deployed release", stored("Initialized=True"), viewOf(deployed, withFailure(ofSpec, api.ReasonInvalidValues, true)), waits,
			[]string{"Initialized=True ", "Irreconcilable=True ReconcileError"},
		},
		{
			"invalid values of the first spec", stored("Initialized=True"), viewOf(nil, withFailure(ofSpec, api.ReasonInvalidValues, true)), waits,
			[]string{"Initialized=True ", "ReleaseFailed=True InstallError"},
		},
		{"failed repair", stored("Initialized=True"), viewOf(deployed, refused), inSync, []string{"Initialized=True ", "Irreconcilable=True ReconcileError"}},
		{"always present, in sync", always, viewOf(deployed), inSync, []string{"Initialized=True ", "ReleaseFailed=False ", "Irreconcilable=False "}},
		{
			"always present, failed upgrade", always, viewOf(deployed, withFailure(ofSpec, api.ReasonUpgradeFailed, false)), waits,
			[]string{"Initialized=True ", "ReleaseFailed=True UpgradeError", "Irreconcilable=False "},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := Compute(test.v, test.d, test.stored)
			var got []string
			for _, c := range conditions(s) {
				if strings.HasPrefix(c, "Initialized") || strings.HasPrefix(c, "ReleaseFailed") || strings.HasPrefix(c, "Irreconcilable") {
					got = append(got, c)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if patch, err := difference(s, Compute(test.v, test.d, s.Conditions)); err != nil || patch != nil {
				t.Errorf("the next reconciliation would patch %v, %v", patch, err)
			}
		})
	}
}

func TestDropManifest(t *testing.T) {
	type m = map[string]any
	theirs := m{"deployedRelease": m{"name": "web", "manifest": "a: b"}}
	for _, test := range []struct {
		name                string
		patch, stored, want m
	}{
		{name: "no manifest", stored: m{"deployedRelease": m{"name": "web"}}},
		{name: "no status"},
		{name: "no other change", stored: theirs, want: m{"deployedRelease": m{"manifest": nil}}},
		{name: "with another change", patch: m{"state": "x"}, stored: theirs, want: m{"state": "x", "deployedRelease": m{"manifest": nil}}},
		{name: "another name", patch: m{"deployedRelease": m{"name": "b"}}, stored: theirs, want: m{"deployedRelease": m{"name": "b", "manifest": nil}}},
		{name: "deployedRelease removed", patch: m{"deployedRelease": nil}, stored: theirs, want: m{"deployedRelease": nil}},
	} {
		if diff := cmp.Diff(test.want, dropManifest(test.patch, storedAs(test.stored))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestFields_PatchReplacesTheValue applies each patch as the API server does.
func TestFields_PatchReplacesTheValue(t *testing.T) {
	type m = map[string]any
	for _, test := range []struct {
		name                   string
		stored, computed, want m
		nothing                bool
	}{
		{"a new field", m{"state": "x"}, m{"a": int64(1)}, m{"state": "x", "a": int64(1)}, false},
		{"the same", m{"a": []any{"b"}}, m{"a": []any{"b"}}, m{"a": []any{"b"}}, true},
		{"another value", m{"a": []any{"b"}}, m{"a": []any{}}, m{"a": []any{}}, false},
		{"a failed revision", m{"a": "b", "c": "d"}, m{"a": nil}, m{"c": "d"}, false},
		{"a failed field without a value", m{"c": "d"}, m{"a": nil}, m{"c": "d"}, true},
		{"removed nested keys", m{"a": m{"b": m{"c": "d", "e": "f"}, "g": "h"}}, m{"a": m{"b": m{"c": "d"}}}, m{"a": m{"b": m{"c": "d"}}}, false},
		{"a map instead of a string", m{"a": "b"}, m{"a": m{"c": "d"}}, m{"a": m{"c": "d"}}, false},
		{"a string instead of a map", m{"a": m{"c": "d"}}, m{"a": "b"}, m{"a": "b"}, false},
		{"an empty map", m{"a": m{"c": "d"}}, m{"a": m{}}, m{"a": m{}}, false},
		{"a field that is not computed", m{"a": "b"}, m{}, m{"a": "b"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := Fields{Result: kindstatus.Result{Values: test.computed}}
			patch := f.addTo(nil, storedAs(test.stored))
			if (patch == nil) != test.nothing {
				t.Fatalf("patch %v", patch)
			}
			if after := merge(runtime.DeepCopyJSON(test.stored), patch); patch != nil && !cmp.Equal(after, any(test.want)) {
				t.Errorf("result of the patch %v, want %v", after, test.want)
			}
		})
	}
	// A status that is not a map is replaced.
	if patch := (&Fields{Result: kindstatus.Result{Values: m{"a": "b"}}}).addTo(m{"state": "x"}, storedAs("text")); !cmp.Equal(patch, m{"state": "x", "a": "b"}) {
		t.Errorf("%v", patch)
	}
}

func releaseOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "apps", Name: name}
}

// ofSpec is the target of a release that follows the spec.
var ofSpec = plan.TargetKey{Goal: plan.GoalSpec, Digest: wanted}

// secretOf returns the metadata of a record that this operator wrote.
func secretOf(r release.Record) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Namespace, Name: release.SecretName(r.Release, r.Revision),
		Labels: map[string]string{
			release.LabelName: r.Release, release.LabelOwner: release.OwnerHelm, release.LabelStatus: r.Status,
			release.LabelVersion: strconv.Itoa(r.Revision), api.LabelRevision: strconv.Itoa(r.Revision), api.LabelOwnerUID: "uid",
		},
		CreationTimestamp: r.Deployed,
	}}
	for key, value := range r.Marks.Labels() {
		if value != "" {
			m.Labels[key] = value
		}
	}
	return m
}

const (
	dep, sup, fai = api.StatusDeployed, api.StatusSuperseded, api.StatusFailed
)

// storedAs returns a custom resource with this status.
func storedAs(status any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"status": status}}
}
