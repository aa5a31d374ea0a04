package plugin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inventory"
)

// The plugin does not know the health rules of the operator.
func TestApplyReportedRules_UsesReportedHealth(t *testing.T) {
	for reason, want := range map[string]metav1.ConditionStatus{
		"RuleNotReady": metav1.ConditionFalse, "RuleFailed": metav1.ConditionFalse, "RuleNotEvaluated": metav1.ConditionFalse,
		"NotReported": metav1.ConditionFalse,
		// This reason depends only on the object, which was read after the report.
		"LessReady": metav1.ConditionTrue,
	} {
		x := &objectSearch{status: api.Status{Resources: &api.ResourcesStatus{
			Total: 1, NotReady: []api.ObjectStatus{{Kind: "Widget", Name: "a", Reason: reason, Message: "1 of 3 replicas"}},
		}}}
		f := objectOutput{objectRef: objectRef{Kind: "Widget", Name: "a"}, Ready: metav1.ConditionTrue}
		x.applyReportedRules(&f)
		if f.Ready != want || (f.Message == "") != (want == metav1.ConditionTrue) {
			t.Errorf("%s: %+v", reason, f)
		}
	}
}

// A Job that was deleted after its TTL keeps its outcome.
func TestFinish_DeletedJobKeepsOutcome(t *testing.T) {
	gone := objectOutput{objectRef: objectRef{Kind: "Job", Name: "migrate"}, Ready: metav1.ConditionFalse, Reason: "Gone", Message: "object not found"}
	for _, test := range []struct {
		name, outcome string
		object        objectOutput
		ready         metav1.ConditionStatus
		reason        string
	}{
		{"complete", inventory.Complete, gone, metav1.ConditionTrue, ""},
		{"failed", inventory.Failed, gone, metav1.ConditionFalse, "JobFailed"},
		{"not finished", "", gone, metav1.ConditionFalse, "Gone"},
		{"finished and not deleted", inventory.Complete, objectOutput{Ready: metav1.ConditionTrue}, metav1.ConditionTrue, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := test.object
			f.finish(test.outcome)
			if f.Ready != test.ready || f.Reason != test.reason {
				t.Errorf("%+v, want %s and %q", f, test.ready, test.reason)
			}
		})
	}
}

// hookMeta returns the metadata of an object of a hook.
func hookMeta(name, owner string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{api.LabelHookOwnerUID: owner}}
}

func hookJobOf(name, owner string, conditions ...batchv1.JobCondition) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: hookMeta(name, owner),
		Spec:       batchv1.JobSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"job-name": name}}},
		Status:     batchv1.JobStatus{Conditions: conditions},
	}
}

func hookPodOf(name, owner string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: hookMeta(name, owner), Status: corev1.PodStatus{Phase: phase}}
}

func hooksSearch(objects ...runtime.Object) (*objectSearch, *fake.Clientset) {
	client := fake.NewClientset(objects...)
	cr := &unstructured.Unstructured{Object: map[string]any{}}
	cr.SetUID("owner")
	return &objectSearch{session: &session{typed: client}, cr: cr, status: api.Status{Release: &api.ReleaseStatus{Name: "web", Namespace: "shop"}}}, client
}

func TestHooks_ReturnsRunningAndFailedHooksOfTheRelease(t *testing.T) {
	pod := hookPodOf("stuck-1", "", corev1.PodPending)
	yes := true
	pod.Labels = map[string]string{"job-name": "stuck"}
	pod.OwnerReferences = []metav1.OwnerReference{{UID: "stuck", Name: "stuck", Controller: &yes}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "hook", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off"},
	}}}
	x, _ := hooksSearch(
		hookJobOf("stuck", "owner"), pod, hookJobOf("new", "owner"), hookJobOf("foreign", "other-owner"),
		hookJobOf("done", "owner", batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}),
		hookJobOf("failed", "owner", batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "retries\nexhausted"}),
		hookPodOf("test", "owner", corev1.PodFailed), hookPodOf("passed", "owner", corev1.PodSucceeded),
	)
	var got []string
	for _, hook := range x.hooks(t.Context()) {
		line := strings.TrimSpace(strings.Join([]string{hook.Kind, hook.Name, string(hook.Ready), hook.Reason, hook.Message}, " "))
		if hook.Cause != nil {
			line += "; " + hook.Cause.Name + " " + hook.Cause.Reason
		}
		got = append(got, line)
	}
	want := []string{
		"Job failed False BackoffLimitExceeded retries exhausted",
		"Job new Unknown Starting",
		"Job stuck False Stuck; stuck-1 ImagePullBackOff",
		"Pod test False Failed; test Failed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(x.missing) > 0 {
		t.Errorf("missing is %q", x.missing)
	}
}

func TestHooks_NamesMissingPermissionAndReturnsTheRest(t *testing.T) {
	x, client := hooksSearch(hookPodOf("test", "owner", corev1.PodRunning))
	client.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "", nil)
	})
	if hooks := x.hooks(t.Context()); len(hooks) != 1 || hooks[0].Name != "test" {
		t.Errorf("got hooks %+v", hooks)
	}
	if len(x.missing) != 1 || !strings.Contains(x.missing[0], "list jobs.batch in namespace shop") {
		t.Errorf("missing is %q", x.missing)
	}
}
