package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// DefaultDir is the folder of a cluster that was not given one.
const DefaultDir = ".cluster"

// Options say what cluster to start.
type Options struct {
	// Dir is the folder that the cluster lives in.
	Dir string
	// Bin holds the programs: kwok, and kube with Kubernetes' own.
	Bin string
	// Port of the API server; any free one when 0.
	Port int
	// Nodes is how many nodes kwok plays.
	Nodes int
	// AuditLog is a file that every request is noted in; none when empty.
	AuditLog string
	// Timeout is how long the start may take.
	Timeout time.Duration
	// Progress is told every step that is done.
	Progress func(format string, args ...any)
}

// complete checks the options and makes their paths absolute, since the parts
// of the cluster outlive the working folder of whoever starts it.
func (o *Options) complete() error {
	if o.Nodes < 1 {
		return errors.New("a cluster needs at least one node: use --nodes 1 or more")
	}
	if o.Port < 0 || o.Port > 65535 {
		return fmt.Errorf("--port %d is not a port: use 1 to 65535, or 0 for any that is free", o.Port)
	}
	for _, path := range []*string{&o.Dir, &o.Bin, &o.AuditLog} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	for _, program := range []string{
		kubeProgram(o.Bin, etcdName), kubeProgram(o.Bin, apiServerName), kubeProgram(o.Bin, controllerManagerName),
		kubeProgram(o.Bin, schedulerName), kwokProgram(o.Bin), stagesDir(o.Bin), storageClassFile(o.Bin),
	} {
		if _, err := os.Stat(program); err != nil {
			return fmt.Errorf("%s is missing: run `make cluster-binaries`, or say where the programs are with --bin", program)
		}
	}
	return nil
}

// The layout of the folder with the programs, which the Makefile fills.

func kubeProgram(bin, name string) string { return filepath.Join(bin, "kube", name) }
func kwokProgram(bin string) string       { return filepath.Join(bin, "kwok") }
func stagesDir(bin string) string         { return filepath.Join(bin, "kube", "stages") }
func storageClassFile(bin string) string  { return filepath.Join(bin, "kube", "storage-class.yaml") }
