package plugin

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
)

func TestStatusTree(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := metav1.NewTime(now.Add(-3 * time.Minute))
	out := statusOutput{
		objectRef: objectRef{Kind: "PodSet", Namespace: "shop", Name: "web"}, Ready: metav1.ConditionFalse, State: "Held (rev 2)", Message: "1 of 4 objects are ready", Warning: "UpgradeFailed: no",
		Conditions: []metav1.Condition{{Type: "Held", Status: "True", Reason: "RolledBack", Message: "Revision 2\nis held"}},
		Release:    &api.ReleaseStatus{Name: "web", Namespace: "shop", Revision: 4, Status: "deployed", Chart: "podset-1.0.0", AppVersion: "9", LastDeployed: &at},
		Objects: []objectOutput{
			{objectRef: objectRef{Kind: "ConfigMap", Namespace: "other", Name: "web"}, Ready: metav1.ConditionTrue},
			{objectRef: objectRef{Kind: "Deployment", Namespace: "shop", Name: "web"}, Ready: metav1.ConditionFalse, Reason: "LessReplicas", Message: "0/2", Cause: &causeOutput{
				objectRef: objectRef{Kind: "Pod", Namespace: "shop", Name: "web-1"}, Reason: "ImagePullBackOff", Message: "Back-off", Warning: "Failed: no such image",
			}},
			{objectRef: objectRef{Kind: "Job", Namespace: "shop", Name: "web"}, Ready: metav1.ConditionFalse, Reason: "Failed", Cause: &causeOutput{
				objectRef: objectRef{Kind: "Job", Namespace: "shop", Name: "web"}, Reason: "Deadline", Warning: "Late",
			}},
			{objectRef: objectRef{Kind: "Widget", Name: "web"}, Ready: metav1.ConditionUnknown},
		},
		Hooks: []objectOutput{
			{objectRef: objectRef{Kind: "Job", Namespace: "shop", Name: "up"}, Ready: metav1.ConditionFalse, Reason: "Stuck", Cause: &causeOutput{
				objectRef: objectRef{Kind: "Pod", Namespace: "shop", Name: "up-1"}, Reason: "ImagePullBackOff",
			}},
		},
	}
	text := painter{}.tree(branch{name: "NAME", state: "READY", text: "STATUS"}, statusTree(out, now))
	const want = `
NAME                       READY    STATUS
PodSet shop/web            False    Held (rev 2): 1 of 4 objects are ready
├─ last warning                     UpgradeFailed: no
├─ Held                             RolledBack: Revision 2 is held
└─ Release web                      revision 4, deployed, chart podset-1.0.0, app 9, 3m ago
   ├─ ConfigMap other/web  True
   ├─ Deployment web       False    LessReplicas: 0/2
   │  └─ Pod web-1         False    ImagePullBackOff: Back-off
   │     └─ last warning            Failed: no such image
   ├─ Job web              False    Failed
   │  ├─ cause                      Deadline
   │  └─ last warning               Late
   ├─ Widget web           Unknown
   └─ Hook Job up          False    Stuck
      └─ Pod up-1          False    ImagePullBackOff
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Release = nil
	if tree := statusTree(out, now); len(tree.children) != 2 {
		t.Errorf("without a release, the tree is %+v", tree)
	}
}

func TestConditionsOf_ReturnsShownConditions(t *testing.T) {
	var status api.Status
	for _, c := range []struct{ kind, status string }{
		{"Ready", "False"}, {"Tested", "False"}, {"PermissionsMissing", "True"}, {"Deployed", "True"}, {"Paused", "False"}, {"UpdateAvailable", "True"}, {"Held", "True"}, {"Foreign", "True"},
	} {
		status.Conditions = append(status.Conditions, metav1.Condition{Type: c.kind, Status: metav1.ConditionStatus(c.status)})
	}
	var got []string
	for _, c := range conditionsOf(status) {
		got = append(got, c.Type)
	}
	if want := "Held UpdateAvailable PermissionsMissing Tested"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestCanList(t *testing.T) {
	rule := func(verbs, groups, resources string, names ...string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{Verbs: strings.Split(verbs, " "), APIGroups: strings.Split(groups, " "), Resources: strings.Split(resources, " "), ResourceNames: names}
	}
	for name, test := range map[string]struct {
		rule authorizationv1.ResourceRule
		want bool
	}{
		"same resource":   {rule("get list", "batch apps", "jobs deployments"), true},
		"all resources":   {rule("*", "*", "*"), true},
		"other verb":      {rule("get", "apps", "deployments"), false},
		"other group":     {rule("list", "batch", "deployments"), false},
		"other resource":  {rule("list", "apps", "deployments/scale"), false},
		"some names only": {rule("list", "apps", "deployments", "web"), false},
		"empty rule":      {authorizationv1.ResourceRule{}, false},
	} {
		if got := canList([]authorizationv1.ResourceRule{rule("list", "", "pods"), test.rule}, "apps", "deployments"); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSetReported(t *testing.T) {
	notReady := api.ObjectStatus{Kind: "Deployment", Namespace: "shop", Name: "web", Reason: "LessReplicas", Message: "0/2"}
	for _, test := range []struct {
		name      string
		resources *api.ResourcesStatus
		object    objectOutput
		want      metav1.ConditionStatus
	}{
		{"nothing reported", nil, objectOutput{objectRef: objectRef{Kind: "Deployment", Name: "web"}}, metav1.ConditionUnknown},
		{"object reported", &api.ResourcesStatus{Total: 2, Ready: 1, NotReady: []api.ObjectStatus{notReady}}, objectOutput{objectRef: objectRef{Kind: "Deployment", Namespace: "shop", Name: "web"}}, metav1.ConditionFalse},
		{"only other objects reported", &api.ResourcesStatus{Total: 2, Ready: 1, NotReady: []api.ObjectStatus{notReady}}, objectOutput{objectRef: objectRef{Kind: "Deployment", Namespace: "shop", Name: "api"}}, metav1.ConditionTrue},
		{"list of reported objects is cut off", &api.ResourcesStatus{Total: 20, Ready: 1, NotReady: []api.ObjectStatus{notReady}}, objectOutput{objectRef: objectRef{Kind: "Job", Namespace: "shop", Name: "web"}}, metav1.ConditionUnknown},
	} {
		x := &objectSearch{status: api.Status{Resources: test.resources}}
		f := test.object
		f.Ready = metav1.ConditionUnknown
		x.setReported(&f)
		if f.Ready != test.want || (f.Reason != "") != (test.want == metav1.ConditionFalse) {
			t.Errorf("%s: got %+v", test.name, f)
		}
	}
}

func TestPermissionOf(t *testing.T) {
	for text, want := range map[string]permission{
		"list events":          {verb: "list", resource: schema.GroupResource{Resource: "events"}},
		"get deployments.apps": {verb: "get", resource: schema.GroupResource{Group: "apps", Resource: "deployments"}},
	} {
		want.namespace, want.purpose = "shop", "to find why objects are not ready"
		if got := permissionOf(text, "shop").permission; got != want {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

func TestNotObserved_NamesGenerations(t *testing.T) {
	cr := &unstructured.Unstructured{}
	cr.SetGeneration(4)
	if message := notObserved(cr, api.Status{ObservedGeneration: 4}); message != "" {
		t.Errorf("observed generation is current: got %q", message)
	}
	if message := notObserved(cr, api.Status{ObservedGeneration: 3}); !strings.Contains(message, "generation 3 of 4") {
		t.Errorf("observed generation is old: got %q", message)
	}
}

// TestShownStatus_Deletion: status, list and check show that a custom resource is being deleted,
// also if the operator reports what the deletion waits for.
func TestShownStatus_Deletion(t *testing.T) {
	const since = "being deleted since 2026-01-02T03:04:05Z; finalizers: chartwright.dev/uninstall, backup"
	leaving := func() *crBuilder { return makeCR("web").deleting() }
	unobserved := leaving().ready(isFalse, api.ReasonObjectFailed)
	unobserved.cr.SetGeneration(2)
	for name, test := range map[string]struct {
		of             *crBuilder
		state, message string
		// level is that of check.
		level level
	}{
		"the operator has not reported it":   {leaving().ready(isTrue, api.ReasonDeployed), api.ReasonUninstalling, since, levelPending},
		"the operator has not observed it":   {unobserved, api.ReasonUninstalling, since + "; the operator did not observe the last edit or deletion yet", levelPending},
		"the operator has reported nothing":  {leaving(), api.ReasonUninstalling, since, levelPending},
		"the release is uninstalled":         {leaving().ready(isFalse, api.ReasonUninstalling), "", "some message; " + since, levelPending},
		"the operator reports what it needs": {leaving().ready(isFalse, api.ReasonInUse), "", "some message; " + since, levelFailed},
	} {
		t.Run(name, func(t *testing.T) {
			cr := test.of.obj(t)
			shown := shownStatus(cr)
			item, findings := itemOf(cr), findingsOf(cr)
			if shown.State != test.state || item.Ready != isFalse || !strings.HasPrefix(item.Message, test.message) {
				t.Errorf("the state is %q, list shows %+v", shown.State, item)
			}
			if len(findings) != 1 || findings[0].Level != test.level || findings[0].Message != item.Message {
				t.Errorf("check finds %+v", findings)
			}
			if got := treeState(cr, true); got.Ready != isFalse || got.Message != item.Message {
				t.Errorf("tree shows %+v", got)
			}
		})
	}
}
