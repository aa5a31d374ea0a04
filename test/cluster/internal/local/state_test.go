package local

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/cluster/internal/process"
)

func TestState_RoundTrip(t *testing.T) {
	f := folder(t.TempDir())
	written := &state{Server: "https://127.0.0.1:1", Nodes: 3, Ready: true, Parts: []partState{
		{Name: etcdName, Process: process.Ref{PID: 7, Started: "then"}, Health: "http://127.0.0.1:2/health"},
	}}
	if err := f.writeState(written); err != nil {
		t.Fatal(err)
	}
	read, err := f.readState()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, written) {
		t.Errorf("read %+v, wrote %+v", read, written)
	}
}

func TestState_MissingIsReportedWithAdvice(t *testing.T) {
	_, err := folder(t.TempDir()).readState()
	if !errors.Is(err, errNoCluster) || !strings.Contains(err.Error(), "cluster up") {
		t.Errorf("readState() = %v", err)
	}
}

func TestState_CorruptIsNotMissing(t *testing.T) {
	f := folder(t.TempDir())
	if err := os.WriteFile(f.state(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.readState(); err == nil || errors.Is(err, errNoCluster) {
		t.Errorf("readState() = %v", err)
	}
}

func TestClean_KeepsLogsAndForeignFiles(t *testing.T) {
	f := folder(t.TempDir())
	if err := f.prepare(); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(string(f), "notes.txt")
	for _, file := range []string{foreign, f.log(etcdName), f.kubeconfig(), f.key(caName)} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.clean(); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{foreign: true, f.log(etcdName): true, f.kubeconfig(): false, f.key(caName): false} {
		if _, err := os.Stat(file); (err == nil) != want {
			t.Errorf("%s: %v, want it to be kept: %v", file, err, want)
		}
	}
}

func TestAcquire_IsExclusive(t *testing.T) {
	f := folder(t.TempDir())
	release, err := f.acquire()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.acquire(); err == nil {
		t.Error("a second process got the lock")
	}
	release()
	release, err = f.acquire()
	if err != nil {
		t.Fatalf("after the first process released the lock: %v", err)
	}
	release()
}

func TestReserve_RefusesPortInUse(t *testing.T) {
	first, err := reserve(t.Context(), loopback, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer first.release()
	if _, err := reserve(t.Context(), loopback, first.port); err == nil || !strings.Contains(err.Error(), "--port") {
		t.Errorf("reserving it again = %v, want advice", err)
	}
	second, err := reserve(t.Context(), loopback, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer second.release()
	if first.port == second.port {
		t.Error("got the same port twice")
	}
}

func TestOptions_MissingProgramsAreReportedWithAdvice(t *testing.T) {
	options := Options{Dir: t.TempDir(), Bin: t.TempDir(), Nodes: 1}
	err := options.complete()
	if err == nil || !strings.Contains(err.Error(), "make cluster-binaries") {
		t.Errorf("complete() = %v, want advice", err)
	}
}
