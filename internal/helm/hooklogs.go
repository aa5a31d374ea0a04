package helm

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	helmkube "helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// A chart asks by helm.sh/hook-output-log-policy for what its hooks print. Its
// end goes into the action's log, and so into the event of a failure. It is
// read as the action's identity and within its context, and never for long: a
// kubelet may be as broken as the hook.
const (
	// logPods bounds the pods of a hook that are read, the newest.
	logPods = 3
	// logBytes bounds what is read of one container.
	logBytes = 64 << 10
	// logTime bounds the reading as a whole.
	logTime = 10 * time.Second
)

var _ helmkube.InterfaceLogs = (*kubeClient)(nil)

// GetPodList returns the newest pods of a hook, the newest last, so that the
// last try has the last word. It never fails, and logs why there are none:
// Helm would print it on the process's standard error.
func (k *kubeClient) GetPodList(namespace string, options metav1.ListOptions) (*corev1.PodList, error) {
	list, err := k.hookPods(namespace, options)
	if err != nil {
		k.log.printf("the hook's pods cannot be listed: %v", err)
		return &corev1.PodList{}, nil
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	list.Items = list.Items[max(0, len(list.Items)-logPods):]
	return list, nil
}

func (k *kubeClient) hookPods(namespace string, options metav1.ListOptions) (list *corev1.PodList, err error) {
	defer release.RecoverPanic(&err)
	if err := k.mayReadPods(namespace); err != nil {
		return nil, err
	}
	core, err := k.core()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(k.ctx, logTime)
	defer cancel()
	return core.Pods(namespace).List(ctx, options)
}

// OutputContainerLogsForPodList writes the end of what each container has
// printed. Like GetPodList, it never fails.
func (k *kubeClient) OutputContainerLogsForPodList(list *corev1.PodList, namespace string, output func(namespace, pod, container string) io.Writer) error {
	ctx, cancel := context.WithTimeout(k.ctx, logTime)
	defer cancel()
	for _, pod := range list.Items {
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			text, err := k.printed(ctx, namespace, &pod, container.Name)
			if err == nil {
				_, err = output(namespace, pod.Name, container.Name).Write(text)
			}
			if err != nil {
				k.log.printf("%s of pod %s: %v", container.Name, pod.Name, err)
			}
		}
	}
	return nil
}

// printed returns the end of what a container has printed. That it has not run
// is an error that says why, for that may be what is wrong.
func (k *kubeClient) printed(ctx context.Context, namespace string, pod *corev1.Pod, container string) (text []byte, err error) {
	defer release.RecoverPanic(&err)
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waits := status.State.Waiting; status.Name == container && waits != nil && status.LastTerminationState.Terminated == nil {
			return nil, fmt.Errorf("it has not run: %s: %s", waits.Reason, waits.Message)
		}
	}
	core, err := k.core()
	if err != nil {
		return nil, err
	}
	stream, err := core.Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, TailLines: new(int64(logLines)), LimitBytes: new(int64(logBytes)),
	}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("its output cannot be read: %w", err)
	}
	defer func() { _ = stream.Close() }()
	text, err = io.ReadAll(io.LimitReader(stream, logBytes))
	if err != nil && len(text) == 0 {
		return nil, fmt.Errorf("its output cannot be read: %w", err)
	}
	// What was read before the connection broke is better than nothing.
	return text, nil
}

// logLines is the number of lines of Helm's log that an error carries, and
// outputWidth what is kept of a line that a hook has printed, in bytes.
const (
	logLines    = 8
	outputWidth = 200
)

// logBuffer keeps the end of what one action logs.
type logBuffer struct {
	// redact keeps secrets out of it.
	redact func(string) string

	mu   sync.Mutex
	last []string
}

func (t *logBuffer) printf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, t.redact(fmt.Sprintf(format, args...)))
	t.last = t.last[max(0, len(t.last)-logLines):]
}

func (t *logBuffer) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.last)
}

// output returns where what a container of a hook has printed goes, as Helm
// wants it. Each write must be of whole lines.
func (t *logBuffer) output(_, _, container string) io.Writer {
	return containerOutput{log: t, container: container}
}

type containerOutput struct {
	log       *logBuffer
	container string
}

// Write logs each line that says something, cut to a length that leaves room
// for the others.
func (o containerOutput) Write(text []byte) (int, error) {
	for line := range strings.Lines(strings.ToValidUTF8(string(text), "")) {
		line = strings.TrimSpace(strings.Map(printable, line))
		if line != "" {
			o.log.printf("%s: %s", o.container, api.Truncate(o.log.redact(line), outputWidth))
		}
	}
	return len(text), nil
}

// printable drops what would color or clear a terminal.
func printable(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case unicode.IsControl(r):
		return -1
	default:
		return r
	}
}
