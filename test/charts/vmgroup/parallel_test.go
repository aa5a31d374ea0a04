package vmgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestParallel_ReachesAndNeverExceedsLimit: machines are cloned at the same time,
// at most VM_PARALLEL of them.
func TestParallel_ReachesAndNeverExceedsLimit(t *testing.T) {
	const machines = 7
	for _, limit := range []int{1, 3, 20} {
		inShells(t, func(t *testing.T, shell string) {
			v := newVSphere(t).with("VM_REPLICAS", strconv.Itoa(machines), "VM_PARALLEL", strconv.Itoa(limit))
			want := strconv.Itoa(min(limit, machines))
			v.put("barrier", want)
			if o := v.run(shell, "ensure"); o.code != 0 || strings.Count(v.machines(), "poweredOn") != machines {
				t.Fatalf("the exit code is %d, the machines are %s:\n%s", o.code, v.machines(), o.text)
			}
			if most := slices.Max(strings.Fields(v.read("parallel"))); most != want {
				t.Errorf("up to %s clones at the same time, want %s", most, want)
			}
		})
	}
}

// TestSignal_StopsScript: after SIGTERM, the script exits when the current calls
// return, and leaves no process.
func TestSignal_StopsScript(t *testing.T) {
	inShells(t, func(t *testing.T, shell string) {
		v := newVSphere(t).with("VM_REPLICAS", "6", "VM_PARALLEL", "2")
		v.put("barrier", "6")
		cmd := v.command(shell, "ensure")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		v.put("output", "")
		output, err := os.OpenFile(filepath.Join(v.dir, "output"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer output.Close()
		cmd.Stdout = output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "two clones have started", func() bool { return len(strings.Fields(v.read("parallel"))) == 2 })
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "the script has handled the signal", func() bool { return strings.Contains(v.read("output"), "vms: interrupted: waiting for") })
		v.remove("barrier")
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 143 {
			t.Errorf("the script ended with %v", err)
		}
		if err := syscall.Kill(-cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("processes remain: %v", err)
		}
		if got := v.machines(); got != "folder, web-0: 2 4096 poweredOff, web-1: 2 4096 poweredOff" {
			t.Errorf("the machines are %s", got)
		}
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
// machine, and a later one creates none. The deletion starts after a number of
// calls of the repair: before, during and after its clones.
func TestParallel_DestroyDuringRepair(t *testing.T) {
	for _, others := range []string{"", "database: 4 8192 poweredOn"} {
		for _, calls := range []int{0, 3, 5, 8, 12, 18} {
			t.Run(fmt.Sprintf("%q after %d calls", others, calls), func(t *testing.T) {
				v := newVSphere(t).with("VM_REPLICAS", "6", "VM_PARALLEL", "2")
				v.fill(others)
				repair := v.command("sh", "ensure", "scheduled")
				if err := repair.Start(); err != nil {
					t.Fatal(err)
				}
				waitUntil(t, fmt.Sprintf("%d calls of the repair", calls), func() bool { return len(v.calls()) >= calls })
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

// waitUntil waits until a condition is true.
func waitUntil(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(10 * time.Minute)
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within 30 seconds: %s", what)
		}
	}
}
