package chartkind

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	served = &ServedChart{Name: "web", Version: "1.0.0", Digest: "sha256:1", Source: "oci://a.test/web:1.0.0"}
	pulled = True(ReasonPulled, "")
	works  = True(ReasonServing, "")
)

func TestReady(t *testing.T) {
	const still = "; the kind is still served with web 1.0.0"
	failed := False("Unauthorized", "401")
	for _, test := range []struct {
		name  string
		facts Facts
		want  Finding
	}{
		{"nothing is known", Facts{}, Undecided(ReasonPulling, "")},
		{"served", Facts{Pulled: pulled, Chart: served, Current: true, Serving: works}, True(ReasonServing, "web 1.0.0")},
		{"served, the last check failed", Facts{Pulled: failed, Chart: served, Current: true, Serving: works}, True(ReasonServing, "web 1.0.0")},
		{"never pulled", Facts{Pulled: failed}, failed},
		{"a changed spec was not pulled", Facts{Pulled: failed, Chart: served, Serving: works}, False("Unauthorized", "401"+still)},
		{"an invalid spec", Facts{Refused: False(ReasonInvalidSpec, "spec.timeout is 0s")}, False(ReasonInvalidSpec, "spec.timeout is 0s")},
		{"a spec that became invalid", Facts{Refused: False(ReasonNotAllowed, "no"), Chart: served, Serving: works}, False(ReasonNotAllowed, "no"+still)},
		{"the new chart does not load", Facts{Pulled: pulled, Invalid: "chart 2.0.0: bad", Chart: served, Serving: works}, False(ReasonInvalidChart, "chart 2.0.0: bad"+still)},
		{"another source has the kind", Facts{Pulled: pulled, Conflict: "Web is served by watches.yaml:1"}, False(ReasonKindConflict, "Web is served by watches.yaml:1")},
		{"a foreign CRD", Facts{Pulled: pulled, CRD: False(ReasonCRDForeign, "foreign")}, False(ReasonCRDForeign, "foreign")},
		{"the CRD is missing", Facts{Pulled: pulled, Chart: served, Current: true, CRD: False(ReasonCRDMissing, "install it"), Serving: Undecided(ReasonStarting, "")}, False(ReasonCRDMissing, "install it")},
		{"starting", Facts{Pulled: pulled, Chart: served, Current: true, Serving: Undecided(ReasonStarting, "soon")}, Undecided(ReasonStarting, "soon")},
		{"forbidden", Facts{Pulled: pulled, Chart: served, Current: true, Serving: False(ReasonNotServed, "no")}, False(ReasonNotServed, "no")},
		{"a rule is missing that only some values need", Facts{Pulled: pulled, Chart: served, Current: true, Serving: works, Permissions: False(ReasonRulesMissing, "")}, True(ReasonServing, "web 1.0.0")},
		{"a rule is missing that every release needs", Facts{Pulled: pulled, Chart: served, Current: true, Serving: works, RulesAlwaysNeeded: true},
			False(ReasonRulesMissing, "the operator's role lacks rules that every release needs; see PermissionsComplete")},
		{"deleted with custom resources", Facts{Pulled: pulled, Chart: served, Current: true, Serving: works, Deleted: true, Remaining: 2},
			False(ReasonTerminating, "2 custom resources remain: the kind is served until they are deleted; to delete the ChartKind and keep the custom resources, set spec.deletionPolicy: Orphan")},
		{"deleted and not served", Facts{Deleted: true, Remaining: 1, Invalid: "the chart is broken"},
			False(ReasonTerminating, "1 custom resource remains, and the operator does not serve the kind: the chart is broken; to delete the ChartKind and keep the custom resources, set spec.deletionPolicy: Orphan")},
		{"deleted and not counted", Facts{Deleted: true, Serving: works, Uncounted: "a rule is missing"},
			False(ReasonTerminating, "a rule is missing; to delete the ChartKind and keep the custom resources, set spec.deletionPolicy: Orphan")},
	} {
		if diff := cmp.Diff(test.want, test.facts.Ready()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestStatus_EqualFactsChangeNothing: the operator compares the status before it writes.
func TestStatus_EqualFactsChangeNothing(t *testing.T) {
	facts := Facts{Pulled: pulled, Chart: served, Current: true, Serving: works, CRD: True(ReasonEstablished, "")}
	first := facts.Status(Status{}, 1, metav1.Unix(1000, 0))
	if len(first.Conditions) != len(Types) {
		t.Errorf("%d conditions, want %d", len(first.Conditions), len(Types))
	}
	later := metav1.NewTime(time.Unix(2000, 0))
	if diff := cmp.Diff(first, facts.Status(first, 1, later)); diff != "" {
		t.Errorf("the status has changed (-first +second):\n%s", diff)
	}
	facts.Pulled = False("Unreachable", "no network")
	second := facts.Status(first, 1, later)
	for kind, want := range map[string]metav1.Time{ConditionPulled: later, ConditionReady: metav1.Unix(1000, 0)} {
		if got := meta.FindStatusCondition(second.Conditions, kind).LastTransitionTime; !got.Equal(&want) {
			t.Errorf("%s changed at %s, want %s", kind, got, want)
		}
	}
	if diff := cmp.Diff([]Transition{{ConditionPulled, facts.Pulled}}, Transitions(first, second)); diff != "" {
		t.Errorf("transitions (-want +got):\n%s", diff)
	}
	foreign := metav1.Condition{Type: "Other", Status: metav1.ConditionTrue}
	first.Conditions = append(first.Conditions, foreign)
	if kept := facts.Status(first, 1, later); meta.FindStatusCondition(kept.Conditions, "Other") == nil {
		t.Error("the condition of another controller was removed")
	}
}

func TestStatus_LimitsMessages(t *testing.T) {
	status := Facts{Pulled: False("Unreachable", string(make([]byte, 40000)))}.Status(Status{}, 1, metav1.Unix(0, 0))
	for _, condition := range status.Conditions {
		if len(condition.Message) > maxMessage {
			t.Errorf("the message of %s has %d bytes", condition.Type, len(condition.Message))
		}
	}
}
