package vmgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const two = "folder, web-0: 2 4096 poweredOn, web-1: 2 4096 poweredOn"

func TestEnsure_CreatesMachines(t *testing.T) {
	inShells(t, func(t *testing.T, shell string) {
		v := newVSphere(t)
		o := v.expect(shell, "ensure", 0, two,
			"vms: made the folder /DC0/vm/apps.web", "vms: cloned web-0 from debian", "vms: turned web-0 on",
			"vms: cloned web-1 from debian", "vms: turned web-1 on", "vms: running, as wanted: 2")
		expectCalls(t, o.calls, []string{
			"about",
			"folder.info vm", "ls -t Folder vm", "folder.create vm/apps.web", "folder.info vm", "ls -t Folder vm",
			"ls -t VirtualMachine /DC0/vm/apps.web",
			"vm.clone -vm debian -folder /DC0/vm/apps.web -c 2 -m 4096 -on=false web-0",
			"object.collect -s /DC0/vm/apps.web/web-0 runtime.powerState",
			"object.collect -s /DC0/vm/apps.web/web-0 config.hardware.numCPU",
			"object.collect -s /DC0/vm/apps.web/web-0 config.hardware.memoryMB",
			"vm.power -on /DC0/vm/apps.web/web-0",
			"vm.clone -vm debian -folder /DC0/vm/apps.web -c 2 -m 4096 -on=false web-1",
			"object.collect -s /DC0/vm/apps.web/web-1 runtime.powerState",
			"object.collect -s /DC0/vm/apps.web/web-1 config.hardware.numCPU",
			"object.collect -s /DC0/vm/apps.web/web-1 config.hardware.memoryMB",
			"vm.power -on /DC0/vm/apps.web/web-1",
			"session.logout",
		})

		// A second run has nothing to do.
		again := v.expect(shell, "ensure", 0, two, "vms: running, as wanted: 2")
		expectCalls(t, again.changes(), nil)
	})
}

// TestEnsure_FromAnyState: the script reaches the desired state from any
// initial state.
func TestEnsure_FromAnyState(t *testing.T) {
	for name, test := range map[string]struct {
		there, wanted, after string
		changes              []string
	}{
		"one is missing at the end": {
			"web-0: 2 4096 poweredOn", "2 4096 2", two,
			[]string{"vm.clone -vm debian -folder /DC0/vm/apps.web -c 2 -m 4096 -on=false web-1", "vm.power -on /DC0/vm/apps.web/web-1"},
		},
		"one is missing in between": {
			"web-1: 2 4096 poweredOn", "2 4096 2", two,
			[]string{"vm.clone -vm debian -folder /DC0/vm/apps.web -c 2 -m 4096 -on=false web-0", "vm.power -on /DC0/vm/apps.web/web-0"},
		},
		"fewer, by number and not by name": {
			"web-0: 2 4096 poweredOn, web-1: 2 4096 poweredOn, web-2: 2 4096 poweredOff, web-10: 2 4096 poweredOn", "2 4096 2", two,
			[]string{"vm.destroy /DC0/vm/apps.web/web-10", "vm.destroy /DC0/vm/apps.web/web-2"},
		},
		"another size, one after another": {
			"web-0: 1 4096 poweredOn, web-1: 2 1024 poweredOff", "2 4096 2", two,
			[]string{
				"vm.power -s -force /DC0/vm/apps.web/web-0", "vm.change -vm /DC0/vm/apps.web/web-0 -c 2 -m 4096", "vm.power -on /DC0/vm/apps.web/web-0",
				"vm.change -vm /DC0/vm/apps.web/web-1 -c 2 -m 4096", "vm.power -on /DC0/vm/apps.web/web-1",
			},
		},
		"one is off": {
			"web-0: 2 4096 poweredOff, web-1: 2 4096 poweredOn", "2 4096 2", two,
			[]string{"vm.power -on /DC0/vm/apps.web/web-0"},
		},
		"others are not changed": {
			"old web-0: 9 9 poweredOn, web: 9 9 poweredOn, web-: 9 9 poweredOn, web-01: 9 9 poweredOff, web-0: 2 4096 poweredOn, web-a: 9 9 poweredOn, web-1-2: 9 9 poweredOn, webx-1: 9 9 poweredOn",
			"2 4096 1",
			"folder, old web-0: 9 9 poweredOn, web: 9 9 poweredOn, web-: 9 9 poweredOn, web-0: 2 4096 poweredOn, web-01: 9 9 poweredOff, web-1-2: 9 9 poweredOn, web-a: 9 9 poweredOn, webx-1: 9 9 poweredOn",
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inShells(t, func(t *testing.T, shell string) {
				v := newVSphere(t)
				v.fill(test.there)
				wanted := strings.Fields(test.wanted)
				v.with("VM_CPU", wanted[0], "VM_MEMORY", wanted[1], "VM_REPLICAS", wanted[2])
				o := v.run(shell, "ensure")
				if o.code != 0 || v.machines() != test.after {
					t.Errorf("the exit code is %d, the machines are %s:\n%s", o.code, v.machines(), o.text)
				}
				expectCalls(t, o.changes(), test.changes)
				if check := v.run(shell, "check"); check.code != 0 || len(check.changes()) > 0 {
					t.Errorf("check exited with %d and changed %v:\n%s", check.code, check.changes(), check.text)
				}
			})
		})
	}
}

// fill creates the group's folder with machines.
func (v *vsphere) fill(there string) {
	v.t.Helper()
	if err := os.Mkdir(filepath.Join(v.dir, "vm", "apps.web"), 0o700); err != nil {
		v.t.Fatal(err)
	}
	for machine := range strings.SplitSeq(there, ", ") {
		if name, facts, found := strings.Cut(machine, ": "); found {
			v.put("vm/apps.web/"+name, facts+"\n")
		}
	}
}

// TestEnsure_AfterAnyFailedCall: if any call fails, with or without effect, the
// script exits immediately, and another run completes the work.
func TestEnsure_AfterAnyFailedCall(t *testing.T) {
	const before = "web-0: 1 1024 poweredOn, web-3: 2 4096 poweredOn"
	for _, test := range []struct{ word, there, after string }{
		{"ensure", "", two}, {"ensure", before, two}, {"destroy", before, ""},
	} {
		for _, how := range []string{"refused", "lost"} {
			t.Run(fmt.Sprintf("%s of %q, %s", test.word, test.there, how), func(t *testing.T) {
				whole := newVSphere(t)
				if test.there != "" {
					whole.fill(test.there)
				}
				calls := len(whole.run("sh", test.word).calls)
				if calls < 5 {
					t.Fatalf("only %d calls", calls)
				}
				// The last call is the logout, whose failure has no effect.
				for number := 1; number < calls; number++ {
					v := newVSphere(t)
					if test.there != "" {
						v.fill(test.there)
					}
					v.put("fail", strconv.Itoa(number))
					if how == "lost" {
						v.put("how", how)
					}
					first := v.run("sh", test.word)
					if first.code == 0 {
						t.Fatalf("no error after the failure of call %d:\n%s", number, first.text)
					}
					if after := len(first.calls) - number; after > 1 || after == 1 && first.calls[number] != "session.logout" {
						t.Errorf("calls after the failed call %d: %v", number, first.calls[number:])
					}
					v.remove("fail", "how")
					if second := v.run("sh", test.word); second.code != 0 || v.machines() != test.after {
						t.Fatalf("call %d failed, and the next run exited with %d and %q:\n%s", number, second.code, v.machines(), second.text)
					}
				}
			})
		}
	}
}

func TestDestroy_MachinesAndFolder(t *testing.T) {
	inShells(t, func(t *testing.T, shell string) {
		v := newVSphere(t)
		o := v.expect(shell, "destroy", 0, "", "vms: there is nothing to destroy")
		expectCalls(t, o.changes(), nil)

		v.fill("web-0: 2 4096 poweredOn, web-7: 2 4096 poweredOff")
		o = v.expect(shell, "destroy", 0, "", "vms: destroyed web-0", "vms: destroyed web-7", "vms: destroyed the folder /DC0/vm/apps.web")
		expectCalls(t, o.changes(), []string{"vm.destroy /DC0/vm/apps.web/web-0", "vm.destroy /DC0/vm/apps.web/web-7", "object.destroy /DC0/vm/apps.web"})

		// Objects that others put into the folder are not destroyed with the
		// folder.
		v.fill("web-0: 2 4096 poweredOn, database: 4 8192 poweredOn")
		v.expect(shell, "destroy", 0, "folder, database: 4 8192 poweredOn", "vms: destroyed web-0",
			"vms: the folder /DC0/vm/apps.web stays: somebody else has put something there")
	})
}

func TestCheck(t *testing.T) {
	for there, wantText := range map[string]string{
		"":                        "vms: there is no web-0",
		"web-0: 2 4096 poweredOn": "vms: there is no web-1",
		"web-0: 2 4096 poweredOn, web-1: 2 4096 poweredOff":                         "vms: web-1 is poweredOff",
		"web-0: 2 4096 poweredOn, web-1: 4 4096 poweredOn":                          "vms: web-1 does not have the wanted size",
		"web-0: 2 1024 poweredOn, web-1: 2 4096 poweredOn":                          "vms: web-0 does not have the wanted size",
		"web-0: 2 4096 poweredOn, web-1: 2 4096 poweredOn, web-2: 2 4096 poweredOn": "vms: web-2 is surplus",
	} {
		v := newVSphere(t)
		v.fill(there)
		o := v.run("sh", "check")
		if o.code != 1 || strings.TrimSpace(o.text) != wantText {
			t.Errorf("with %q the exit code is %d and the output %q, want %q", there, o.code, o.text, wantText)
		}
		expectCalls(t, o.changes(), nil)
	}
	v := newVSphere(t)
	v.expect("sh", "check", 1, "", "vms: there is no folder vm/apps.web")
}

// TestInvalidSettings_ChangeNothing: invalid settings are detected before
// anything changes.
func TestInvalidSettings_ChangeNothing(t *testing.T) {
	for name, test := range map[string]struct {
		env      []string
		words    []string
		wantText string
		calls    int
	}{
		"a wrong password is tried once": {[]string{"GOVC_PASSWORD", "wrong"}, []string{"ensure"}, "govc: ServerFaultCode: Login failure", 1},
		"no host":                        {[]string{"GOVC_URL", ""}, []string{"ensure"}, "vms: the Secret has no VC_HOST", 0},
		"a host with credentials":        {[]string{"GOVC_URL", "https://me:" + password + "@vcenter"}, []string{"ensure"}, "vms: VC_HOST holds more than a host: give the user as VC_USER and the password as VC_PASS", 0},
		"a misspelled parent":            {[]string{"VM_PARENT", "mv"}, []string{"destroy"}, "govc: folder 'mv' not found", 3},
		"no command":                     {nil, nil, "vms: expected ensure, destroy or check", 0},
		"an unknown command":             {nil, []string{"about"}, "vms: expected ensure, destroy or check", 0},
	} {
		v := newVSphere(t).with(test.env...)
		o := v.run("sh", test.words...)
		if o.code == 0 || strings.TrimSpace(o.text) != test.wantText || len(o.changes()) > 0 || len(o.calls) != test.calls {
			t.Errorf("%s: the exit code is %d after %q, the output %q", name, o.code, o.calls, o.text)
		}
	}
	v := newVSphere(t)
	delete(v.env, "VM_FOLDER")
	if o := v.run("sh", "destroy"); o.code == 0 || !strings.Contains(o.text, "VM_FOLDER") || len(o.calls) > 0 {
		t.Errorf("without VM_FOLDER the exit code is %d, the output %q", o.code, o.text)
	}
	v = newVSphere(t).with("VM_TEMPLATE", "no such")
	v.expect("sh", "ensure", 1, "folder", "vms: made the folder /DC0/vm/apps.web", "govc: vm 'no such' not found")
}

// TestSignal_StopsScript: after SIGTERM, the script exits when the current call
// returns.
func TestSignal_StopsScript(t *testing.T) {
	inShells(t, func(t *testing.T, shell string) {
		v := newVSphere(t)
		v.put("stop", "")
		v.expect(shell, "ensure", 143, "folder, web-0: 2 4096 poweredOff", "vms: made the folder /DC0/vm/apps.web")
		v.remove("stop")
		if o := v.run(shell, "ensure"); o.code != 0 || v.machines() != two {
			t.Errorf("the next run exited with %d and %s", o.code, v.machines())
		}
	})
}

// TestShellcheck runs shellcheck, if it is installed.
func TestShellcheck(t *testing.T) {
	program, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck is not installed")
	}
	if output, err := exec.CommandContext(t.Context(), program, script).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
