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

// someRights knows two words of advice.
type someRights struct {
	missing string
	known   bool
	// account is the one that was last asked for.
	account string
}

var errForbidden = errors.New("forbidden")

func (r *someRights) Missing(namespace string) (string, bool) {
	if namespace != "apps" {
		return "", r.known
	}
	return r.missing, r.known
}

func (r *someRights) Refused(err error, account string) string {
	r.account = account
	if errors.Is(err, errForbidden) {
		return "Add a rule"
	}
	return ""
}

func TestConditionRightsMissing(t *testing.T) {
	stands := []metav1.Condition{{Type: api.ConditionRightsMissing, Status: metav1.ConditionTrue, Reason: api.ReasonForbidden, Message: "of an earlier process"}}
	for _, test := range []struct {
		name       string
		rights     Rights
		conditions []metav1.Condition
		want       string
		// looks: a pass is called for, that will know more.
		looks bool
	}{
		{"nobody looks", nil, nil, "", false},
		{"not known yet", &someRights{}, nil, "", false},
		{"not known yet, and told before", &someRights{missing: "x"}, stands, "of an earlier process", true},
		{"known", &someRights{missing: "{a rule}", known: true}, stands, "Add to the rules of the operator's role: {a rule}", false},
		{"nothing is missing", &someRights{known: true}, stands, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := viewOf([]string{api.StatusDeployed})
			looks := false
			r := &Reconciler{Rights: test.rights, Wake: func(types.NamespacedName, time.Duration) { looks = true }}
			if r.Rights != nil {
				v.MissingRules, v.RulesKnown = r.Rights.Missing(v.Release.Namespace)
			}
			r.lookAtRights(v, test.conditions)
			s := status.Compute(&v.Snapshot, plan.Decision{State: plan.StateInSync}, test.conditions)
			c := meta.FindStatusCondition(s.Conditions, api.ConditionRightsMissing)
			if c == nil {
				c = &metav1.Condition{}
			}
			if c.Message != test.want || looks != test.looks {
				t.Errorf("it says %q and looks again: %v", c.Message, looks)
			}
			// What is running runs.
			if !meta.IsStatusConditionTrue(s.Conditions, api.ConditionReady) {
				t.Error("it is not Ready")
			}
		})
	}
}

// TestForbiddenActions are told with the advice, once, and are due at once when
// the rights have changed; other failures wait on.
func TestForbiddenActions(t *testing.T) {
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
			rights := &someRights{known: true}
			now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
			r := &Reconciler{Rights: rights, Shared: Shared{Recorder: events, Now: func() time.Time { return now }}}
			v := viewOf(nil, func(v *snapshot) { v.serviceAccount = "deployer" })
			d := plan.Decision{Step: plan.StepInstall}
			r.conclude(t.Context(), v, d, test.err)
			r.conclude(t.Context(), v, d, test.err)
			if len(events.Events) != 1 || !strings.HasSuffix(<-events.Events, " InstallFailed "+test.says) {
				t.Error("it is not told once")
			}
			if rights.account != "system:serviceaccount:apps:deployer" {
				t.Errorf("asked for %s", rights.account)
			}
			before := r.memory.of(v.CR.GetUID()).failure
			r.RightsChanged()
			after := r.memory.of(v.CR.GetUID()).failure
			if !before.At.Equal(now) || after.At.IsZero() != test.isDue {
				t.Errorf("it failed at %s, and then at %s", before.At, after.At)
			}
			after.At, after.Forbidden = before.At, before.Forbidden
			if diff := cmp.Diff(before, after, cmp.AllowUnexported(status.Failure{})); diff != "" {
				t.Errorf("something else is remembered:\n%s", diff)
			}
		})
	}
}
