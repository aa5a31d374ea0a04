package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// ManagerMemory returns the operator's memory limit in config/manager, in
// bytes.
func (e *Env) ManagerMemory() int64 {
	e.t.Helper()
	data, err := os.ReadFile(Root("config", "manager", "manager.yaml"))
	e.must(err)
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var deployment appsv1.Deployment
		e.must(yaml.Unmarshal([]byte(document), &deployment))
		for i := range deployment.Spec.Template.Spec.Containers {
			if limit := deployment.Spec.Template.Spec.Containers[i].Resources.Limits.Memory(); !limit.IsZero() {
				return limit.Value()
			}
		}
	}
	e.t.Fatal("config/manager/manager.yaml sets no memory limit")
	return 0
}

// memoryLimit limits the memory of one process: by a memory cgroup if this
// machine allows creating one, otherwise by measuring the process and killing
// it as the kernel would.
type memoryLimit struct {
	bytes int64
	// cgroup is the folder of the cgroup, empty without a cgroup. kills is the
	// path of its file with the counter oom_kill.
	cgroup, kills string
	// killed counts the kills without a cgroup. last is the newest value of the
	// cgroup's counter: Err also returns it after the cgroup has been removed.
	killed, last atomic.Int64
}

// watchInterval is the interval at which a process without a cgroup is
// measured.
const watchInterval = 10 * time.Millisecond

// newMemoryLimit creates a cgroup below the cgroup of this process or, if that
// is forbidden, below one of its parents. If all of these are forbidden, the
// limit has no cgroup.
func newMemoryLimit(bytes int64) *memoryLimit {
	limit := &memoryLimit{bytes: bytes}
	name := "chartwright-" + rand.String(8)
	for _, version := range []struct{ root, own, limit, kills string }{
		{"/sys/fs/cgroup/memory", ownCgroup("memory"), "memory.limit_in_bytes", "memory.oom_control"},
		{"/sys/fs/cgroup", ownCgroup(""), "memory.max", "memory.events"},
	} {
		for parent := filepath.Clean("/" + version.own); ; parent = filepath.Dir(parent) {
			folder := filepath.Join(version.root, parent, name)
			if os.Mkdir(folder, 0o755) == nil {
				err := os.WriteFile(filepath.Join(folder, version.limit), []byte(strconv.FormatInt(bytes, 10)), 0o600)
				if err == nil {
					limit.cgroup, limit.kills = folder, filepath.Join(folder, version.kills)
					return limit
				}
				_ = os.Remove(folder)
			}
			if parent == "/" {
				break
			}
		}
	}
	return limit
}

// ownCgroup returns the path of this process's cgroup: of a controller in
// version 1, or, with an empty controller, in version 2.
func ownCgroup(controller string) string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && parts[1] == controller {
			return parts[2]
		}
	}
	return ""
}

// command returns a command that runs a program within the limit.
func (l *memoryLimit) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	if l.cgroup == "" {
		cmd := exec.CommandContext(ctx, program, args...)
		// Without a cgroup, the program cannot derive GOMEMLIMIT from it.
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%d", l.bytes/10*9))
		return cmd
	}
	script := `echo $$ >"$0" && exec "$@"`
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, filepath.Join(l.cgroup, "cgroup.procs"), program}, args...)...)
	cmd.Env = os.Environ()
	return cmd
}

// watch waits until done is closed, then removes the cgroup. Without a cgroup,
// it measures the process meanwhile, and kills it above the limit.
func (l *memoryLimit) watch(process *os.Process, done <-chan struct{}) {
	for {
		select {
		case <-done:
			_ = l.Err()
			if l.cgroup != "" {
				_ = os.Remove(l.cgroup)
			}
			return
		case <-time.After(watchInterval):
		}
		if l.cgroup == "" && highWater(process.Pid) > l.bytes {
			l.killed.Add(1)
			_ = process.Kill()
		}
	}
}

// highWater returns the peak memory of a process, in bytes.
func highWater(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if size, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.ParseInt(strings.Fields(size)[0], 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// Err returns an error if the process was killed because of its memory.
func (l *memoryLimit) Err() error {
	kills := l.killed.Load()
	if data, err := os.ReadFile(l.kills); err == nil {
		for line := range strings.Lines(string(data)) {
			if count, found := strings.CutPrefix(line, "oom_kill "); found {
				n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
				if err != nil {
					return err
				}
				l.last.Store(n)
			}
		}
	}
	if kills+l.last.Load() > 0 {
		return fmt.Errorf("the process exceeded %d MiB and was killed (oom_kill %d)", l.bytes>>20, kills+l.last.Load())
	}
	return nil
}

// Survived returns an error if the last process has ended or was killed because
// of its memory. See Options.Memory.
func (o *Operator) Survived() error {
	var err error
	if o.memory != nil {
		err = o.memory.Err()
	}
	if !o.Running() {
		err = errors.Join(err, errors.New("the operator has ended"))
	}
	return err
}

// PID returns the ID of the last process.
func (o *Operator) PID() int { return o.cmd.Process.Pid }

// HighWater returns the peak memory of the process, in bytes.
func (o *Operator) HighWater() int64 { return highWater(o.PID()) }

// RunLimited runs the program under test within a memory limit in bytes. It
// returns the output, and an error if the program was killed because of its
// memory.
func (e *Env) RunLimited(bytes int64, args ...string) (string, error) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), deadline)
	defer cancel()
	limit := newMemoryLimit(bytes)
	var output strings.Builder
	cmd := limit.command(ctx, shared.operator, args...)
	cmd.Stdout, cmd.Stderr = &output, &output
	e.must(cmd.Start())
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		limit.watch(cmd.Process, done)
		close(watched)
	}()
	// The caller evaluates other errors by the output.
	_ = cmd.Wait()
	close(done)
	<-watched
	e.must(ctx.Err())
	return output.String(), limit.Err()
}

// Name returns the value of --operator-name.
func (o *Operator) Name() string { return o.options.Name }
