package node

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// exec runs a command in the first container of a pod, or of a pod of a
// workload ("deployment/web"), and returns its output. An error ends the test.
func (e *env) exec(pod string, command ...string) string {
	e.Helper()
	out, err := e.tryExec(pod, command...)
	if err != nil {
		e.Fatal(err)
	}
	return out
}

// tryExec is like exec, but returns the error.
func (e *env) tryExec(pod string, command ...string) (string, error) {
	return e.tryKubectl(append([]string{"exec", pod, "--"}, command...)...)
}

// startPod creates a pod that runs one container until it is deleted or its
// command ends. The pod satisfies the restricted Pod Security level.
func (e *env) startPod(name, image string, command ...string) {
	e.Helper()
	quoted := make([]string, len(command))
	for i, word := range command {
		quoted[i] = fmt.Sprintf("%q", word)
	}
	e.apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %s}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: main
      image: %s
      command: [%s]
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}`, name, name, image, strings.Join(quoted, ", ")))
}

// runPod runs a command in a new pod until it ends, deletes the pod, and returns
// the log. An exit code other than 0 ends the test.
func (e *env) runPod(name, image string, command ...string) string {
	e.Helper()
	e.startPod(name, image, command...)
	phase := e.waitPodEnd(name, readyTimeout)
	log := e.kubectl("logs", name)
	e.kubectl("delete", "pod", name, "--wait=false")
	if phase != "Succeeded" {
		e.Fatalf("pod %s: %s\n%s", name, phase, log)
	}
	return log
}

// waitPodEnd waits until a pod has ended, and returns its phase.
func (e *env) waitPodEnd(name string, timeout time.Duration) string {
	e.Helper()
	phase := ""
	e.eventually(timeout, "pod "+name+" ends", func() error {
		var err error
		phase, err = e.tryKubectl("get", "pod", name, "--output", "jsonpath={.status.phase}")
		if err == nil && phase != "Succeeded" && phase != "Failed" {
			err = errors.New("its phase is " + phase)
		}
		return err
	})
	return phase
}
