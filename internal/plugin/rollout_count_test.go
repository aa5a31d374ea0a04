package plugin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
)

const (
	isTrue, isFalse, isUnknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
)

func TestMembers(t *testing.T) {
	for _, test := range []struct {
		name string
		of   *made
		want rolloutMember
	}{
		{"nobody has seen it", makeCR("web"), rolloutMember{Phase: phaseProgressing}},
		{"ready", makeCR("web").release(1, "0.2.0").ready(isTrue, api.ReasonDeployed), rolloutMember{Version: "0.2.0", Phase: phaseReady}},
		{"being upgraded", makeCR("web").release(2, "0.2.0").ready(isUnknown, api.ReasonUpgrading), rolloutMember{Version: "0.2.0", Phase: phaseProgressing, Message: "as it is"}},
		{"not ready yet", makeCR("web").release(2, "0.2.0").ready(isFalse, api.ReasonProgressing), rolloutMember{Version: "0.2.0", Phase: phaseProgressing, Message: "as it is"}},
		{"failed", makeCR("web").release(2, "0.2.0").ready(isFalse, api.ReasonUpgradeFailed), rolloutMember{Version: "0.2.0", Phase: phaseFailed, Message: "UpgradeFailed: as it is"}},
		{"waits, and is ready", makeCR("web").release(1, "0.1.0").ready(isTrue, api.ReasonDeployed).update("0.2.0", api.ReasonWaiting, 3),
			rolloutMember{Version: "0.1.0", Phase: phaseWaiting, To: "0.2.0", Reason: api.ReasonWaiting, Place: 3, Message: "to come"}},
		{"waits, and is broken anyway", makeCR("web").release(1, "0.1.0").ready(isFalse, api.ReasonObjectFailed).update("0.2.0", api.ReasonRolloutStopped, 3),
			rolloutMember{Version: "0.1.0", Phase: phaseWaiting, To: "0.2.0", Reason: api.ReasonRolloutStopped, Place: 3, Message: "to come"}},
		{"is not to have an older one", makeCR("web").release(1, "0.2.0").ready(isTrue, api.ReasonDeployed).update("0.1.0", api.ReasonDowngradeRefused, 0),
			rolloutMember{Version: "0.2.0", Phase: phaseReady, To: "0.1.0", Reason: api.ReasonDowngradeRefused}},
		{"held", makeCR("web").release(3, "0.1.0").ready(isTrue, api.ReasonDeployed).held(1, 2, api.ReasonRolledBack).update("0.2.0", api.ReasonHeld, 0),
			rolloutMember{Version: "0.1.0", Phase: phaseHeld, To: "0.2.0", Reason: api.ReasonHeld, Message: "held as it is"}},
		{"went back from the new chart", makeCR("web").release(3, "0.1.0").history(3, "0.1.0").history(2, "0.2.0").history(1, "0.1.0").ready(isTrue, api.ReasonDeployed).held(1, 2, api.ReasonRolledBackAfterFailure),
			rolloutMember{Version: "0.1.0", Phase: phaseFailed, Message: "held as it is"}},
		{"went back from an edit", makeCR("web").release(3, "0.1.0").history(3, "0.1.0").history(2, "0.1.0").history(1, "0.1.0").ready(isTrue, api.ReasonDeployed).held(1, 2, api.ReasonRolledBackAfterFailure),
			rolloutMember{Version: "0.1.0", Phase: phaseHeld, Message: "held as it is"}},
		{"paused, and held", makeCR("web").release(3, "0.1.0").held(1, 2, api.ReasonRolledBack).condition(api.ConditionPaused, isTrue, api.ReasonPaused, "nothing waits"),
			rolloutMember{Version: "0.1.0", Phase: phasePaused, Message: "nothing waits"}},
		{"no longer paused", makeCR("web").release(1, "0.1.0").ready(isTrue, api.ReasonDeployed).condition(api.ConditionPaused, isFalse, api.ReasonPaused, ""),
			rolloutMember{Version: "0.1.0", Phase: phaseReady}},
	} {
		test.want.Namespace, test.want.Name = "shop", "web"
		if diff := cmp.Diff(test.want, member(test.of.obj(t))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func at(name, version, phase, to, reason string) rolloutMember {
	return rolloutMember{Namespace: "shop", Name: name, Version: version, Phase: phase, To: to, Reason: reason}
}

func TestCount(t *testing.T) {
	got := count([]rolloutMember{
		at("f", "0.1.0", phaseWaiting, "0.2.0", api.ReasonRolloutStopped),
		at("b", "0.2.0", phaseFailed, "", ""),
		at("a", "0.2.0", phaseReady, "", ""),
		at("e", "0.1.0", phasePaused, "0.2.0", api.ReasonPaused),
		at("d", "0.1.0", phaseHeld, "0.3.0", api.ReasonHeld),
		at("c", "0.2.0", phaseProgressing, "", ""),
		at("g", "", phaseProgressing, "", ""),
		at("h", "0.1.0", phaseWaiting, "0.2.0", api.ReasonRolloutStopped),
	})
	names := make([]string, len(got.Resources))
	for i, m := range got.Resources {
		names[i] = m.Name
	}
	if order := strings.Join(names, ""); order != "abcdefgh" {
		t.Errorf("they are in the order %s", order)
	}
	got.Resources = nil
	want := rollout{
		// What those wait for that do not stand in line is not what is to come.
		To: "0.2.0", Total: 8,
		Phases: phases{Ready: 1, Progressing: 2, Failed: 1, Waiting: 2, Held: 1, Paused: 1},
		Versions: []versionPhases{
			{Total: 1, phases: phases{Progressing: 1}},
			{Version: "0.1.0", Total: 4, phases: phases{Waiting: 2, Held: 1, Paused: 1}},
			{Version: "0.2.0", Total: 3, phases: phases{Ready: 1, Progressing: 1, Failed: 1}},
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(versionPhases{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRolloutJudges(t *testing.T) {
	waits := func(reason string) rolloutMember { return at("w", "0.1.0", phaseWaiting, "0.2.0", reason) }
	ready, moves, failed := at("r", "0.2.0", phaseReady, "", ""), at("m", "0.2.0", phaseProgressing, "", ""), at("f", "0.2.0", phaseFailed, "", "")
	for _, test := range []struct {
		name               string
		of                 []rolloutMember
		shown, resume, end end
		headline           string
	}{
		{"none", nil, endDone, endDone, endDone, "There are no podsets."},
		{"all ready", []rolloutMember{ready}, endDone, endDone, endDone, "No rollout of podsets: none waits for a chart."},
		{"one moves, one waits", []rolloutMember{ready, moves, waits(api.ReasonWaiting)}, endOpen, endOpen, endOpen, "Rollout of podsets to 0.2.0: 1 wait."},
		{"the last moves", []rolloutMember{ready, moves}, endOpen, endOpen, endOpen, "No rollout of podsets: none waits for a chart."},
		{"between two", []rolloutMember{ready, waits(api.ReasonWaiting)}, endOpen, endOpen, endOpen, "Rollout of podsets to 0.2.0: 1 wait."},
		{"stopped", []rolloutMember{failed, waits(api.ReasonRolloutStopped)}, endFailed, endFailed, endDone, "The rollout of podsets to 0.2.0 has stopped: one has failed, and 1 wait."},
		{"stopped, and one moves", []rolloutMember{failed, moves, waits(api.ReasonRolloutStopped)}, endOpen, endOpen, endOpen, "The rollout of podsets to 0.2.0 has stopped: one has failed, and 1 wait."},
		{"stopped, and the one that failed has not told", []rolloutMember{ready, waits(api.ReasonWaiting), waits(api.ReasonRolloutStopped)}, endOpen, endOpen, endOpen, "The rollout of podsets to 0.2.0 has stopped: one has failed, and 2 wait."},
		{"at its end, and one failed", []rolloutMember{ready, failed}, endFailed, endFailed, endDone, "No rollout of podsets: none waits for a chart."},
		{"paused", []rolloutMember{ready, waits(api.ReasonRolloutPaused)}, endFailed, endOpen, endDone, "The rollout of podsets to 0.2.0 is paused; 1 wait."},
		{"paused, and one moves", []rolloutMember{moves, waits(api.ReasonRolloutPaused)}, endOpen, endOpen, endOpen, "The rollout of podsets to 0.2.0 is paused; 1 wait."},
		{"not all have heard of the pause", []rolloutMember{waits(api.ReasonRolloutPaused), waits(api.ReasonWaiting)}, endFailed, endOpen, endOpen, "The rollout of podsets to 0.2.0 is paused; 2 wait."},
	} {
		r := count(test.of)
		r.Kind = "podsets"
		for name, got := range map[string][2]end{
			"rollout":        {rolledOut(r).state, test.shown},
			"rollout resume": {resumed(r).state, test.resume},
			"rollout pause":  {pauseInEffect(r).state, test.end},
		} {
			if got[0] != got[1] {
				t.Errorf("%s: %s is %q, want %q", test.name, name, got[0], got[1])
			}
		}
		if got := r.headline(); got != test.headline {
			t.Errorf("%s: %q, want %q", test.name, got, test.headline)
		}
	}
}

// TestArrived: with a version to arrive at, the end is where all are.
func TestArrived(t *testing.T) {
	before, there := at("b", "0.1.0", phaseReady, "", ""), at("t", "0.2.0", phaseReady, "", "")
	for name, test := range map[string]struct {
		of   []rolloutMember
		want end
	}{
		"it has not begun":      {[]rolloutMember{before, there}, endOpen},
		"there is none":         {nil, endDone},
		"all are there":         {[]rolloutMember{there}, endDone},
		"two are passed over":   {[]rolloutMember{there, at("h", "0.1.0", phaseHeld, "0.2.0", api.ReasonHeld), at("p", "0.1.0", phasePaused, "0.2.0", api.ReasonPaused)}, endDone},
		"one has failed":        {[]rolloutMember{before, at("f", "0.2.0", phaseFailed, "", "")}, endFailed},
		"a paused one stays so": {[]rolloutMember{at("w", "0.1.0", phaseWaiting, "0.2.0", api.ReasonRolloutPaused)}, endFailed},
	} {
		if got := reached("0.2.0", rolledOut)(count(test.of)).state; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
