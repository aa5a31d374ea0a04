package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// aPod returns a pod of a hook that was created at the given minute.
func aPod(name string, minute int, containers ...string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "apps", CreationTimestamp: metav1.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC),
	}}
	for _, container := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container})
	}
	return pod
}

func waiting(pod corev1.Pod, container string, ranBefore bool) corev1.Pod {
	status := corev1.ContainerStatus{Name: container, State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"},
	}}
	if ranBefore {
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
	}
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	return pod
}

// kubelet serves pods and the output of their containers by "<pod>/<container>". For
// other containers it returns status 500.
func kubelet(t *testing.T, pods []corev1.Pod, printed map[string]string, received *[]string) identity {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*received = append(*received, r.URL.RequestURI())
		if r.URL.Path == "/api/v1/namespaces/apps/pods" && pods != nil {
			w.Header().Set("Content-Type", "application/json")
			list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: pods}
			if err := json.NewEncoder(w).Encode(list); err != nil {
				t.Error(err)
			}
			return
		}
		pod := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/apps/pods/"), "/log")
		text, ok := printed[pod+"/"+r.URL.Query().Get("container")]
		if !ok {
			http.Error(w, "the kubelet is away", http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	as, err := newIdentity(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return as
}

// output calls the client like Helm for a hook with an output log policy.
func (k *kubeClient) output(log *logBuffer) error {
	list, err := k.GetPodList("apps", metav1.ListOptions{LabelSelector: "job-name=web"})
	if err != nil {
		return err
	}
	return k.OutputContainerLogsForPodList(list, "apps", log.output)
}

func TestHookOutput(t *testing.T) {
	numbered := func(n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "line %d\n", i)
		}
		return text.String()
	}
	for _, test := range []struct {
		name    string
		pods    []corev1.Pod
		printed map[string]string
		// want holds the lines, or their beginnings.
		want []string
	}{
		{"one container", []corev1.Pod{aPod("a", 1, "main")}, map[string]string{"a/main": "one\ntwo"}, []string{"main: one", "main: two"}},
		{"nothing printed", []corev1.Pod{aPod("a", 1, "main")}, map[string]string{"a/main": ""}, nil},
		{"no pods", []corev1.Pod{}, nil, nil},
		{
			"the last lines", []corev1.Pod{aPod("a", 1, "main")}, map[string]string{"a/main": numbered(logLines + 2)},
			[]string{"main: line 2", "main: line 3", "main: line 4", "main: line 5", "main: line 6", "main: line 7", "main: line 8", "main: line 9"},
		},
		{
			"invalid UTF-8", []corev1.Pod{aPod("a", 1, "main")}, map[string]string{"a/main": "\x1b[1mbold\r\n\n \t\n\xff\xfea\tb\x00\n"},
			[]string{"main: [1mbold", "main: a b"},
		},
		{
			"the newest pods, the newest last",
			[]corev1.Pod{aPod("d", 4, "main"), aPod("a", 1, "main"), aPod("c", 3, "main"), aPod("b", 2, "main")},
			map[string]string{"a/main": "first", "b/main": "second", "c/main": "third", "d/main": "fourth"},
			[]string{"main: second", "main: third", "main: fourth"},
		},
		{
			"a container that cannot be read", []corev1.Pod{aPod("a", 1, "first", "second")}, map[string]string{"a/second": "text"},
			[]string{"first of pod a: its output cannot be read: an error on the server", "second: text"},
		},
		{
			"a container that did not start", []corev1.Pod{waiting(aPod("a", 1, "main", "side"), "main", false)}, map[string]string{"a/main": "not received", "a/side": "text"},
			[]string{"main of pod a: the container did not start: ErrImagePull: no such image", "side: text"},
		},
		{
			"a container that is restarting", []corev1.Pod{waiting(aPod("a", 1, "main"), "main", true)}, map[string]string{"a/main": "panic"},
			[]string{"main: panic"},
		},
		{"pods that cannot be listed", nil, nil, []string{"the hook's pods cannot be listed: an error on the server"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			log, received := &logBuffer{redact: NoOp{}.Redact}, []string{}
			k := &kubeClient{ctx: t.Context(), Request: Request{Target: Target{Namespace: "apps"}}, identity: kubelet(t, test.pods, test.printed, &received), log: log}
			if err := k.output(log); err != nil {
				t.Errorf("the action would fail: %v", err)
			}
			got := log.lines()
			for i := range min(len(got), len(test.want)) {
				if strings.Contains(test.want[i], "error on the server") && strings.HasPrefix(got[i], test.want[i]) {
					got[i] = test.want[i]
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\nasked for %v", diff, received)
			}
		})
	}
}

func TestHookOutput_InitContainersFirst(t *testing.T) {
	pod := aPod("a", 1, "main")
	pod.Spec.InitContainers = []corev1.Container{{Name: "init"}}
	log, received := &logBuffer{redact: NoOp{}.Redact}, []string{}
	k := &kubeClient{ctx: t.Context(), Request: Request{Target: Target{Namespace: "apps"}}, identity: kubelet(t, []corev1.Pod{pod}, map[string]string{"a/init": "1", "a/main": "2"}, &received), log: log}
	if err := k.output(log); err != nil {
		t.Fatal(err)
	}
	equal(t, "the lines", []string{"init: 1", "main: 2"}, log.lines())
	const logs = "/api/v1/namespaces/apps/pods/a/log?container="
	equal(t, "the requests", []string{
		"/api/v1/namespaces/apps/pods?labelSelector=job-name%3Dweb",
		logs + "init&limitBytes=65536&tailLines=8", logs + "main&limitBytes=65536&tailLines=8",
	}, received)
}

// The output of a container has no end and no newline.
func TestHookOutput_LimitsBytes(t *testing.T) {
	var printed atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for printed.Load() < 1000*logBytes {
			n, err := io.WriteString(w, strings.Repeat("é", 1000))
			if err != nil {
				return
			}
			printed.Add(int64(n))
		}
	}))
	t.Cleanup(server.Close)
	as, err := newIdentity(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	log := &logBuffer{redact: NoOp{}.Redact}
	k := &kubeClient{ctx: t.Context(), Request: Request{Target: Target{Namespace: "apps"}}, identity: as, log: log}
	if err := k.OutputContainerLogsForPodList(&corev1.PodList{Items: []corev1.Pod{aPod("a", 1, "main")}}, "apps", log.output); err != nil {
		t.Fatal(err)
	}
	// The server has filled the network buffers in advance.
	if n := printed.Load(); n > 500*logBytes {
		t.Errorf("%d bytes were read", n)
	}
	got := log.lines()
	if len(got) != 1 || len(got[0]) > len("main: ")+outputWidth || !utf8.ValidString(got[0]) || !strings.HasPrefix(got[0], "main: ééé") {
		t.Errorf("got %q", got)
	}
}

// The reads end with the context of the action.
func TestHookOutput_EndsWithAction(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	as, err := newIdentity(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	log := &logBuffer{redact: NoOp{}.Redact}
	k := &kubeClient{ctx: ctx, Request: Request{Target: Target{Namespace: "apps"}}, identity: as, log: log}
	if err := k.OutputContainerLogsForPodList(&corev1.PodList{Items: []corev1.Pod{aPod("a", 1, "main")}}, "apps", log.output); err != nil {
		t.Fatal(err)
	}
	if got := log.lines(); len(got) != 1 || !strings.Contains(got[0], context.Canceled.Error()) {
		t.Errorf("got %q", got)
	}
}

// broken simulates a cluster in which every Job fails after its pod has written output.
type broken struct {
	*world
	next http.RoundTripper
	// logs answers requests for logs.
	logs func(http.ResponseWriter)
}

func (b broken) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.HasSuffix(request.URL.Path, "/log") {
		recorder := httptest.NewRecorder()
		b.logs(recorder)
		response := recorder.Result()
		response.Request = request
		return response, nil
	}
	response, err := b.next.RoundTrip(request)
	if err == nil && request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/jobs") {
		b.fail("web-hook")
	}
	return response, err
}

func (b broken) fail(name string) {
	jobs := b.plain.BatchV1().Jobs(b.namespace)
	job, err := jobs.Get(b.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.Error(err)
		return
	}
	now := metav1.Now()
	failed := func(kind batchv1.JobConditionType) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", LastTransitionTime: now}
	}
	job.Status = batchv1.JobStatus{StartTime: &now, Conditions: []batchv1.JobCondition{failed(batchv1.JobFailureTarget), failed(batchv1.JobFailed)}}
	if _, err := jobs.UpdateStatus(b.Context(), job, metav1.UpdateOptions{}); err != nil {
		b.Error(err)
	}
	_, err = b.plain.CoreV1().Pods(b.namespace).Create(b.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-x", Labels: map[string]string{"job-name": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "a"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Error(err)
	}
}

// If the chart requests it, the output of a failed hook is at the end of the action's
// log. An error while reading the output changes nothing else.
func TestHookOutput_InErrorOfFailedHook(t *testing.T) {
	says := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { _, _ = io.WriteString(w, text) }
	}
	for _, test := range []struct {
		name, policy string
		logs         func(http.ResponseWriter)
		want         string
		wanted       bool
	}{
		{"received for", "hook-failed", says("no such table\n"), "main: no such table", true},
		{"requested for both", "hook-succeeded,hook-failed", says("no such table\n"), "main: no such table", true},
		{"requested for success", "hook-succeeded", says("no such table\n"), "main: no such table", false},
		{"unreadable", "hook-failed", func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, "main of pod web-hook-x: its output cannot be read: ", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.net.next = broken{world: w, next: w.net.next, logs: test.logs}
			c := small().with("templates/hook.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: web-hook\n  annotations: {helm.sh/hook: pre-install, helm.sh/hook-output-log-policy: '"+test.policy+
				"'}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}\n").load(t)
			err := w.helm.Install(t.Context(), w.request(c, "one", nil))
			var failed *ActionError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), "job failed: BackoffLimitExceeded") {
				t.Fatalf("the error is %v", err)
			}
			if got := strings.Contains(strings.Join(failed.Log, "\n"), test.want); got != test.wanted {
				t.Errorf("the log ended with %q", failed.Log)
			}
			equal(t, "the records", []string{"v1 failed"}, w.statuses())
		})
	}
}
