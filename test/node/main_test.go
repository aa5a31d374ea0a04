package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// folder is the folder of the cluster, and repository that of the project.
var folder, repository string

func TestMain(m *testing.M) {
	folder = os.Getenv("CHARTWRIGHT_NODE")
	if folder == "" {
		fmt.Println("no test runs without a real node: run `make test-node`")
		os.Exit(0)
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// prepare deploys the operator, unless it already runs.
func prepare() error {
	var err error
	if repository, err = filepath.Abs("../.."); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, "kubeconfig")); err != nil {
		return fmt.Errorf("$CHARTWRIGHT_NODE: want the folder of a cluster with a real node: run `make node-up`: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), operatorTimeout)
	defer cancel()
	return deployOperator(ctx)
}

// program returns the path of a program that the Makefile builds.
func program(path ...string) string {
	return filepath.Join(append([]string{repository, "bin"}, path...)...)
}
