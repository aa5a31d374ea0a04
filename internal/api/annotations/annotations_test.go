package annotations

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/api"
)

func period(d time.Duration) Annotations { return Annotations{ReconcilePeriod: &d} }

func rollback(r Rollback) Annotations { return Annotations{Rollback: &r} }

// reading is a value and what it asks for.
type reading struct {
	value string
	want  Annotations
}

// TestEveryAnnotation: each alone, with what it may hold.
func TestEveryAnnotation(t *testing.T) {
	none := Annotations{}
	for key, values := range map[string][]reading{
		api.AnnotationRollbackTo: {
			{"", none},
			{" ", none},
			{"2", rollback(Rollback{Value: "2", Revision: 2})},
			{" 2\n", rollback(Rollback{Value: "2", Revision: 2})},
			{"2@again", rollback(Rollback{Value: "2@again", Revision: 2})},
			{"2 @ again", rollback(Rollback{Value: "2 @ again", Revision: 2})},
			{"2@", rollback(Rollback{Value: "2@", Revision: 2})},
			{"2@3@4", rollback(Rollback{Value: "2@3@4", Revision: 2})},
			{"2@g17", rollback(Rollback{Value: "2@g17", Revision: 2, Generation: 17})},
			{" 2 @ g17 ", rollback(Rollback{Value: "2 @ g17", Revision: 2, Generation: 17})},
			{"previous@g4@noon", rollback(Rollback{Value: "previous@g4@noon", Previous: true, Generation: 4})},
			{WithGeneration("2", 17, "now"), rollback(Rollback{Value: "2@g17@now", Revision: 2, Generation: 17})},
			{"2@g0", rollback(Rollback{Value: "2@g0", Revision: 2})},
			{"2@g-3", rollback(Rollback{Value: "2@g-3", Revision: 2})},
			{"2@g17b", rollback(Rollback{Value: "2@g17b", Revision: 2})},
			{"2@g99999999999999999999", rollback(Rollback{Value: "2@g99999999999999999999", Revision: 2})},
			{"2@noon@g17", rollback(Rollback{Value: "2@noon@g17", Revision: 2})},
			{"previous", rollback(Rollback{Value: "previous", Previous: true})},
			{"previous@noon", rollback(Rollback{Value: "previous@noon", Previous: true})},
			{"none", rollback(Rollback{Value: "none", None: true})},
			{"none@2", rollback(Rollback{Value: "none@2", None: true})},
		},
		api.AnnotationPause: {
			{"", none},
			{"true", Annotations{Pause: PauseChanges}},
			{" true ", Annotations{Pause: PauseChanges}},
			{"True", Annotations{Pause: PauseChanges}},
			{"1", Annotations{Pause: PauseChanges}},
			{"false", none},
			{"including-deletion", Annotations{Pause: PauseIncludingDeletion}},
			{"including-deletion\n", Annotations{Pause: PauseIncludingDeletion}},
		},
		api.AnnotationReconcile: {{"", none}, {"now", Annotations{Reconcile: "now"}}, {" now ", Annotations{Reconcile: "now"}}},
		api.AnnotationForce:     {{"", none}, {"now", Annotations{Force: "now"}}, {"true", Annotations{Force: "true"}}},
		api.AnnotationTest:      {{"", none}, {"now", Annotations{Test: "now"}}, {"1", Annotations{Test: "1"}}},
		api.AnnotationAbort: {
			{"", none},
			{"2", Annotations{Abort: "2"}},
			{" 2 ", Annotations{Abort: "2"}},
			{"uninstall", Annotations{Abort: "uninstall"}},
			{"test", Annotations{Abort: "test"}},
			{"0", Annotations{Problems: []string{api.AnnotationAbort + ` is "0": expected the revision of the action to abort, "uninstall" or "test"`}}},
			{"true", Annotations{Problems: []string{api.AnnotationAbort + ` is "true": expected the revision of the action to abort, "uninstall" or "test"`}}},
		},
		api.AnnotationReconcilePeriod: {
			{"10m", period(10 * time.Minute)}, {"0", period(0)}, {"0s", period(0)}, {"100ms", period(100 * time.Millisecond)}, {" 1h30m ", period(90 * time.Minute)},
		},
		api.AnnotationDeletionPolicy: {{"", none}, {"delete", none}, {"orphan", Annotations{Orphan: true}}, {" orphan", Annotations{Orphan: true}}},

		api.AnnotationTakeOwnership:         {{"", none}, {"true", Annotations{TakeOwnership: true}}, {"false", none}, {"T", Annotations{TakeOwnership: true}}},
		api.AnnotationUninstallWait:         {{"", none}, {"true", Annotations{UninstallWait: true}}, {"false", none}},
		api.AnnotationInstallDisableHooks:   {{"", none}, {"true", Annotations{Install: Action{DisableHooks: true}}}, {"false", none}},
		api.AnnotationUpgradeDisableHooks:   {{"", none}, {"true", Annotations{Upgrade: Action{DisableHooks: true}}}, {"false", none}},
		api.AnnotationUninstallDisableHooks: {{"", none}, {"true", Annotations{Uninstall: Action{DisableHooks: true}}}, {"false", none}},
		api.AnnotationInstallDescription:    {{"", none}, {"why not", Annotations{Install: Action{Description: "why not"}}}},
		api.AnnotationUpgradeDescription:    {{"", none}, {"why not", Annotations{Upgrade: Action{Description: "why not"}}}},
		api.AnnotationUninstallDescription:  {{"", none}, {"why not", Annotations{Uninstall: Action{Description: "why not"}}}},
		api.AnnotationUpgradeForce:          {{"", none}, {"true", Annotations{ForceUpgrades: true}}, {"1", Annotations{ForceUpgrades: true}}, {"false", none}},
		api.AnnotationRollbackForce:         {{"", none}, {"true", Annotations{ForceRollbacks: true}}, {"0", none}, {"false", none}},
	} {
		for _, test := range values {
			got := Parse(map[string]string{key: test.value})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: %q (-want +got):\n%s", key, test.value, diff)
			}
		}
	}
}

// TestEveryAnnotationIsTested: a new one needs its values above.
func TestEveryAnnotationIsTested(t *testing.T) {
	if got, want := len(readers), 18; got != want {
		t.Errorf("%d annotations are read, and %d are tested", got, want)
	}
}

// TestReconcilePeriodOfAnsible: an Ansible operator's word for it counts where
// ours is not there.
func TestReconcilePeriodOfAnsible(t *testing.T) {
	const ours, theirs = api.AnnotationReconcilePeriod, api.AnnotationAnsibleReconcilePeriod
	wrong := period(time.Minute)
	wrong.Problems = []string{theirs + ` is "soon": expected a duration such as "10m", or "0" for never`}
	oursWrong := Annotations{Problems: []string{ours + ` is "soon": expected a duration such as "10m", or "0" for never`}}
	for name, test := range map[string]struct {
		given map[string]string
		want  Annotations
	}{
		"alone":            {map[string]string{theirs: "30s"}, period(30 * time.Second)},
		"alone, for never": {map[string]string{theirs: "0"}, period(0)},
		"with ours":        {map[string]string{theirs: "30s", ours: "1m"}, period(time.Minute)},
		"with ours of 0":   {map[string]string{theirs: "30s", ours: "0"}, period(0)},
		"wrong, with ours": {map[string]string{theirs: "soon", ours: "1m"}, wrong},
		"with ours wrong":  {map[string]string{theirs: "30s", ours: "soon"}, oursWrong},
		"another word":     {map[string]string{"ansible.operator-sdk/verbosity": "4"}, Annotations{}},
	} {
		if diff := cmp.Diff(test.want, Parse(test.given)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestParseWithFloor_ReconcilePeriod: a period below the floor is raised to the
// floor, under each key, and reported as long as the annotation is there.
func TestParseWithFloor_ReconcilePeriod(t *testing.T) {
	const floor = 10 * time.Second
	const ours, ansible = api.AnnotationReconcilePeriod, api.AnnotationAnsibleReconcilePeriod
	raised := func(key, value string) string {
		return key + ` is "` + value + `": the operator allows 10s or more, and uses 10s`
	}
	for name, test := range map[string]struct {
		given   map[string]string
		want    time.Duration
		problem string
	}{
		"above":                   {map[string]string{ours: "11s"}, 11 * time.Second, ""},
		"the floor":               {map[string]string{ours: "10s"}, floor, ""},
		"below":                   {map[string]string{ours: "9999ms"}, floor, raised(ours, "9999ms")},
		"far below":               {map[string]string{ours: "1ns"}, floor, raised(ours, "1ns")},
		"never":                   {map[string]string{ours: "0"}, 0, ""},
		"another key":             {map[string]string{ansible: "300ms"}, floor, raised(ansible, "300ms")},
		"a key that is overruled": {map[string]string{ansible: "300ms", ours: "1m"}, time.Minute, raised(ansible, "300ms")},
		"the key that counts":     {map[string]string{ansible: "1m", ours: "2s"}, floor, raised(ours, "2s")},
		"of the operator-sdk":     {map[string]string{api.AnnotationOperatorSDKReconcilePeriod: "2s"}, floor, raised(api.AnnotationOperatorSDKReconcilePeriod, "2s")},
	} {
		want := period(test.want)
		if test.problem != "" {
			want.Problems = []string{test.problem}
		}
		if diff := cmp.Diff(want, ParseWithFloor(test.given, floor)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAnnotationsOfTheOperatorSDK: each by its exact name, alone and where ours
// says otherwise.
func TestAnnotationsOfTheOperatorSDK(t *testing.T) {
	const theirs = "helm.sdk.operatorframework.io/"
	for name, test := range map[string]struct {
		value, ours string
		want, both  Annotations
	}{
		"upgrade-force":           {value: "true", want: Annotations{ForceUpgrades: true}},
		"rollback-force":          {value: "true", want: Annotations{ForceRollbacks: true}},
		"uninstall-wait":          {"true", "false", Annotations{UninstallWait: true}, Annotations{}},
		"reconcile-period":        {"36s", "2m", period(36 * time.Second), period(2 * time.Minute)},
		"install-disable-hooks":   {"true", "false", Annotations{Install: Action{DisableHooks: true}}, Annotations{}},
		"upgrade-disable-hooks":   {"true", "false", Annotations{Upgrade: Action{DisableHooks: true}}, Annotations{}},
		"uninstall-disable-hooks": {"true", "false", Annotations{Uninstall: Action{DisableHooks: true}}, Annotations{}},
		"install-description":     {"a", "b", Annotations{Install: Action{Description: "a"}}, Annotations{Install: Action{Description: "b"}}},
		"upgrade-description":     {"a", "b", Annotations{Upgrade: Action{Description: "a"}}, Annotations{Upgrade: Action{Description: "b"}}},
		"uninstall-description":   {"a", "b", Annotations{Uninstall: Action{Description: "a"}}, Annotations{Uninstall: Action{Description: "b"}}},
	} {
		if diff := cmp.Diff(test.want, Parse(map[string]string{theirs + name: test.value})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if !IsKnown(theirs + name) {
			t.Errorf("a change of %s calls for no pass", name)
		}
		if test.ours == "" {
			continue
		}
		if diff := cmp.Diff(test.both, Parse(map[string]string{theirs + name: test.value, api.Domain + "/" + name: test.ours})); diff != "" {
			t.Errorf("%s beside ours (-want +got):\n%s", name, diff)
		}
	}
	// Both of the operator-sdk's say so: the Helm operator's counts.
	both := map[string]string{theirs + "reconcile-period": "1m", api.AnnotationAnsibleReconcilePeriod: "2m"}
	if diff := cmp.Diff(period(time.Minute), Parse(both)); diff != "" {
		t.Errorf("the period (-want +got):\n%s", diff)
	}
	// Its other keys are none of our business, and no problem either.
	if diff := cmp.Diff(Annotations{}, Parse(map[string]string{theirs + "chart": "web", theirs + "what": "x"})); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
	if got := Parse(map[string]string{theirs + "uninstall-wait": "yes"}); len(got.Problems) != 1 || got.UninstallWait {
		t.Errorf("a bad value: %+v", got)
	}
}

func TestHeeded(t *testing.T) {
	for key, want := range map[string]bool{
		api.AnnotationPause:                  true,
		api.Domain + "/what":                 true,
		api.AnnotationAnsibleReconcilePeriod: true,
		"ansible.operator-sdk/verbosity":     false,
		"ansible.operator-sdk/":              false,
		"x" + api.Domain + "/pause":          false,
		"kubectl.kubernetes.io/restartedAt":  false,
		"reconcile-period":                   false,
		"":                                   false,
	} {
		if IsKnown(key) != want {
			t.Errorf("%q is heeded: %v, want %v", key, !want, want)
		}
	}
}

func TestBadValues(t *testing.T) {
	for key, test := range map[string]struct {
		values []string
		text   string
	}{
		api.AnnotationPause:                 {[]string{"yes", "including_deletion", "including-deletion true", "2"}, `expected "true", "false" or "including-deletion"`},
		api.AnnotationReconcilePeriod:       {[]string{"", "10", "-1m", "soon", "1d", "-1ns"}, `expected a duration such as "10m", or "0" for never`},
		api.AnnotationDeletionPolicy:        {[]string{"keep", "Orphan", "true"}, `expected "orphan" or "delete"`},
		api.AnnotationTakeOwnership:         {[]string{"yes", "on"}, `expected "true" or "false"`},
		api.AnnotationUninstallWait:         {[]string{"yes", "10m"}, `expected "true" or "false"`},
		api.AnnotationInstallDisableHooks:   {[]string{"yes"}, `expected "true" or "false"`},
		api.AnnotationUpgradeDisableHooks:   {[]string{"no"}, `expected "true" or "false"`},
		api.AnnotationUninstallDisableHooks: {[]string{"tru"}, `expected "true" or "false"`},
	} {
		for _, value := range test.values {
			got := Parse(map[string]string{key: value})
			if len(got.Problems) != 1 || !strings.HasPrefix(got.Problems[0], key+" is ") || !strings.Contains(got.Problems[0], test.text) {
				t.Errorf("%s: %q has the problems %q, want one with %q", key, value, got.Problems, test.text)
			}
			if diff := cmp.Diff(Annotations{Problems: got.Problems}, got); diff != "" {
				t.Errorf("%s: %q counts as something (-nothing +got):\n%s", key, value, diff)
			}
		}
	}
}

// TestMalformedRollbacks: they are requests that cannot be met, and no problem
// of their own, for whoever asks is told what can be had.
func TestMalformedRollbacks(t *testing.T) {
	for _, value := range []string{"0", "-1", "+", "two", "2.0", "@2", "@", "Previous", "latest", "previous 2", "none,2", "99999999999999999999"} {
		got := Parse(map[string]string{api.AnnotationRollbackTo: value})
		if diff := cmp.Diff(rollback(Rollback{Value: strings.TrimSpace(value)}), got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", value, diff)
		}
		if !got.Rollback.Malformed() {
			t.Errorf("%q could be met", value)
		}
	}
	for _, value := range []string{"2", "previous", "none", "2@x"} {
		if Parse(map[string]string{api.AnnotationRollbackTo: value}).Rollback.Malformed() {
			t.Errorf("%q is malformed", value)
		}
	}
}

func TestUnknownAnnotations(t *testing.T) {
	got := Parse(map[string]string{
		api.Domain + "/rolback-to":    "2",
		api.Domain + "/":              "",
		"example.com/rollback-to":     "2",
		"rollback-to":                 "2",
		api.Domain + "x/pause":        "true",
		"x." + api.Domain + "/pause":  "true",
		api.AnnotationOwner:           "Other.app.example.com/apps/other",
		api.AnnotationApplied:         "0123",
		api.AnnotationDrift:           api.DriftIgnore,
		api.AnnotationUninstallWait:   "true",
		api.AnnotationTakeOwnership:   "what?",
		api.AnnotationReconcilePeriod: "what?",
	})
	known := "abort, deletion-policy, force, install-description, install-disable-hooks, pause, reconcile-period, reconcile-requested-at, " +
		"rollback-to, take-ownership, test, uninstall-description, uninstall-disable-hooks, uninstall-wait, upgrade-description, upgrade-disable-hooks"
	want := Annotations{UninstallWait: true, Problems: []string{
		api.Domain + "/ is not known; known are " + known,
		api.AnnotationReconcilePeriod + ` is "what?": expected a duration such as "10m", or "0" for never`,
		api.Domain + "/rolback-to is not known; known are " + known,
		api.AnnotationTakeOwnership + ` is "what?": expected "true" or "false"`,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLongValues: a condition stays readable, and a request stays the one that
// it is, whole.
func TestLongValues(t *testing.T) {
	long := strings.Repeat("ä", 100_000)
	got := Parse(map[string]string{api.AnnotationPause: long, api.AnnotationForce: long, api.AnnotationRollbackTo: "2@" + long})
	if len(got.Problems) != 1 || len(got.Problems[0]) > 200 || !strings.Contains(got.Problems[0], "äää…") {
		t.Errorf("the problems are %.300q", got.Problems)
	}
	if got.Force != long || got.Rollback.Value != "2@"+long || got.Rollback.Revision != 2 {
		t.Error("a long request was cut")
	}
	odd := "x" + long
	if problem := Parse(map[string]string{api.AnnotationPause: odd}).Problems[0]; strings.ContainsRune(problem, '\ufffd') || strings.Contains(problem, `\x`) {
		t.Errorf("a letter was cut in two: %q", problem)
	}
	if diff := cmp.Diff(Annotations{}, Parse(nil)); diff != "" {
		t.Errorf("no annotations ask for something:\n%s", diff)
	}
}

// FuzzParse: whatever stands in one annotation, it is read without a panic and
// takes nothing from the others.
func FuzzParse(f *testing.F) {
	for _, seed := range []struct{ key, value string }{
		{api.AnnotationRollbackTo, "2@again"},
		{api.AnnotationRollbackTo, "-@"},
		{api.AnnotationPause, "including-deletion"},
		{api.AnnotationPause, "\xff\xfe"},
		{api.AnnotationReconcilePeriod, "-9223372036854775808ns"},
		{api.AnnotationReconcilePeriod, "1e9h"},
		{api.AnnotationAnsibleReconcilePeriod, "30s"},
		{api.AnnotationAnsibleReconcilePeriod, "-30s"},
		{api.AnnotationDeletionPolicy, strings.Repeat("\xf0\x9f", 64)},
		{api.Domain + "/", ""},
		{api.Domain + "/what", strings.Repeat("x", 300)},
		{"", ""},
	} {
		f.Add(seed.key, seed.value)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		others := map[string]string{
			api.AnnotationRollbackTo: "3", api.AnnotationPause: "true", api.AnnotationReconcile: "r", api.AnnotationForce: "f",
			api.AnnotationTest: "t", api.AnnotationReconcilePeriod: "1m", api.AnnotationDeletionPolicy: "orphan",
			api.AnnotationTakeOwnership: "true", api.AnnotationUninstallWait: "true",
			api.AnnotationInstallDisableHooks: "true", api.AnnotationInstallDescription: "d",
		}
		delete(others, key)
		want := Parse(others)
		if len(want.Problems) > 0 {
			t.Fatal(want.Problems)
		}
		alone := Parse(map[string]string{key: value})
		others[key] = value
		got := Parse(others)
		if diff := cmp.Diff(alone.Problems, got.Problems); diff != "" {
			t.Fatalf("problems alone and with others:\n%s", diff)
		}
		if len(got.Problems) > 1 {
			t.Fatalf("one annotation has %d problems", len(got.Problems))
		}
		if len(got.Problems) == 1 {
			// What cannot be understood counts as not there.
			got.Problems = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("without and with a bad annotation:\n%s", diff)
			}
			return
		}
		// And what can be adds only itself.
		for other := range others {
			if other == key {
				continue
			}
			rest := map[string]string{other: others[other]}
			if missing(Parse(rest), got) {
				t.Fatalf("%s is lost beside %s: %q", other, key, value)
			}
		}
	})
}

// missing reports whether something that one asks for is not asked for by all.
func missing(one, all Annotations) bool {
	return one.Rollback != nil && (all.Rollback == nil || *all.Rollback != *one.Rollback) ||
		one.Pause != PauseNot && all.Pause != one.Pause ||
		one.Reconcile != "" && all.Reconcile != one.Reconcile || one.Force != "" && all.Force != one.Force || one.Test != "" && all.Test != one.Test ||
		one.ReconcilePeriod != nil && (all.ReconcilePeriod == nil || *all.ReconcilePeriod != *one.ReconcilePeriod) ||
		one.Orphan && !all.Orphan || one.TakeOwnership && !all.TakeOwnership || one.UninstallWait && !all.UninstallWait ||
		one.Install.DisableHooks && !all.Install.DisableHooks || one.Install.Description != "" && all.Install.Description != one.Install.Description
}
