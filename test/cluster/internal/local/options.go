package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// DefaultDir is the default folder of a cluster.
const DefaultDir = ".cluster"

// Options define a cluster.
type Options struct {
	// Dir is the folder of the cluster.
	Dir string
	// Bin contains the programs: kwok, and kube with the programs of
	// Kubernetes.
	Bin string
	// Port of the API server; 0 means a free port.
	Port int
	// Nodes is the number of simulated nodes.
	Nodes int
	// Containers replaces the simulated nodes with one real node, which runs
	// containers. It requires Linux and root.
	Containers bool
	// Images is a folder with image archives for the real node, which cannot
	// pull images.
	Images string
	// AuditLog is the file for the audit log; empty means no audit log.
	AuditLog string
	// Timeout is the maximum duration of the start.
	Timeout time.Duration
	// Progress is called after each step.
	Progress func(format string, args ...any)
}

// complete validates the options and makes their paths absolute, because the
// components continue to run when the caller has exited.
func (o *Options) complete() error {
	if o.Nodes < 1 {
		return errors.New("--nodes: got less than 1, want at least 1")
	}
	if o.Port < 0 || o.Port > 65535 {
		return fmt.Errorf("--port: got %d, want 1 to 65535, or 0 for a free port", o.Port)
	}
	for _, path := range []*string{&o.Dir, &o.Bin, &o.AuditLog, &o.Images} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	target, programs := "cluster-binaries", []string{kwokProgram(o.Bin), stagesDir(o.Bin), storageClassFile(o.Bin)}
	if o.Containers {
		o.Nodes = 1
		target, programs = "node-binaries", nodePrograms(o.Bin)
	}
	for _, name := range []string{etcdName, apiServerName, controllerManagerName, schedulerName} {
		programs = append(programs, kubeProgram(o.Bin, name))
	}
	for _, program := range programs {
		if _, err := os.Stat(program); err != nil {
			return fmt.Errorf("%s is missing: run `make %s`, or set --bin to the folder with the programs", program, target)
		}
	}
	return nil
}

// The layout of the folder with the programs, which the Makefile creates.

func kubeProgram(bin, name string) string { return filepath.Join(bin, "kube", name) }
func kwokProgram(bin string) string       { return filepath.Join(bin, "kwok") }
func stagesDir(bin string) string         { return filepath.Join(bin, "kube", "stages") }
func nodeFolder(bin string) string        { return filepath.Join(bin, "node") }
func cniFolder(bin string) string         { return filepath.Join(bin, "node", "cni") }
func storageClassFile(bin string) string  { return filepath.Join(bin, "kube", "storage-class.yaml") }
