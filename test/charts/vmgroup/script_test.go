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
		v.remove("vm/apps.web", "records/location")
		v.expect(shell, "prepare", 0, "folder", "vms: created the folder vm/apps.web")
		v.expect(shell, "prepare", 0, "folder")
		v.put("records/location", "vm\n")
		o := v.expect(shell, "ensure", 0, two,
			"vms: cloned web-0 from debian", "vms: turned web-0 on", "vms: cloned web-1 from debian", "vms: turned web-1 on", "vms: 2 of 2 running")
		if want := "2 running, of 2 CPU and 4 GiB each, from debian\ncloned web-0 from debian\nturned web-0 on\ncloned web-1 from debian\nturned web-1 on\n"; o.report != want {
			t.Errorf("the report is %q, want %q", o.report, want)
		}
		const properties = "runtime.powerState config.hardware.numCPU config.hardware.memoryMB"
		expectCalls(t, o.calls, []string{
			"about", "folder.info vm", "ls -t Folder vm", "ls -t VirtualMachine /DC0/vm/apps.web",
			"vm.clone -vm debian -folder /DC0/vm/apps.web -c 2 -m 4096 -on=false web-0",
			"vm.power -on /DC0/vm/apps.web/web-0",
			"vm.clone -vm debian -folder /DC0/vm/apps.web -c 2 -m 4096 -on=false web-1",
			"vm.power -on /DC0/vm/apps.web/web-1",
			"ls -t VirtualMachine /DC0/vm/apps.web",
			"object.collect /DC0/vm/apps.web/web-0 " + properties, "object.collect /DC0/vm/apps.web/web-1 " + properties,
			"session.logout",
		})

		// A second run has nothing to do.
		again := v.expect(shell, "ensure", 0, two, "vms: 2 of 2 running")
		expectCalls(t, again.changes(), nil)
		if want := "2 running, of 2 CPU and 4 GiB each, from debian\n"; again.report != want {
			t.Errorf("the report is %q, want %q", again.report, want)
		}
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
		"one is off, and another one has another size": {
			"web-0: 1 4096 poweredOn, web-1: 2 4096 poweredOff", "2 4096 2", two,
			[]string{"vm.power -s -force /DC0/vm/apps.web/web-0", "vm.change -vm /DC0/vm/apps.web/web-0 -c 2 -m 4096", "vm.power -on /DC0/vm/apps.web/web-0", "vm.power -on /DC0/vm/apps.web/web-1"},
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
	if err := os.MkdirAll(filepath.Join(v.dir, "vm", "apps.web"), 0o700); err != nil {
		v.t.Fatal(err)
	}
	for machine := range strings.SplitSeq(there, ", ") {
		if name, facts, found := strings.Cut(machine, ": "); found {
			v.put("vm/apps.web/"+name, facts+"\n")
		}
	}
}

// TestScript_AfterAnyFailedCall: if any call fails, with or without effect, the
// script fails or still completes the work, and another run completes it.
func TestScript_AfterAnyFailedCall(t *testing.T) {
	const before = "web-0: 1 1024 poweredOn, web-1: 2 4096 poweredOff, web-3: 2 4096 poweredOn"
	for _, test := range []struct{ word, there, after string }{
		{"prepare", "", "folder"}, {"ensure", "folder", two}, {"ensure", before, two}, {"destroy", before, ""},
		{"destroy", before + ", database: 4 8192 poweredOn", ""},
	} {
		for _, how := range []string{"refused", "lost"} {
			t.Run(fmt.Sprintf("%s of %q, %s", test.word, test.there, how), func(t *testing.T) {
				start := func() *vsphere {
					v := newVSphere(t)
					v.fill(test.there)
					if test.there == "" {
						v.remove("vm/apps.web", "records/location")
					}
					return v
				}
				calls := len(start().run("sh", test.word).calls)
				if calls < 5 {
					t.Fatalf("only %d calls", calls)
				}
				// The last call is the logout, whose failure has no effect.
				for number := 1; number < calls; number++ {
					v := start()
					v.put("fail", strconv.Itoa(number))
					if how == "lost" {
						v.put("how", how)
					}
					first := v.run("sh", test.word)
					if first.code == 0 && v.machines() != test.after {
						t.Fatalf("no error after the failure of call %d, and the machines are %q:\n%s", number, v.machines(), first.text)
					}
					if first.code != 0 && !strings.Contains(first.report, fmt.Sprintf("call %d is", number)) {
						t.Errorf("the report is %q after the failure of call %d", first.report, number)
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

// TestEnsure_ContinuesAfterFailures: a machine that cannot be cloned does not
// affect the others, and nothing is resized meanwhile.
func TestEnsure_ContinuesAfterFailures(t *testing.T) {
	inShells(t, func(t *testing.T, shell string) {
		v := newVSphere(t).with("VM_REPLICAS", "4", "VM_PARALLEL", "2")
		v.fill("web-1: 2 4096 poweredOff, web-3: 1 4096 poweredOn, web-9: 2 4096 poweredOn")
		v.put("broken", "web-0")
		o := v.run(shell, "ensure")
		const want = "folder, web-1: 2 4096 poweredOn, web-2: 2 4096 poweredOn, web-3: 1 4096 poweredOn"
		if o.code != 1 || v.machines() != want {
			t.Errorf("the exit code is %d, and the machines are %s:\n%s", o.code, v.machines(), o.text)
		}
		if want := "2 of 4 running\ngovc: no space for web-0\nvms: web-3 is not resized because of the failure above\n"; o.report != want {
			t.Errorf("the report is %q, want %q", o.report, want)
		}
		v.remove("broken")
		if again := v.run(shell, "ensure"); again.code != 0 || v.machines() != "folder, web-0: 2 4096 poweredOn, web-1: 2 4096 poweredOn, web-2: 2 4096 poweredOn, web-3: 2 4096 poweredOn" {
			t.Errorf("the exit code is %d, and the machines are %s:\n%s", again.code, v.machines(), again.text)
		}
	})
}

func TestCheck(t *testing.T) {
	for there, want := range map[string]string{
		"":                        "0 of 2 running\nvms: web-0 does not exist\nvms: web-1 does not exist\n",
		"web-0: 2 4096 poweredOn": "1 of 2 running\nvms: web-1 does not exist\n",
		"web-0: 2 4096 poweredOn, web-1: 2 4096 poweredOff":                         "1 of 2 running\nvms: web-1 is poweredOff\n",
		"web-0: 2 1024 poweredOn, web-1: 4 4096 poweredOn":                          "0 of 2 running\nvms: web-0 has 2 CPU and 1024 MiB\nvms: web-1 has 4 CPU and 4096 MiB\n",
		"web-0: 2 4096 poweredOn, web-1: 2 4096 poweredOn, web-2: 2 4096 poweredOn": "2 of 2 running\nvms: web-2 is surplus\n",
	} {
		v := newVSphere(t)
		v.fill(there)
		o := v.run("sh", "check")
		if o.code != 1 || o.report != want {
			t.Errorf("with %q the exit code is %d and the report %q, want %q", there, o.code, o.report, want)
		}
		expectCalls(t, o.changes(), nil)
	}
	v := newVSphere(t)
	v.remove("vm/apps.web")
	if o := v.run("sh", "check"); o.code != 1 || !strings.Contains(o.text, missingFolder) {
		t.Errorf("without a folder the exit code is %d and the output %q", o.code, o.text)
	}
}

const missingFolder = "vms: the folder vm/apps.web does not exist: it was deleted, or the Secret vc-creds now names another vCenter."

// TestMissingFolder_IsNotCreatedAgain: only the first prepare creates the folder.
// After that, a missing folder means another vCenter, or a deletion.
func TestMissingFolder_IsNotCreatedAgain(t *testing.T) {
	for _, word := range []string{"prepare", "ensure", "check"} {
		for _, record := range []string{"location", "state"} {
			v := newVSphere(t)
			v.remove("vm/apps.web", "records/location")
			v.put("records/"+record, "x")
			o := v.run("sh", word)
			if o.code != 1 || !strings.Contains(o.report, missingFolder) || len(o.changes()) > 0 {
				t.Errorf("%s exited with %d after %v: %s", word, o.code, o.changes(), o.text)
			}
		}
	}
}

// TestPrepare_WrongLocation: without the template, prepare creates nothing, so
// that the location can be corrected.
func TestPrepare_WrongLocation(t *testing.T) {
	v := newVSphere(t).with("VM_TEMPLATE", "no such")
	v.remove("vm/apps.web", "records/location")
	v.expect("sh", "prepare", 1, "", "vms: the template no such does not exist")
	v.with("VM_PARENT", "mv").expect("sh", "prepare", 1, "", "govc: folder 'mv' not found")
}

// TestScheduled_OnlyWhileGroupExists: scheduled runs do nothing before the first
// machine is created and while the group is being deleted.
func TestScheduled_OnlyWhileGroupExists(t *testing.T) {
	for _, word := range []string{"ensure", "check"} {
		v := newVSphere(t)
		v.remove("records/location")
		if o := v.run("sh", word, "scheduled"); o.code != 0 || len(o.calls) > 0 || o.report != "the group is not created yet\n" {
			t.Errorf("%s exited with %d after %v: %q", word, o.code, o.calls, o.report)
		}
		v.put("records/location", "")
		v.put("records/deletion", "")
		if o := v.run("sh", word, "scheduled"); o.code != 0 || len(o.calls) > 0 || o.report != "the group is being deleted\n" {
			t.Errorf("%s exited with %d after %v: %q", word, o.code, o.calls, o.report)
		}
	}
	v := newVSphere(t)
	if o := v.run("sh", "ensure", "scheduled"); o.code != 0 || v.machines() != two {
		t.Errorf("the exit code is %d, and the machines are %s:\n%s", o.code, v.machines(), o.text)
	}
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
		"no host":                        {[]string{"GOVC_URL", ""}, []string{"ensure"}, "vms: the Secret vc-creds does not exist, or has no VC_HOST", 0},
		"a host with credentials":        {[]string{"GOVC_URL", "https://me:" + password + "@vcenter"}, []string{"ensure"}, "vms: VC_HOST in the Secret vc-creds is more than a host: set the user as VC_USER and the password as VC_PASS", 0},
		"a misspelled parent":            {[]string{"VM_PARENT", "mv"}, []string{"destroy"}, "govc: folder 'mv' not found", 3},
		"no command":                     {nil, nil, "vms: expected prepare, ensure, check or destroy", 0},
		"an unknown command":             {nil, []string{"about"}, "vms: expected prepare, ensure, check or destroy", 0},
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
	v = newVSphere(t).with("VM_TEMPLATE", "no such", "VM_REPLICAS", "1")
	v.expect("sh", "ensure", 1, "folder", "govc: vm 'no such' not found", "vms: 0 of 1 running")
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
