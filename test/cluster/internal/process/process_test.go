package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStop_FindsProcessByReference(t *testing.T) {
	started := sleeper(t)

	running, err := started.Ref.Running()
	if err != nil || !running {
		t.Fatalf("Running() = %v, %v; want true", running, err)
	}
	if err := Stop(t.Context(), started.Ref, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	running, err = started.Ref.Running()
	if err != nil || running {
		t.Fatalf("after Stop: Running() = %v, %v; want false", running, err)
	}
}

func TestStop_KillsProcessThatIgnoresSIGTERM(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	stubborn, err := Start(log, "sh", "-c", `trap "" TERM; echo deaf; while :; do sleep 1; done`)
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { printed, _ := os.ReadFile(log); return len(printed) > 0 })
	if err := Stop(t.Context(), stubborn.Ref, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	<-stubborn.Done()
	if !strings.Contains(stubborn.Err().Error(), "killed") {
		t.Errorf("the process ended with %q, want a kill", stubborn.Err())
	}
}

func TestStop_IgnoresOtherProcessWithSameID(t *testing.T) {
	bystander := sleeper(t)
	stale := Ref{PID: bystander.Ref.PID, Started: "an earlier moment"}

	running, err := stale.Running()
	if err != nil || running {
		t.Fatalf("Running() = %v, %v; want false", running, err)
	}
	if err := Stop(t.Context(), stale, time.Second); err != nil {
		t.Fatal(err)
	}
	if running, err := bystander.Ref.Running(); err != nil || !running {
		t.Fatalf("the other process: Running() = %v, %v; want true", running, err)
	}
}

func TestRunning_FalseForInvalidReference(t *testing.T) {
	for _, ref := range []Ref{{}, {PID: 1, Started: "x"}, {PID: -1, Started: "x"}, {PID: 1 << 30, Started: "x"}} {
		if running, err := ref.Running(); err != nil || running {
			t.Errorf("%+v.Running() = %v, %v; want false", ref, running, err)
		}
	}
}

func TestRunning_FalseForZombie(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ref, err := RefTo(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Not reaped yet: the process has ended, but keeps its ID.
	until(t, func() bool { running, err := ref.Running(); return err == nil && !running })
	if err := cmd.Wait(); err == nil {
		t.Error("no error for a killed process")
	}
}

func TestStart_NamesMissingProgram(t *testing.T) {
	_, err := Start(filepath.Join(t.TempDir(), "log"), "/no/such/program")
	if err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("Start() = %v, want the name of the program", err)
	}
}

// sleeper starts a process that runs until the test ends.
func sleeper(t *testing.T) *Process {
	t.Helper()
	started, err := Start(filepath.Join(t.TempDir(), "log"), "sleep", "300")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The context of the test is canceled by now.
		if err := Stop(context.Background(), started.Ref, time.Second); err != nil {
			t.Error(err)
		}
		<-started.Done()
	})
	return started
}

// until waits for a condition.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("timed out")
		}
	}
}
