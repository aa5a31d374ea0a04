package vmgroup

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestParallel_NeverExceedsLimit: machines are cloned at the same time, at most
// VM_PARALLEL of them.
func TestParallel_NeverExceedsLimit(t *testing.T) {
	for _, limit := range []int{1, 3, 20} {
		inShells(t, func(t *testing.T, shell string) {
			v := newVSphere(t).with("VM_REPLICAS", "7", "VM_PARALLEL", strconv.Itoa(limit))
			v.put("slow", "0.4")
			if o := v.run(shell, "ensure"); o.code != 0 || strings.Count(v.machines(), "poweredOn") != 7 {
				t.Fatalf("the exit code is %d, the machines are %s:\n%s", o.code, v.machines(), o.text)
			}
			// On a slow machine, the clones may not reach the limit.
			most, err := strconv.Atoi(slices.Max(strings.Fields(v.read("parallel"))))
			if err != nil || most > limit || most < min(limit, 2) {
				t.Errorf("up to %d clones at the same time, want at most %d: %v", most, limit, err)
			}
		})
	}
}

// TestSignal_StopsScript: after SIGTERM, the script exits when the current calls
// return, and leaves no process.
func TestSignal_StopsScript(t *testing.T) {
	inShells(t, func(t *testing.T, shell string) {
		v := newVSphere(t).with("VM_REPLICAS", "6", "VM_PARALLEL", "2")
		v.put("slow", "0")
		v.put("hold", "")
		v.put("calls", "")
		cmd := v.command(shell, "ensure")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(30 * time.Second); len(strings.Fields(v.read("parallel"))) < 2; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no clones")
			}
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		v.remove("hold")
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 143 {
			t.Errorf("the script ended with %v", err)
		}
		if err := syscall.Kill(-cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("processes remain: %v", err)
		}
		if got := v.machines(); got != "folder, web-0: 2 4096 poweredOff, web-1: 2 4096 poweredOff" {
			t.Errorf("the machines are %s", got)
		}
		v.remove("slow")
		if o := v.run(shell, "ensure"); o.code != 0 || strings.Count(v.machines(), "poweredOn") != 6 {
			t.Errorf("the next run exited with %d, the machines are %s:\n%s", o.code, v.machines(), o.text)
		}
	})
}

// TestParallel_TwoRuns: two runs at the same time create each machine once.
func TestParallel_TwoRuns(t *testing.T) {
	inShells(t, func(t *testing.T, shell string) {
		v := newVSphere(t).with("VM_REPLICAS", "5", "VM_PARALLEL", "2")
		v.fill("web-2: 2 4096 poweredOff")
		v.put("calls", "")
		var runs sync.WaitGroup
		for range 2 {
			runs.Go(func() {
				if output, err := v.command(shell, "ensure").CombinedOutput(); err != nil {
					t.Errorf("%v:\n%s", err, output)
				}
			})
		}
		runs.Wait()
		if got := v.machines(); strings.Count(got, "2 4096 poweredOn") != 5 || strings.Count(got, "web-") != 5 {
			t.Errorf("the machines are %s", got)
		}
	})
}

// TestParallel_DestroyDuringRepair: a repair that runs during a deletion leaves no
// machine, and a later one creates none.
func TestParallel_DestroyDuringRepair(t *testing.T) {
	for _, others := range []string{"", "database: 4 8192 poweredOn"} {
		for _, delay := range []time.Duration{0, 30, 80, 150, 250, 400} {
			t.Run(fmt.Sprintf("%q after %d ms", others, delay), func(t *testing.T) {
				v := newVSphere(t).with("VM_REPLICAS", "6", "VM_PARALLEL", "2")
				v.fill(others)
				v.put("calls", "")
				repair := v.command("sh", "ensure", "scheduled")
				if err := repair.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(delay * time.Millisecond)
				// Kubernetes retries the Job.
				var output []byte
				err := errors.New("not run")
				for range 20 {
					if output, err = v.command("sh", "destroy").CombinedOutput(); err == nil {
						break
					}
				}
				if err != nil {
					t.Fatalf("%v:\n%s", err, output)
				}
				// The result of the repair depends on the time.
				_ = repair.Wait()
				found, err := exec.CommandContext(t.Context(), "find", v.dir+"/vm", "-name", "web-*", "-type", "f").Output()
				if err != nil || len(found) > 0 {
					t.Errorf("machines remain: %s, %v:\n%s", found, err, output)
				}
			})
		}
	}
}
