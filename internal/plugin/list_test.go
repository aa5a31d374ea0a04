package plugin

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
)

var podSets = &meta.RESTMapping{
	GroupVersionKind: schema.GroupVersionKind{Group: "app.example.com", Version: "v1", Kind: "PodSet"}, Scope: meta.RESTScopeNamespace,
}

func TestListTable(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	web := makeCR("web").ready(isFalse, api.ReasonProgressing).release(2, "1.0.0")
	web.status.Release.Chart = "podset-1.0.0"
	web.status.Conditions[0].Message = "0 of 1\nobjects are ready"
	items := make([]listItem, 0, 2)
	for _, cr := range []*unstructured.Unstructured{web.obj(t), makeCR("new").obj(t)} {
		cr.SetKind("PodSet")
		cr.SetCreationTimestamp(metav1.NewTime(now.Add(-3 * time.Minute)))
		items = append(items, itemOf(cr))
	}
	for all, want := range map[bool]string{
		false: `
KIND     NAME   READY     REVISION   CHART          AGE   MESSAGE
PodSet   web    False     2          podset-1.0.0   3m    0 of 1 objects are ready
PodSet   new    Unknown   0          -              3m    ` + `
`,
		true: `
NAMESPACE   KIND     NAME   READY     REVISION   CHART          AGE   MESSAGE
shop        PodSet   web    False     2          podset-1.0.0   3m    0 of 1 objects are ready
shop        PodSet   new    Unknown   0          -              3m    ` + `
`,
	} {
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), listTable(items, all, now)); diff != "" {
			t.Errorf("all namespaces %v (-want +got):\n%s", all, diff)
		}
	}
	if got := listTable(nil, true, now); got != noneFound {
		t.Errorf("no custom resources: %q", got)
	}
}

func TestFindingsOf_LevelsAndReasons(t *testing.T) {
	ready := func() *crBuilder { return makeCR("web").ready(isTrue, api.ReasonDeployed) }
	edited := ready()
	edited.cr.SetGeneration(2)
	for name, test := range map[string]struct {
		of   *crBuilder
		want string
	}{
		"ready":                {ready(), ""},
		"no status":            {makeCR("web"), "Pending NotReported"},
		"edit not observed":    {edited, "Pending NotObserved"},
		"progressing":          {makeCR("web").ready(isFalse, api.ReasonProgressing), "Pending Progressing"},
		"upgrading":            {makeCR("web").ready(isUnknown, api.ReasonUpgrading), "Pending Upgrading"},
		"failed":               {makeCR("web").ready(isFalse, api.ReasonUpgradeFailed), "Failed UpgradeFailed"},
		"a refused rollback":   {ready().condition(api.ConditionRollbackRefused, isTrue, api.ReasonNoSuchRevision, ""), "Info RollbackRefused"},
		"held":                 {ready().held(2, 3, api.ReasonRolledBack), "Info Held"},
		"held and failed":      {makeCR("web").ready(isFalse, api.ReasonObjectFailed).held(2, 3, api.ReasonRolledBack), "Failed ObjectFailed, Info Held"},
		"paused":               {makeCR("web").ready(isUnknown, api.ReasonPaused).condition(api.ConditionPaused, isTrue, api.ReasonPaused, ""), "Info Paused"},
		"drifted":              {ready().condition(api.ConditionDrifted, isTrue, api.ReasonRepairFailed, ""), "Failed Drifted"},
		"invalid annotations":  {ready().condition(api.ConditionInvalidAnnotations, isTrue, "Invalid", ""), "Failed InvalidAnnotations"},
		"failed test":          {ready().condition(api.ConditionTested, isFalse, "Failed", ""), "Failed Tested"},
		"waiting in a rollout": {ready().update("2.0.0", api.ReasonWaiting, 1), ""},
	} {
		var got []string
		for _, f := range findingsOf(test.of.obj(t)) {
			got = append(got, string(f.Level)+" "+f.Reason)
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: got %v, want %s", name, got, test.want)
		}
	}
}

func TestCheckTable(t *testing.T) {
	for want, out := range map[string]checkOutput{
		noneFound:                          {},
		"2 checked, 0 failed, 0 pending\n": {Total: 2},
		"3 checked, 1 failed, 0 pending\n\nKIND     NAME   LEVEL    REASON          MESSAGE\nPodSet   web    Failed   UpgradeFailed   no\n": {
			Total: 3, Failed: 1, Findings: []finding{{objectRef{"", "PodSet", "shop", "web"}, levelFailed, "UpgradeFailed", "no"}},
		},
	} {
		if diff := cmp.Diff(want, out.table(false)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// resume of a held custom resource is the former unhold.
func TestResumeRequest_HeldAndPaused(t *testing.T) {
	paused := string(annotations.PauseChanges)
	for name, test := range map[string]struct {
		of         *crBuilder
		verb       string
		annotation string
		deprecated bool
	}{
		"paused":          {makeCR("web").annotated(api.AnnotationPause, paused), "", api.AnnotationPause, false},
		"neither":         {makeCR("web"), "", api.AnnotationPause, false},
		"held":            {makeCR("web").held(2, 3, api.ReasonRolledBack), "unhold", api.AnnotationRollbackTo, true},
		"held and paused": {makeCR("web").held(2, 3, api.ReasonRolledBack).annotated(api.AnnotationPause, paused), "", api.AnnotationPause, false},
	} {
		streams, _, _, errs := genericiooptions.NewTestIOStreams()
		s := &session{IOStreams: streams}
		r := s.resumeRequest(target{mapping: podSets, namespace: "shop", name: "web"}, test.of.obj(t))
		if r.verb != test.verb || r.annotation != test.annotation || strings.Contains(errs.String(), "deprecated: use \"kubectl chartwright unhold\"") != test.deprecated {
			t.Errorf("%s: got %+v, stderr %q", name, r, errs)
		}
	}
}
