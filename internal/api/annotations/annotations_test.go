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

// reading is a value of an annotation and the expected result.
type reading struct {
	value string
	want  Annotations
}

func TestParse_ValuesOfEachAnnotation(t *testing.T) {
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
		api.AnnotationApprove:   {{"", none}, {" 0123 ", Annotations{Approve: "0123"}}},
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
		api.AnnotationDeletionPolicy: {{"", none}, {"delete", none}, {"orphan", Annotations{Orphan: true}}, {" orphan", Annotations{Orphan: true}}, {"delete-data", Annotations{DeleteData: true}}},
		api.AnnotationDeletionOrder: {
			{"", none}, {"ignore", Annotations{IgnoreDependents: true}}, {" ignore", Annotations{IgnoreDependents: true}},
			{"true", Annotations{Problems: []string{api.AnnotationDeletionOrder + ` is "true": expected "ignore"`}}},
		},
		api.AnnotationDependsOn: {
			{"", none},
			{"Database.a.com/b", none},
			{"b", Annotations{Problems: []string{api.AnnotationDependsOn + ` is "b": "b": expected <kind>.<group>/<name> or <kind>.<group>/<namespace>/<name>, separated by commas`}}},
		},

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

// TestParse_EveryAnnotationHasATest fails for a new annotation without values in
// TestParse_ValuesOfEachAnnotation.
func TestParse_EveryAnnotationHasATest(t *testing.T) {
	if got, want := len(readers), 21; got != want {
		t.Errorf("%d annotations have readers, and %d have tests", got, want)
	}
}

// TestParse_AnsibleReconcilePeriod checks that Chartwright's annotation takes precedence
// over that of an Ansible operator.
func TestParse_AnsibleReconcilePeriod(t *testing.T) {
	const own, ansible = api.AnnotationReconcilePeriod, api.AnnotationAnsibleReconcilePeriod
	ansibleInvalid := period(time.Minute)
	ansibleInvalid.Problems = []string{ansible + ` is "soon": expected a duration such as "10m", or "0" for never`}
	ownInvalid := Annotations{Problems: []string{own + ` is "soon": expected a duration such as "10m", or "0" for never`}}
	for name, test := range map[string]struct {
		given map[string]string
		want  Annotations
	}{
		"only the alias":                {map[string]string{ansible: "30s"}, period(30 * time.Second)},
		"only the alias, 0":             {map[string]string{ansible: "0"}, period(0)},
		"both":                          {map[string]string{ansible: "30s", own: "1m"}, period(time.Minute)},
		"both, own annotation 0":        {map[string]string{ansible: "30s", own: "0"}, period(0)},
		"both, alias invalid":           {map[string]string{ansible: "soon", own: "1m"}, ansibleInvalid},
		"both, own annotation invalid":  {map[string]string{ansible: "30s", own: "soon"}, ownInvalid},
		"another annotation of Ansible": {map[string]string{"ansible.operator-sdk/verbosity": "4"}, Annotations{}},
	} {
		if diff := cmp.Diff(test.want, Parse(test.given)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestParseWithFloor_ReconcilePeriod checks that a period below the floor is raised to the
// floor and reported, for each of the annotations.
func TestParseWithFloor_ReconcilePeriod(t *testing.T) {
	const floor = 10 * time.Second
	const own, ansible = api.AnnotationReconcilePeriod, api.AnnotationAnsibleReconcilePeriod
	raised := func(key, value string) string {
		return key + ` is "` + value + `": the operator allows 10s or more, and uses 10s`
	}
	for name, test := range map[string]struct {
		given   map[string]string
		want    time.Duration
		problem string
	}{
		"above the floor":                {map[string]string{own: "11s"}, 11 * time.Second, ""},
		"equal to the floor":             {map[string]string{own: "10s"}, floor, ""},
		"below the floor":                {map[string]string{own: "9999ms"}, floor, raised(own, "9999ms")},
		"far below the floor":            {map[string]string{own: "1ns"}, floor, raised(own, "1ns")},
		"never":                          {map[string]string{own: "0"}, 0, ""},
		"alias below the floor":          {map[string]string{ansible: "300ms"}, floor, raised(ansible, "300ms")},
		"ignored alias below the floor":  {map[string]string{ansible: "300ms", own: "1m"}, time.Minute, raised(ansible, "300ms")},
		"own annotation below the floor": {map[string]string{ansible: "1m", own: "2s"}, floor, raised(own, "2s")},
		"alias of the Helm operator":     {map[string]string{api.AnnotationOperatorSDKReconcilePeriod: "2s"}, floor, raised(api.AnnotationOperatorSDKReconcilePeriod, "2s")},
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

// TestParse_OperatorSDKAnnotations checks each alias without and with Chartwright's
// annotation, which takes precedence.
func TestParse_OperatorSDKAnnotations(t *testing.T) {
	const prefix = "helm.sdk.operatorframework.io/"
	for name, test := range map[string]struct {
		value, own string
		want, both Annotations
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
		if diff := cmp.Diff(test.want, Parse(map[string]string{prefix + name: test.value})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if !IsKnown(prefix + name) {
			t.Errorf("%s is not known", name)
		}
		if test.own == "" {
			continue
		}
		if diff := cmp.Diff(test.both, Parse(map[string]string{prefix + name: test.value, api.Domain + "/" + name: test.own})); diff != "" {
			t.Errorf("%s with Chartwright's annotation (-want +got):\n%s", name, diff)
		}
	}
	// The alias of the Helm operator takes precedence over that of Ansible operators.
	both := map[string]string{prefix + "reconcile-period": "1m", api.AnnotationAnsibleReconcilePeriod: "2m"}
	if diff := cmp.Diff(period(time.Minute), Parse(both)); diff != "" {
		t.Errorf("the period (-want +got):\n%s", diff)
	}
	// Other annotations of the operator-sdk are ignored.
	if diff := cmp.Diff(Annotations{}, Parse(map[string]string{prefix + "chart": "web", prefix + "what": "x"})); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
	if got := Parse(map[string]string{prefix + "uninstall-wait": "yes"}); len(got.Problems) != 1 || got.UninstallWait {
		t.Errorf("a bad value: %+v", got)
	}
}

func TestIsKnown(t *testing.T) {
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
			t.Errorf("IsKnown(%q) = %v, want %v", key, !want, want)
		}
	}
}

func TestParse_ReportsInvalidValues(t *testing.T) {
	for key, test := range map[string]struct {
		values []string
		text   string
	}{
		api.AnnotationPause:                 {[]string{"yes", "including_deletion", "including-deletion true", "2"}, `expected "true", "false" or "including-deletion"`},
		api.AnnotationReconcilePeriod:       {[]string{"", "10", "-1m", "soon", "1d", "-1ns"}, `expected a duration such as "10m", or "0" for never`},
		api.AnnotationDeletionPolicy:        {[]string{"keep", "Orphan", "true"}, `expected "orphan", "delete" or "delete-data"`},
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
				t.Errorf("%s: %q changes the result (-want +got):\n%s", key, value, diff)
			}
		}
	}
}

// TestParse_MalformedRollbackRequests checks that Parse returns malformed requests without
// a problem, because the reconciler reports them with the available revisions.
func TestParse_MalformedRollbackRequests(t *testing.T) {
	for _, value := range []string{"0", "-1", "+", "two", "2.0", "@2", "@", "Previous", "latest", "previous 2", "none,2", "99999999999999999999"} {
		got := Parse(map[string]string{api.AnnotationRollbackTo: value})
		if diff := cmp.Diff(rollback(Rollback{Value: strings.TrimSpace(value)}), got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", value, diff)
		}
		if !got.Rollback.Malformed() {
			t.Errorf("%q is not malformed", value)
		}
	}
	for _, value := range []string{"2", "previous", "none", "2@x"} {
		if Parse(map[string]string{api.AnnotationRollbackTo: value}).Rollback.Malformed() {
			t.Errorf("%q is malformed", value)
		}
	}
}

func TestParse_ReportsUnknownAnnotations(t *testing.T) {
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
	known := "abort, approve, deletion-order, deletion-policy, depends-on, force, install-description, install-disable-hooks, pause, reconcile-period, reconcile-requested-at, " +
		"rollback-to, take-ownership, test, uninstall-description, uninstall-disable-hooks, uninstall-wait, upgrade-description, upgrade-disable-hooks"
	want := Annotations{UninstallWait: true, Problems: []string{
		"unknown annotation " + api.Domain + "/: expected one of " + known,
		api.AnnotationReconcilePeriod + ` is "what?": expected a duration such as "10m", or "0" for never`,
		"unknown annotation " + api.Domain + "/rolback-to: expected one of " + known,
		api.AnnotationTakeOwnership + ` is "what?": expected "true" or "false"`,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestParse_LongValues checks that a long value is shortened in a problem, and complete in
// a request.
func TestParse_LongValues(t *testing.T) {
	long := strings.Repeat("ä", 100_000)
	got := Parse(map[string]string{api.AnnotationPause: long, api.AnnotationForce: long, api.AnnotationRollbackTo: "2@" + long})
	if len(got.Problems) != 1 || len(got.Problems[0]) > 200 || !strings.Contains(got.Problems[0], "äää…") {
		t.Errorf("the problems are %.300q", got.Problems)
	}
	if got.Force != long || got.Rollback.Value != "2@"+long || got.Rollback.Revision != 2 {
		t.Error("a long request was shortened")
	}
	odd := "x" + long
	if problem := Parse(map[string]string{api.AnnotationPause: odd}).Problems[0]; strings.ContainsRune(problem, '\ufffd') || strings.Contains(problem, `\x`) {
		t.Errorf("a character was split: %q", problem)
	}
	if diff := cmp.Diff(Annotations{}, Parse(nil)); diff != "" {
		t.Errorf("without annotations (-want +got):\n%s", diff)
	}
}

// FuzzParse checks that no annotation causes a panic or changes how other annotations are
// read.
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
		single := Parse(map[string]string{key: value})
		others[key] = value
		got := Parse(others)
		if diff := cmp.Diff(single.Problems, got.Problems); diff != "" {
			t.Fatalf("problems with other annotations (-without +with):\n%s", diff)
		}
		if len(got.Problems) > 1 {
			t.Fatalf("one annotation has %d problems", len(got.Problems))
		}
		if len(got.Problems) == 1 {
			// An invalid annotation is ignored.
			got.Problems = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("with an invalid annotation (-want +got):\n%s", diff)
			}
			return
		}
		// A valid annotation changes nothing else.
		for other := range others {
			if other == key {
				continue
			}
			rest := map[string]string{other: others[other]}
			if missing(Parse(rest), got) {
				t.Fatalf("%s is missing with %s: %q", other, key, value)
			}
		}
	})
}

// missing reports whether a request or setting of the first argument is missing from the
// second.
func missing(one, all Annotations) bool {
	return one.Rollback != nil && (all.Rollback == nil || *all.Rollback != *one.Rollback) ||
		one.Pause != PauseNot && all.Pause != one.Pause ||
		one.Reconcile != "" && all.Reconcile != one.Reconcile || one.Force != "" && all.Force != one.Force || one.Test != "" && all.Test != one.Test ||
		one.ReconcilePeriod != nil && (all.ReconcilePeriod == nil || *all.ReconcilePeriod != *one.ReconcilePeriod) ||
		one.Orphan && !all.Orphan || one.TakeOwnership && !all.TakeOwnership || one.UninstallWait && !all.UninstallWait ||
		one.Install.DisableHooks && !all.Install.DisableHooks || one.Install.Description != "" && all.Install.Description != one.Install.Description
}
