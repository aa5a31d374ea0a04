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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// A chart can request the output of its hooks with helm.sh/hook-output-log-policy. The
// end of the output goes into the action's log, and from there into the event of a
// failure. The output is read with the identity and the context of the action, and
// within tight limits, because the kubelet may be as broken as the hook.
const (
	// logPods limits the pods of a hook; the newest are read.
	logPods = 3
	// logBytes limits the output of one container.
	logBytes = 64 << 10
	// logTime limits the time for all output.
	logTime = 10 * time.Second
)

// GetPodList returns the newest pods of a hook, the newest last. It never fails,
// because Helm would print the error to standard error; it logs the error instead.
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

// OutputContainerLogsForPodList writes the end of the output of each container. Like
// GetPodList, it never fails.
func (k *kubeClient) OutputContainerLogsForPodList(list *corev1.PodList, namespace string, output func(namespace, pod, container string) io.Writer) error {
	ctx, cancel := context.WithTimeout(k.ctx, logTime)
	defer cancel()
	for _, pod := range list.Items {
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			text, err := k.containerLog(ctx, namespace, &pod, container.Name)
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

// containerLog returns the end of the output of a container. If the container did not
// start, the error says why, because that may be the cause of the failure.
func (k *kubeClient) containerLog(ctx context.Context, namespace string, pod *corev1.Pod, container string) (text []byte, err error) {
	defer release.RecoverPanic(&err)
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waits := status.State.Waiting; status.Name == container && waits != nil && status.LastTerminationState.Terminated == nil {
			return nil, fmt.Errorf("the container did not start: %s: %s", waits.Reason, waits.Message)
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
	// Part of the output is better than none.
	return text, nil
}

// logLines is the number of lines of Helm's log in an ActionError. outputWidth is the
// maximum length of a line of hook output, in bytes.
const (
	logLines    = 8
	outputWidth = 200
)

// logBuffer holds the last lines of the log of one action.
type logBuffer struct {
	// redact removes secret values.
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

// output returns the writer for the output of a container, as Helm requests it. Each
// write must consist of whole lines.
func (t *logBuffer) output(_, _, container string) io.Writer {
	return containerOutput{log: t, container: container}
}

type containerOutput struct {
	log       *logBuffer
	container string
}

// Write logs each line that is not empty, truncated.
func (o containerOutput) Write(text []byte) (int, error) {
	for line := range strings.Lines(strings.ToValidUTF8(string(text), "")) {
		line = strings.TrimSpace(strings.Map(printable, line))
		if line != "" {
			o.log.printf("%s: %s", o.container, api.Truncate(o.log.redact(line), outputWidth))
		}
	}
	return len(text), nil
}

// printable removes control characters, which could change the terminal.
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
