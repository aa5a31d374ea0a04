package vmgroup

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestScript_WithSimulator uses govc and vcsim from
// https://github.com/vmware/govmomi.
func TestScript_WithSimulator(t *testing.T) {
	s := newSimulator(t)
	s.expect("destroy", 0, "vms: there is nothing to destroy")
	s.expect("prepare", 0, "vms: created the folder vm/apps.web")
	s.record("location")
	s.expect("check", 1, "vms: web-0 does not exist", "vms: web-1 does not exist", "vms: 0 of 2 running")
	s.expect("ensure", 0,
		"vms: cloned web-0 from DC0_C0_RP0_VM0", "vms: turned web-0 on",
		"vms: cloned web-1 from DC0_C0_RP0_VM0", "vms: turned web-1 on", "vms: 2 of 2 running")
	s.expect("check", 0, "vms: 2 of 2 running")
	s.expect("prepare", 0)
	s.expect("ensure", 0, "vms: 2 of 2 running")

	s.set("VM_REPLICAS=3", "VM_CPU=1")
	s.expect("check", 1, "vms: web-0 has 2 CPU and 2048 MiB", "vms: web-1 has 2 CPU and 2048 MiB", "vms: web-2 does not exist", "vms: 0 of 3 running")
	s.expect("ensure", 0, "vms: cloned web-2 from DC0_C0_RP0_VM0", "vms: turned web-2 on",
		"vms: resized web-0", "vms: turned web-0 on", "vms: resized web-1", "vms: turned web-1 on", "vms: 3 of 3 running")

	// Others change the machines.
	s.govc("vm.power", "-off", "/DC0/vm/apps.web/web-1")
	s.govc("vm.destroy", "/DC0/vm/apps.web/web-0")
	s.govc("vm.power", "-off", "/DC0/vm/apps.web/web-2")
	s.govc("vm.change", "-vm", "/DC0/vm/apps.web/web-2", "-m", "1024")
	s.expect("check scheduled", 1, "vms: web-0 does not exist", "vms: web-1 is poweredOff", "vms: web-2 has 1 CPU and 1024 MiB", "vms: 0 of 3 running")
	s.expect("ensure scheduled", 0, "vms: cloned web-0 from DC0_C0_RP0_VM0", "vms: turned web-0 on", "vms: turned web-1 on",
		"vms: resized web-2", "vms: turned web-2 on", "vms: 3 of 3 running")

	s.set("VM_REPLICAS=1", "VM_TEMPLATE=no such")
	s.expect("ensure", 0, "vms: destroyed web-1", "vms: destroyed web-2", "vms: 1 of 1 running")
	s.set("VM_REPLICAS=2")
	s.expect("ensure", 1, "govc: vm 'no such' not found", "vms: 1 of 2 running")

	s.expect("destroy", 0, "vms: destroyed web-0", "vms: destroyed the folder /DC0/vm/apps.web")
	s.expect("destroy", 0, "vms: there is nothing to destroy")
	if left := s.govc("ls", "-t", "Folder", "vm"); left != "" {
		t.Errorf("folders remain: %s", left)
	}

	s.set("VM_PARENT=mv")
	s.expect("destroy", 1, "govc: folder 'mv' not found")
	s.set("GOVC_PASSWORD=wrong", "GOVMOMI_HOME="+t.TempDir())
	s.expect("ensure", 1, "govc: ServerFaultCode: Login failure")
}

// TestSimulator_KeepsOtherObjects: a folder with machines of others is renamed.
func TestSimulator_KeepsOtherObjects(t *testing.T) {
	s := newSimulator(t)
	s.expect("prepare", 0, "vms: created the folder vm/apps.web")
	s.record("location")
	s.run("ensure")
	s.govc("vm.clone", "-vm", "DC0_C0_RP0_VM0", "-folder", "vm/apps.web", "-on=false", "other")
	if code, output := s.run("destroy"); code != 0 {
		t.Errorf("destroy exited with %d:\n%s", code, output)
	}
	folder := s.govc("ls", "-t", "Folder", "vm")
	if left := s.govc("ls", folder); !strings.HasPrefix(folder, "/DC0/vm/apps.web-") || left != folder+"/other" {
		t.Errorf("%s contains %s", folder, left)
	}
	if code, output := s.run("ensure scheduled"); code != 1 || !strings.Contains(output, missingFolder) {
		t.Errorf("a later repair exited with %d:\n%s", code, output)
	}
}

// TestSimulator_Parallel: two runs at the same time create each machine once, and
// a deletion while machines are cloned leaves none. The simulator clones one after
// another.
func TestSimulator_Parallel(t *testing.T) {
	s := newSimulator(t, "-clone-time", "500ms")
	s.expect("prepare", 0, "vms: created the folder vm/apps.web")
	s.record("location")
	s.set("VM_REPLICAS=4", "VM_PARALLEL=4")
	s.expectDone("ensure", 4)

	s.set("VM_REPLICAS=6", "VM_PARALLEL=2")
	var runs sync.WaitGroup
	for range 2 {
		runs.Go(func() { s.run("ensure") })
	}
	runs.Wait()
	// A run that fails because of the other one is retried.
	s.expectDone("ensure", 6)

	s.set("VM_REPLICAS=10")
	runs.Go(func() { s.run("ensure scheduled") })
	waitUntil(t, "the repair has cloned a machine", func() bool { return s.machines() > 6 })
	s.record("deletion")
	code, output := s.run("destroy")
	for range 20 {
		if code == 0 {
			break
		}
		code, output = s.run("destroy")
	}
	if code != 0 {
		t.Errorf("destroy exited with %d:\n%s", code, output)
	}
	runs.Wait()
	if left := s.govc("find", "/DC0/vm", "-name", "web-*"); left != "" {
		t.Errorf("machines remain: %s", left)
	}
}

// program returns the path of govc or vcsim. The Makefile builds them next to
// $CHARTWRIGHT_BINARY, so there they are required. Without that variable, they
// are optional.
func program(t *testing.T, name string) string {
	t.Helper()
	if operator := os.Getenv("CHARTWRIGHT_BINARY"); operator != "" {
		path := filepath.Join(filepath.Dir(operator), name)
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("%s must be next to $CHARTWRIGHT_BINARY: run make bin/%s: %v", name, name, err)
		}
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("$CHARTWRIGHT_BINARY is not set, and %s is not installed: run make bin/%s", name, name)
	}
	return path
}

// simulator is a running vcsim, and the environment for it.
type simulator struct {
	t       *testing.T
	program string // the path of govc
	records string // the folder with the chart's records
	env     []string
}

func newSimulator(t *testing.T, flags ...string) *simulator {
	t.Helper()
	server, client := program(t, "vcsim"), program(t, "govc")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	vcsim := exec.CommandContext(t.Context(), server, append(flags, "-l", address, "-username", "operator", "-password", password)...)
	if err := vcsim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = vcsim.Process.Kill()
		_ = vcsim.Wait()
	})
	records := t.TempDir()
	s := &simulator{t: t, program: client, records: records, env: append(os.Environ(),
		"PATH="+filepath.Dir(client)+":"+os.Getenv("PATH"),
		"GOVC_URL="+address, "GOVC_USERNAME=operator", "GOVC_PASSWORD="+password, "GOVC_INSECURE=true", "GOVMOMI_HOME="+t.TempDir(),
		"VM_PARENT=vm", "VM_FOLDER=apps.web", "VM_NAME=web", "VM_TEMPLATE=DC0_C0_RP0_VM0", "VM_CPU=2", "VM_MEMORY=2048", "VM_REPLICAS=2",
		"VM_PARALLEL=1", "VM_SECRET=vc-creds", "VM_RECORDS="+records,
	)}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for {
		dialer := net.Dialer{}
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			_ = connection.Close()
			return s
		}
		select {
		case <-ctx.Done():
			t.Fatalf("vcsim does not listen: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// govc runs govc and returns its output.
func (s *simulator) govc(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.program, args...)
	cmd.Env = s.env
	output, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("govc %v: %v\n%s", args, err, output)
	}
	return strings.TrimSpace(string(output))
}

// record creates a record of the chart.
func (s *simulator) record(name string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.records, name), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// set sets variables of the environment.
func (s *simulator) set(variables ...string) {
	s.env = append(s.env, variables...)
}

// run runs the script with its arguments. Like the deadline of the chart's Jobs, it ends a
// run that takes too long: vcsim sometimes never answers a request.
func (s *simulator) run(words string) (int, string) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{script}, strings.Fields(words)...)...)
	cmd.Env = s.env
	// With the programs that the script has started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	output, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		s.t.Error(err)
		return -1, ""
	}
	if strings.Contains(string(output), password) {
		s.t.Error("the password is in the output")
	}
	return cmd.ProcessState.ExitCode(), string(output)
}

// expect runs the script and compares its exit code and its output.
func (s *simulator) expect(words string, code int, wantText ...string) {
	s.t.Helper()
	got, output := s.run(words)
	if got != code {
		s.t.Errorf("%s exited with %d, want %d", words, got, code)
	}
	if lines := strings.FieldsFunc(output, func(r rune) bool { return r == '\n' }); !slices.Equal(lines, wantText) {
		s.t.Errorf("the output of %s is %q, want %q", words, lines, wantText)
	}
}

// expectDone runs the script, and checks that the machines exist and are running.
func (s *simulator) expectDone(words string, machines int) {
	s.t.Helper()
	if code, output := s.run(words); code != 0 {
		s.t.Fatalf("%s exited with %d:\n%s", words, code, output)
	}
	s.expect("check", 0, fmt.Sprintf("vms: %d of %d running", machines, machines))
	if got := s.machines(); got != machines {
		s.t.Errorf("there are %d machines, want %d", got, machines)
	}
}

// machines returns the number of machines in the group's folder.
func (s *simulator) machines() int {
	s.t.Helper()
	return len(strings.Fields(s.govc("ls", "vm/apps.web")))
}
