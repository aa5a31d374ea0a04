package reconcile

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
)

func TestDrifted(t *testing.T) {
	changed, gone := inventory.Drift{Key: front}, inventory.Drift{Key: back, Gone: true}
	refused := &failure{Failure: plan.Failure{Aim: "repaired"}, reason: "Refused", message: "no"}
	elsewhere := &failure{Failure: plan.Failure{Aim: "another"}, reason: "Refused", message: "no"}
	unverified := plan.Observation{Unverified: true}
	const fight = "Somebody damages these again and again, and they are repaired ever more slowly: "
	for _, test := range []struct {
		name            string
		view            view
		reason, message string
	}{
		{name: "nothing"},
		{name: "one object", view: view{drift: []inventory.Drift{changed}}, reason: api.ReasonDriftDetected, message: "Not as the release says: ConfigMap apps/front"},
		{name: "two, of which one is gone", view: view{drift: []inventory.Drift{gone, changed}}, reason: api.ReasonDriftDetected, message: "Not as the release says: ConfigMap apps/back (gone), ConfigMap apps/front"},
		{name: "a fight", view: view{drift: []inventory.Drift{changed}, fighting: []apply.Key{front}}, reason: api.ReasonDriftFight, message: fight + "ConfigMap apps/front"},
		{name: "two fights and more", view: view{drift: []inventory.Drift{gone, changed}, fighting: []apply.Key{back, front}}, reason: api.ReasonDriftFight, message: fight + "ConfigMap apps/back, ConfigMap apps/front"},
		{name: "a repair failed", view: view{drift: []inventory.Drift{changed}, repairFailure: refused}, reason: "Refused", message: "no"},
		{name: "a repair failed in a fight", view: view{drift: []inventory.Drift{changed}, fighting: []apply.Key{front}, repairFailure: refused}, reason: "Refused", message: "no"},
		{name: "a repair failed and nothing is known", view: view{observation: unverified, repairFailure: refused}, reason: "Refused", message: "no"},
		{name: "a repair failed and all is well", view: view{repairFailure: refused}},
		{name: "something else failed", view: view{drift: []inventory.Drift{changed}, repairFailure: elsewhere}, reason: api.ReasonDriftDetected, message: "Not as the release says: ConfigMap apps/front"},
		{name: "nothing is known", view: view{observation: unverified}},
	} {
		t.Run(test.name, func(t *testing.T) {
			reason, message, holds := drifted(&test.view)
			if reason != test.reason || message != test.message || holds != (test.reason != "") {
				t.Errorf("got %q, %q, %v, want %q, %q", reason, message, holds, test.reason, test.message)
			}
		})
	}
}

// A release may have hundreds of objects, and a condition is no place for all.
func TestDriftedIsCut(t *testing.T) {
	var many view
	for i := range 1000 {
		key := apply.Key{Kind: "ConfigMap", Namespace: "apps", Name: "an-object-" + strconv.Itoa(i)}
		many.drift = append(many.drift, inventory.Drift{Key: key, Gone: true})
	}
	_, detected, _ := drifted(&many)
	for _, drift := range many.drift {
		many.fighting = append(many.fighting, drift.Key)
	}
	_, fought, _ := drifted(&many)
	for _, message := range []string{detected, fought} {
		if len(message) > 1100 || !strings.Contains(message, "an-object-0") {
			t.Errorf("%d bytes: %s", len(message), message)
		}
	}
}
