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

// TestCorrect_TakesTheOperatorsReportOfRules: the plugin does not know the health
// rules of the operator, and shows what follows from them.
func TestCorrect_TakesTheOperatorsReportOfRules(t *testing.T) {
	for reason, want := range map[string]metav1.ConditionStatus{
		"RuleNotReady": metav1.ConditionFalse, "RuleFailed": metav1.ConditionFalse, "RuleNotEvaluated": metav1.ConditionFalse,
		"NotReported": metav1.ConditionFalse,
		// The object was read after the report.
		"LessReady": metav1.ConditionTrue,
	} {
		x := &objectSearch{status: api.Status{Resources: &api.ResourcesStatus{
			Total: 1, NotReady: []api.ObjectStatus{{Kind: "Widget", Name: "a", Reason: reason, Message: "it serves 1 of 3"}},
		}}}
		f := objectOutput{objectRef: objectRef{Kind: "Widget", Name: "a"}, Ready: metav1.ConditionTrue}
		x.correct(&f)
		if f.Ready != want || (f.Message == "") != (want == metav1.ConditionTrue) {
			t.Errorf("%s: %+v", reason, f)
		}
	}
}

// TestStatus_FinishedJobThatIsGone: a Job that its TTL has deleted is reported as
// it finished, and any other object that is gone as gone.
func TestStatus_FinishedJobThatIsGone(t *testing.T) {
	gone := objectOutput{objectRef: objectRef{Kind: "Job", Name: "migrate"}, Ready: metav1.ConditionFalse, Reason: "Gone", Message: "it is not there"}
	for _, test := range []struct {
		name, outcome string
		object        objectOutput
		ready         metav1.ConditionStatus
		reason        string
	}{
		{"complete", inventory.Complete, gone, metav1.ConditionTrue, ""},
		{"failed", inventory.Failed, gone, metav1.ConditionFalse, "JobFailed"},
		{"not finished", "", gone, metav1.ConditionFalse, "Gone"},
		{"finished and still there", inventory.Complete, objectOutput{Ready: metav1.ConditionTrue}, metav1.ConditionTrue, ""},
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

// hookMeta is the metadata of an object that a hook has created for an owner.
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
	cr.SetUID("mine")
	return &objectSearch{session: &session{typed: client}, cr: cr, status: api.Status{Release: &api.ReleaseStatus{Name: "web", Namespace: "shop"}}}, client
}

// TestStatusHooks: shown are the hooks of this release that run or have failed.
func TestStatusHooks(t *testing.T) {
	pod := hookPodOf("stuck-1", "", corev1.PodPending)
	yes := true
	pod.Labels = map[string]string{"job-name": "stuck"}
	pod.OwnerReferences = []metav1.OwnerReference{{UID: "stuck", Name: "stuck", Controller: &yes}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "hook", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off"},
	}}}
	x, _ := hooksSearch(
		hookJobOf("stuck", "mine"), pod, hookJobOf("new", "mine"), hookJobOf("theirs", "theirs"),
		hookJobOf("done", "mine", batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}),
		hookJobOf("failed", "mine", batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "no more\ntries"}),
		hookPodOf("test", "mine", corev1.PodFailed), hookPodOf("passed", "mine", corev1.PodSucceeded),
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
		"Job failed False BackoffLimitExceeded no more tries",
		"Job new Unknown Starting",
		"Job stuck False Stuck; stuck-1 ImagePullBackOff",
		"Pod test False Failed; test Failed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(x.missing) > 0 {
		t.Errorf("missing are %q", x.missing)
	}
}

// TestStatusHooks_Forbidden: a missing permission is named, and the rest is shown.
func TestStatusHooks_Forbidden(t *testing.T) {
	x, client := hooksSearch(hookPodOf("test", "mine", corev1.PodRunning))
	client.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "", nil)
	})
	if hooks := x.hooks(t.Context()); len(hooks) != 1 || hooks[0].Name != "test" {
		t.Errorf("hooks are %+v", hooks)
	}
	if len(x.missing) != 1 || !strings.Contains(x.missing[0], "list jobs.batch in namespace shop") {
		t.Errorf("missing are %q", x.missing)
	}
}
