package reconcile

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// fixedPermissions returns fixed missing rules and advice.
type fixedPermissions struct {
	missing string
	known   bool
	// account is the last account that Refused was called with.
	account string
}

var errForbidden = errors.New("forbidden")

func (r *fixedPermissions) Missing(namespace string) (string, bool) {
	if namespace != "apps" {
		return "", r.known
	}
	return r.missing, r.known
}

// Derive does nothing.
func (r *fixedPermissions) Derive() {}

func (r *fixedPermissions) Refused(err error, account string) string {
	r.account = account
	if errors.Is(err, errForbidden) {
		return "Add a rule"
	}
	return ""
}

func TestPermissionsMissing_FollowsPermissionCheck(t *testing.T) {
	present := []metav1.Condition{
		{Type: api.ConditionPermissionsMissing, Status: metav1.ConditionTrue, Reason: api.ReasonForbidden, Message: "of an earlier process"},
		{Type: "RightsMissing", Status: metav1.ConditionTrue, Reason: api.ReasonForbidden, Message: "of an earlier version"},
	}
	for _, test := range []struct {
		name        string
		permissions Permissions
		conditions  []metav1.Condition
		want        string
		// woken reports that the custom resource is reconciled again.
		woken bool
	}{
		{"no permission check", nil, nil, "", false},
		{"not known yet", &fixedPermissions{}, nil, "", false},
		{"not known yet, reported before", &fixedPermissions{missing: "x"}, present, "of an earlier process", true},
		{"known", &fixedPermissions{missing: "{a rule}", known: true}, present, "Add to the rules of the operator's role: {a rule}", false},
		{"nothing is missing", &fixedPermissions{known: true}, present, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := viewOf([]string{api.StatusDeployed})
			woken := false
			r := &Reconciler{Permissions: test.permissions, Wake: func(types.NamespacedName, time.Duration) { woken = true }}
			if r.Permissions != nil {
				v.MissingRules, v.RulesKnown = r.Permissions.Missing(v.Release.Namespace)
			}
			r.recheckPermissions(v, test.conditions)
			s := status.Compute(&v.Snapshot, plan.Decision{State: plan.StateInSync}, test.conditions)
			c := meta.FindStatusCondition(s.Conditions, api.ConditionPermissionsMissing)
			if c == nil {
				c = &metav1.Condition{}
			}
			if c.Message != test.want || woken != test.woken {
				t.Errorf("message %q, reconciled again: %v", c.Message, woken)
			}
			if meta.FindStatusCondition(s.Conditions, "RightsMissing") != nil {
				t.Error("the former condition RightsMissing is still present")
			}
			// Missing rules do not affect Ready.
			if !meta.IsStatusConditionTrue(s.Conditions, api.ConditionReady) {
				t.Error("Ready is not True")
			}
		})
	}
}

// TestForbiddenActions_RetriedWhenPermissionsChange: a forbidden action emits one event
// with the advice, and is retried when permissions change. Other failures keep their backoff.
func TestForbiddenActions_RetriedWhenPermissionsChange(t *testing.T) {
	for _, test := range []struct {
		name  string
		err   error
		says  string
		isDue bool
	}{
		{"forbidden", errForbidden, "forbidden. Add a rule", true},
		{"another failure", errors.New("no room"), "no room", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			events := record.NewFakeRecorder(10)
			permissions := &fixedPermissions{known: true}
			now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
			r := &Reconciler{Permissions: permissions, Shared: Shared{Recorder: events, Now: func() time.Time { return now }}}
			v := viewOf(nil, func(v *snapshot) { v.serviceAccount = "deployer" })
			d := plan.Decision{Step: plan.StepInstall}
			r.conclude(t.Context(), v, d, test.err)
			r.conclude(t.Context(), v, d, test.err)
			if len(events.Events) != 1 || !strings.HasSuffix(<-events.Events, " InstallFailed "+test.says) {
				t.Error("want exactly one event")
			}
			if permissions.account != "system:serviceaccount:apps:deployer" {
				t.Errorf("advice for account %s", permissions.account)
			}
			before := r.memory.of(v.CR.GetUID()).failure
			r.PermissionsChanged()
			after := r.memory.of(v.CR.GetUID()).failure
			if !before.At.Equal(now) || after.At.IsZero() != test.isDue {
				t.Errorf("failed at %s, and then at %s", before.At, after.At)
			}
			after.At, after.Forbidden = before.At, before.Forbidden
			if diff := cmp.Diff(before, after, cmp.AllowUnexported(status.Failure{})); diff != "" {
				t.Errorf("the failure has changed:\n%s", diff)
			}
		})
	}
}
