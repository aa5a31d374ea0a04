package vmgroup

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestScript_WithSimulator uses govc and vcsim from
// https://github.com/vmware/govmomi.
func TestScript_WithSimulator(t *testing.T) {
	s := newSimulator(t)
	s.expect("destroy", 0, "vms: there is nothing to destroy")
	s.expect("check", 1, "vms: there is no folder vm/apps.web")
	s.expect("ensure", 0, "vms: made the folder /DC0/vm/apps.web",
		"vms: cloned web-0 from DC0_C0_RP0_VM0", "vms: turned web-0 on",
		"vms: cloned web-1 from DC0_C0_RP0_VM0", "vms: turned web-1 on", "vms: running, as wanted: 2")
	s.expect("check", 0, "vms: running, as wanted: 2")
	s.expect("ensure", 0, "vms: running, as wanted: 2")

	s.env = append(s.env, "VM_REPLICAS=3", "VM_CPU=1")
	s.expect("check", 1, "vms: web-0 does not have the wanted size")
	s.expect("ensure", 0, "vms: resized web-0", "vms: turned web-0 on", "vms: resized web-1", "vms: turned web-1 on",
		"vms: cloned web-2 from DC0_C0_RP0_VM0", "vms: turned web-2 on", "vms: running, as wanted: 3")
	s.govc("vm.power", "-off", "/DC0/vm/apps.web/web-1")
	s.govc("vm.destroy", "/DC0/vm/apps.web/web-0")
	s.expect("check", 1, "vms: there is no web-0")
	s.expect("ensure", 0, "vms: cloned web-0 from DC0_C0_RP0_VM0", "vms: turned web-0 on", "vms: turned web-1 on", "vms: running, as wanted: 3")

	s.env = append(s.env, "VM_REPLICAS=1", "VM_TEMPLATE=no such")
	s.expect("ensure", 0, "vms: destroyed web-1", "vms: destroyed web-2", "vms: running, as wanted: 1")
	s.env = append(s.env, "VM_REPLICAS=2")
	s.expect("ensure", 1, "govc: vm 'no such' not found")

	s.govc("vm.clone", "-vm", "DC0_C0_RP0_VM0", "-folder", "vm/apps.web", "-on=false", "other")
	s.expect("destroy", 0, "vms: destroyed web-0", "vms: the folder /DC0/vm/apps.web stays: somebody else has put something there")
	s.govc("vm.destroy", "/DC0/vm/apps.web/other")
	s.expect("destroy", 0, "vms: destroyed the folder /DC0/vm/apps.web")
	if left := s.govc("ls", "-t", "Folder", "vm"); left != "" {
		t.Errorf("folders remain: %s", left)
	}

	s.env = append(s.env, "VM_PARENT=mv")
	s.expect("destroy", 1, "govc: folder 'mv' not found")
	s.env = append(s.env, "GOVC_PASSWORD=wrong", "GOVMOMI_HOME="+t.TempDir())
	s.expect("ensure", 1, "govc: ServerFaultCode: Login failure")
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
	env     []string
}

func newSimulator(t *testing.T) *simulator {
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
	vcsim := exec.CommandContext(t.Context(), server, "-l", address, "-username", "operator", "-password", password)
	if err := vcsim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = vcsim.Process.Kill()
		_ = vcsim.Wait()
	})
	s := &simulator{t: t, program: client, env: append(os.Environ(),
		"PATH="+filepath.Dir(client)+":"+os.Getenv("PATH"),
		"GOVC_URL="+address, "GOVC_USERNAME=operator", "GOVC_PASSWORD="+password, "GOVC_INSECURE=true", "GOVMOMI_HOME="+t.TempDir(),
		"VM_PARENT=vm", "VM_FOLDER=apps.web", "VM_NAME=web", "VM_TEMPLATE=DC0_C0_RP0_VM0", "VM_CPU=2", "VM_MEMORY=2048", "VM_REPLICAS=2",
	)}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
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

// expect runs the script and compares its exit code and its output.
func (s *simulator) expect(word string, code int, wantText ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", script, word)
	cmd.Env = s.env
	// The exit code is checked below.
	output, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("%s exited with %d, want %d", word, got, code)
	}
	if got := strings.Split(strings.TrimSpace(string(output)), "\n"); !slices.Equal(got, wantText) {
		s.t.Errorf("the output of %s is %q, want %q", word, got, wantText)
	}
	if strings.Contains(string(output), password) {
		s.t.Error("the password is in the output")
	}
}
