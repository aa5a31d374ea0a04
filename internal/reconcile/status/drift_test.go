package status

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
)

func TestDrifted_ReasonAndMessage(t *testing.T) {
	changed, gone := inventory.Drift{Key: front}, inventory.Drift{Key: back, Gone: true}
	refused := &Failure{Failure: plan.Failure{Target: plan.TargetKey{Goal: plan.GoalCorrected}}, Reason: "Refused", Message: "no"}
	elsewhere := &Failure{Failure: plan.Failure{Target: plan.TargetKey{Digest: "another"}}, Reason: "Refused", Message: "no"}
	unverified := plan.Observation{Unverified: true}
	const fight = "Objects drift again after every correction, so corrections are delayed more and more. "
	for _, test := range []struct {
		name            string
		view            Snapshot
		reason, message string
	}{
		{name: "nothing"},
		{name: "one object", view: Snapshot{Drift: []inventory.Drift{changed}}, reason: api.ReasonDriftDetected, message: "Changed or deleted by others: ConfigMap apps/front"},
		{name: "two, one of them deleted", view: Snapshot{Drift: []inventory.Drift{gone, changed}}, reason: api.ReasonDriftDetected, message: "Changed or deleted by others: ConfigMap apps/back (deleted), ConfigMap apps/front"},
		{name: "a fight", view: Snapshot{Drift: []inventory.Drift{changed}, Fighting: []Contested{{Key: front, Pointers: []string{"/data/a", "/data/b"}}}}, reason: api.ReasonDriftFight, message: fight + `ConfigMap apps/front: Find out what changes it, or add to drift.ignore of the kind: {kind: ConfigMap, name: front, paths: ["/data/a","/data/b"]}`},
		{name: "two fights and more", view: Snapshot{Drift: []inventory.Drift{gone, changed}, Fighting: []Contested{{Key: back}, {Key: front, Pointers: []string{"/data/a"}}}}, reason: api.ReasonDriftFight, message: fight + `ConfigMap apps/back: Find out what changes it; ConfigMap apps/front: Find out what changes it, or add to drift.ignore of the kind: {kind: ConfigMap, name: front, paths: ["/data/a"]}`},
		{name: "a repair failed", view: Snapshot{Drift: []inventory.Drift{changed}, RepairFailure: refused}, reason: "Refused", message: "no"},
		{name: "a repair failed in a fight", view: Snapshot{Drift: []inventory.Drift{changed}, Fighting: []Contested{{Key: front, Pointers: []string{"/data/a", "/data/b"}}}, RepairFailure: refused}, reason: "Refused", message: "no"},
		{name: "a repair failed, unverified", view: Snapshot{Observation: unverified, RepairFailure: refused}, reason: "Refused", message: "no"},
		{name: "a repair failed, no drift", view: Snapshot{RepairFailure: refused}},
		{name: "another action failed", view: Snapshot{Drift: []inventory.Drift{changed}, RepairFailure: elsewhere}, reason: api.ReasonDriftDetected, message: "Changed or deleted by others: ConfigMap apps/front"},
		{name: "unverified", view: Snapshot{Observation: unverified}},
	} {
		t.Run(test.name, func(t *testing.T) {
			reason, message, holds := drifted(&test.view)
			if reason != test.reason || message != test.message || holds != (test.reason != "") {
				t.Errorf("got %q, %q, %v, want %q, %q", reason, message, holds, test.reason, test.message)
			}
		})
	}
}

// A release may have too many objects for the message of a condition.
func TestDrifted_MessageIsCut(t *testing.T) {
	var many Snapshot
	for i := range 1000 {
		key := apply.Key{Kind: "ConfigMap", Namespace: "apps", Name: "an-object-" + strconv.Itoa(i)}
		many.Drift = append(many.Drift, inventory.Drift{Key: key, Gone: true})
	}
	_, detected, _ := drifted(&many)
	for _, drift := range many.Drift {
		many.Fighting = append(many.Fighting, Contested{Key: drift.Key})
	}
	_, fought, _ := drifted(&many)
	for _, message := range []string{detected, fought} {
		if len(message) > 1100 || !strings.Contains(message, "an-object-0") {
			t.Errorf("%d bytes: %s", len(message), message)
		}
	}
}

// Two objects of a release.
var (
	front = apply.Key{Kind: "ConfigMap", Namespace: "apps", Name: "front"}
	back  = apply.Key{Kind: "ConfigMap", Namespace: "apps", Name: "back"}
)
