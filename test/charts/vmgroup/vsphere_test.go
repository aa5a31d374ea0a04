package vmgroup

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	script   = "../../../charts/vmgroup/files/vms.sh"
	password = `pa ss'w"o$rd`
)

// vsphere is a stub of vSphere with a template, and a group without machines.
type vsphere struct {
	t   *testing.T
	dir string
	env map[string]string
}

func newVSphere(t *testing.T) *vsphere {
	t.Helper()
	v := &vsphere{t: t, dir: t.TempDir(), env: map[string]string{
		"GOVC_URL": "vcenter.example.com", "GOVC_USERNAME": "operator", "GOVC_PASSWORD": password, "STUB_PASSWORD": password,
		"VM_PARENT": "vm", "VM_FOLDER": "apps.web", "VM_NAME": "web", "VM_TEMPLATE": "debian",
		"VM_CPU": "2", "VM_MEMORY": "4096", "VM_REPLICAS": "2", "VM_PARALLEL": "1", "VM_SECRET": "vc-creds",
	}}
	v.with("VM_RECORDS", filepath.Join(v.dir, "records"), "VM_REPORT", filepath.Join(v.dir, "report"), "TMPDIR", filepath.Join(v.dir, "tmp"))
	for _, dir := range []string{"bin", "vm", "vm/apps.web", "records", "cloning", "tmp"} {
		if err := os.Mkdir(filepath.Join(v.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	v.put("bin/govc", govcStub)
	if err := os.Chmod(filepath.Join(v.dir, "bin", "govc"), 0o700); err != nil { // the script is executed
		t.Fatal(err)
	}
	v.put("vm/debian", "1 1024 poweredOff\n")
	v.put("records/location", "vm\n")
	return v
}

func (v *vsphere) put(name, text string) {
	v.t.Helper()
	if err := os.WriteFile(filepath.Join(v.dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

func (v *vsphere) remove(names ...string) {
	v.t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(v.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			v.t.Fatal(err)
		}
	}
}

// with sets variables and returns the same group.
func (v *vsphere) with(pairs ...string) *vsphere {
	for i := 0; i+1 < len(pairs); i += 2 {
		v.env[pairs[i]] = pairs[i+1]
	}
	return v
}

// outcome is the result of a run of the script.
type outcome struct {
	code   int
	text   string
	report string // the termination message
	calls  []string
}

// changes returns the calls that change something.
func (o outcome) changes() []string {
	return slices.DeleteFunc(slices.Clone(o.calls), func(call string) bool {
		word, _, _ := strings.Cut(call, " ")
		return slices.Contains([]string{"about", "session.logout", "ls", "folder.info", "object.collect", "vm.info"}, word)
	})
}

// command returns a command that runs the script in a shell.
func (v *vsphere) command(shell string, words ...string) *exec.Cmd {
	name, args, _ := strings.Cut(shell, " ")
	cmd := exec.CommandContext(v.t.Context(), name, append(append(strings.Fields(args), script), words...)...)
	cmd.Env = []string{"STUB=" + v.dir, "PATH=" + filepath.Join(v.dir, "bin") + ":" + os.Getenv("PATH")}
	for name, value := range v.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// run runs the script in a shell, and checks that the password is not in the
// output or in an argument, and that no file remains.
func (v *vsphere) run(shell string, words ...string) outcome {
	v.t.Helper()
	v.remove("calls", "report")
	v.put("calls", "")
	cmd := v.command(shell, words...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		v.t.Fatal(err)
	}
	o := outcome{code: cmd.ProcessState.ExitCode(), text: text.String(), report: v.read("report"), calls: v.calls()}
	if disclosed := o.text + o.report + strings.Join(o.calls, ""); strings.Contains(disclosed, password) {
		v.t.Errorf("the password is disclosed:\n%s", disclosed)
	}
	if left, err := os.ReadDir(filepath.Join(v.dir, "tmp")); err != nil || len(left) > 0 {
		v.t.Errorf("files remain: %v, %v", left, err)
	}
	return o
}

// read returns the content of a file, "" if it does not exist.
func (v *vsphere) read(name string) string {
	v.t.Helper()
	data, err := os.ReadFile(filepath.Join(v.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		v.t.Fatal(err)
	}
	return string(data)
}

// calls returns the calls of govc since the last run.
func (v *vsphere) calls() []string {
	v.t.Helper()
	return slices.DeleteFunc(strings.Split(v.read("calls"), "\n"), func(call string) bool { return call == "" })
}

// machines lists the machines of the group's folder, "" if there is no folder.
func (v *vsphere) machines() string {
	v.t.Helper()
	entries, err := os.ReadDir(filepath.Join(v.dir, "vm", "apps.web"))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err != nil {
		v.t.Fatal(err)
	}
	found := []string{"folder"}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(v.dir, "vm", "apps.web", entry.Name()))
		if err != nil {
			v.t.Fatal(err)
		}
		found = append(found, entry.Name()+": "+strings.TrimSpace(string(data)))
	}
	return strings.Join(found, ", ")
}

// expect runs the script and compares its exit code, the machines afterwards,
// and lines of its output.
func (v *vsphere) expect(shell, word string, code int, machines string, wantText ...string) outcome {
	v.t.Helper()
	o := v.run(shell, word)
	if o.code != code {
		v.t.Errorf("%s exited with %d:\n%s", word, o.code, o.text)
	}
	if got := v.machines(); got != machines {
		v.t.Errorf("machines after %s are %q, want %q", word, got, machines)
	}
	if got := strings.FieldsFunc(o.text, func(r rune) bool { return r == '\n' }); !slices.Equal(got, wantText) {
		v.t.Errorf("the output of %s is %q, want %q", word, got, wantText)
	}
	return o
}

func expectCalls(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the calls are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// inShells runs a test in each installed shell.
func inShells(t *testing.T, test func(t *testing.T, shell string)) {
	t.Helper()
	var tested []string
	for _, shell := range []string{"sh", "dash", "bash", "busybox sh"} {
		name, _, _ := strings.Cut(shell, " ")
		program, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		// One shell may be a link to another.
		if program, err = filepath.EvalSymlinks(program); err != nil || slices.Contains(tested, program) {
			continue
		}
		tested = append(tested, program)
		t.Run(shell, func(t *testing.T) { test(t, shell) })
	}
	if len(tested) == 0 {
		t.Fatal("no shell found")
	}
}
