package database

import (
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// preStop returns the command of the hook that Kubernetes runs before it stops
// a server.
func (q *pod) preStop() *exec.Cmd {
	q.t.Helper()
	containers, _, err := unstructured.NestedSlice(render(q.t, "db", nil)["StatefulSet/db"].Object, "spec", "template", "spec", "containers")
	q.must(err)
	args, found, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "lifecycle", "preStop", "exec", "command")
	if err != nil || !found {
		q.t.Fatalf("no command: %v", err)
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "/var/lib/database", q.at(q.name+"/home"))
	}
	cmd := q.command("lib.sh")
	cmd.Args = args
	cmd.Path, cmd.Err = exec.LookPath(args[0])
	return cmd
}

// The hook starts a shutdown that ends all sessions. It does not wait for the
// end: the container would end first, and Kubernetes would report that the hook
// was killed.
func TestPostgreSQL_StopHook(t *testing.T) {
	p := newPostgres(t)
	primary := p.pod(0)
	primary.configure()
	l := primary.startLoad()

	// The shutdown starts when the server runs again.
	server := primary.server.Load().Process
	p.must(server.Signal(syscall.SIGSTOP))
	hook := primary.preStop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	go func() {
		<-ctx.Done()
		_ = hook.Process.Kill()
	}()
	if out, err := p.finish(hook); err != nil {
		t.Errorf("the hook waits for the end of the server: %v\n%s", err, out)
	}
	p.must(server.Signal(syscall.SIGCONT))
	rows := l.end()
	primary.waitReady()
	primary.has(rows)
}
