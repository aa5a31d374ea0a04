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

func TestMemberOf_Phase(t *testing.T) {
	for _, test := range []struct {
		name string
		of   *crBuilder
		want rolloutMember
	}{
		{"no status yet", makeCR("web"), rolloutMember{Phase: phaseProgressing}},
		{"ready", makeCR("web").release(1, "0.2.0").ready(isTrue, api.ReasonDeployed), rolloutMember{Version: "0.2.0", Phase: phaseReady}},
		{"upgrading", makeCR("web").release(2, "0.2.0").ready(isUnknown, api.ReasonUpgrading), rolloutMember{Version: "0.2.0", Phase: phaseProgressing, Message: "some message"}},
		{"objects not ready yet", makeCR("web").release(2, "0.2.0").ready(isFalse, api.ReasonProgressing), rolloutMember{Version: "0.2.0", Phase: phaseProgressing, Message: "some message"}},
		{"failed", makeCR("web").release(2, "0.2.0").ready(isFalse, api.ReasonUpgradeFailed), rolloutMember{Version: "0.2.0", Phase: phaseFailed, Message: "UpgradeFailed: some message"}},
		{"waiting and ready", makeCR("web").release(1, "0.1.0").ready(isTrue, api.ReasonDeployed).update("0.2.0", api.ReasonWaiting, 3),
			rolloutMember{Version: "0.1.0", Phase: phaseWaiting, To: "0.2.0", Reason: api.ReasonWaiting, Place: 3, Message: "new chart"}},
		{"waiting and not ready", makeCR("web").release(1, "0.1.0").ready(isFalse, api.ReasonObjectFailed).update("0.2.0", api.ReasonRolloutStopped, 3),
			rolloutMember{Version: "0.1.0", Phase: phaseWaiting, To: "0.2.0", Reason: api.ReasonRolloutStopped, Place: 3, Message: "new chart"}},
		{"waiting for an approval", makeCR("web").release(1, "0.1.0").ready(isTrue, api.ReasonDeployed).update("0.2.0", api.ReasonApprovalRequired, 0),
			rolloutMember{Version: "0.1.0", Phase: phaseWaiting, To: "0.2.0", Reason: api.ReasonApprovalRequired, Message: "new chart"}},
		{"refused downgrade", makeCR("web").release(1, "0.2.0").ready(isTrue, api.ReasonDeployed).update("0.1.0", api.ReasonDowngradeRefused, 0),
			rolloutMember{Version: "0.2.0", Phase: phaseReady, To: "0.1.0", Reason: api.ReasonDowngradeRefused}},
		{"held", makeCR("web").release(3, "0.1.0").ready(isTrue, api.ReasonDeployed).held(1, 2, api.ReasonRolledBack).update("0.2.0", api.ReasonHeld, 0),
			rolloutMember{Version: "0.1.0", Phase: phaseHeld, To: "0.2.0", Reason: api.ReasonHeld, Message: "held message"}},
		{"rolled back after the new chart failed", makeCR("web").release(3, "0.1.0").history(3, "0.1.0").history(2, "0.2.0").history(1, "0.1.0").ready(isTrue, api.ReasonDeployed).held(1, 2, api.ReasonRolledBackAfterFailure),
			rolloutMember{Version: "0.1.0", Phase: phaseFailed, Message: "held message"}},
		{"rolled back after an edit failed", makeCR("web").release(3, "0.1.0").history(3, "0.1.0").history(2, "0.1.0").history(1, "0.1.0").ready(isTrue, api.ReasonDeployed).held(1, 2, api.ReasonRolledBackAfterFailure),
			rolloutMember{Version: "0.1.0", Phase: phaseHeld, Message: "held message"}},
		{"paused and held", makeCR("web").release(3, "0.1.0").held(1, 2, api.ReasonRolledBack).condition(api.ConditionPaused, isTrue, api.ReasonPaused, "no changes pending"),
			rolloutMember{Version: "0.1.0", Phase: phasePaused, Message: "no changes pending"}},
		{"no longer paused", makeCR("web").release(1, "0.1.0").ready(isTrue, api.ReasonDeployed).condition(api.ConditionPaused, isFalse, api.ReasonPaused, ""),
			rolloutMember{Version: "0.1.0", Phase: phaseReady}},
	} {
		test.want.Namespace, test.want.Name = "shop", "web"
		if diff := cmp.Diff(test.want, memberOf(test.of.obj(t))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func at(name, version, phase, to, reason string) rolloutMember {
	return rolloutMember{Namespace: "shop", Name: name, Version: version, Phase: phase, To: to, Reason: reason}
}

func TestSummarize_CountsPhasesPerVersion(t *testing.T) {
	got := summarize([]rolloutMember{
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
		t.Errorf("order is %s", order)
	}
	got.Resources = nil
	want := rolloutOutput{
		// Only waiting custom resources determine the version.
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
	waiting := func(reason string) rolloutMember { return at("w", "0.1.0", phaseWaiting, "0.2.0", reason) }
	ready, progressing, failed := at("r", "0.2.0", phaseReady, "", ""), at("m", "0.2.0", phaseProgressing, "", ""), at("f", "0.2.0", phaseFailed, "", "")
	const (
		none       = "No rollout of podsets in progress; no custom resource is waiting."
		inProgress = "Rollout of podsets to 0.2.0 in progress; 1 waiting."
		stopped    = "The rollout of podsets to 0.2.0 is stopped because an upgrade failed; "
		paused     = "The rollout of podsets to 0.2.0 is paused; "
	)
	for _, test := range []struct {
		name                  string
		of                    []rolloutMember
		status, resume, pause outcome
		headline              string
	}{
		{"no custom resources", nil, outcomeDone, outcomeDone, outcomeDone, "No podsets found."},
		{"all ready", []rolloutMember{ready}, outcomeDone, outcomeDone, outcomeDone, none},
		{"one progressing, one waiting", []rolloutMember{ready, progressing, waiting(api.ReasonWaiting)}, outcomeOpen, outcomeOpen, outcomeOpen, inProgress},
		{"the last progressing", []rolloutMember{ready, progressing}, outcomeOpen, outcomeOpen, outcomeOpen, none},
		{"none progressing, one waiting", []rolloutMember{ready, waiting(api.ReasonWaiting)}, outcomeOpen, outcomeOpen, outcomeOpen, inProgress},
		{"stopped", []rolloutMember{failed, waiting(api.ReasonRolloutStopped)}, outcomeFailed, outcomeFailed, outcomeDone, stopped + "1 waiting."},
		{"stopped, one progressing", []rolloutMember{failed, progressing, waiting(api.ReasonRolloutStopped)}, outcomeOpen, outcomeOpen, outcomeOpen, stopped + "1 waiting."},
		{"stopped, failure not reported yet", []rolloutMember{ready, waiting(api.ReasonWaiting), waiting(api.ReasonRolloutStopped)}, outcomeOpen, outcomeOpen, outcomeOpen, stopped + "2 waiting."},
		{"finished, one failed", []rolloutMember{ready, failed}, outcomeFailed, outcomeFailed, outcomeDone, none},
		{"paused", []rolloutMember{ready, waiting(api.ReasonRolloutPaused)}, outcomeFailed, outcomeOpen, outcomeDone, paused + "1 waiting."},
		{"paused, one progressing", []rolloutMember{progressing, waiting(api.ReasonRolloutPaused)}, outcomeOpen, outcomeOpen, outcomeOpen, paused + "1 waiting."},
		{"pause not reported by all yet", []rolloutMember{waiting(api.ReasonRolloutPaused), waiting(api.ReasonWaiting)}, outcomeFailed, outcomeOpen, outcomeOpen, paused + "2 waiting."},
	} {
		r := summarize(test.of)
		r.Kind = "podsets"
		for name, got := range map[string][2]outcome{
			"rollout status": {rolloutFinished(r).outcome, test.status},
			"rollout resume": {resumedRollout(r).outcome, test.resume},
			"rollout pause":  {pauseInEffect(r).outcome, test.pause},
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

func TestReached_WaitsUntilAllHaveTheVersion(t *testing.T) {
	before, after := at("b", "0.1.0", phaseReady, "", ""), at("t", "0.2.0", phaseReady, "", "")
	for name, test := range map[string]struct {
		of   []rolloutMember
		want outcome
	}{
		"not begun":           {[]rolloutMember{before, after}, outcomeOpen},
		"no custom resources": {nil, outcomeDone},
		"all have it":         {[]rolloutMember{after}, outcomeDone},
		"held and paused":     {[]rolloutMember{after, at("h", "0.1.0", phaseHeld, "0.2.0", api.ReasonHeld), at("p", "0.1.0", phasePaused, "0.2.0", api.ReasonPaused)}, outcomeDone},
		"one failed":          {[]rolloutMember{before, at("f", "0.2.0", phaseFailed, "", "")}, outcomeFailed},
		"rollout paused":      {[]rolloutMember{at("w", "0.1.0", phaseWaiting, "0.2.0", api.ReasonRolloutPaused)}, outcomeFailed},
	} {
		if got := reached("0.2.0", rolloutFinished)(summarize(test.of)).outcome; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
