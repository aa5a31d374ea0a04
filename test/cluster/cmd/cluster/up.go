package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/test/cluster/internal/local"
)

// up returns the command `cluster up`.
func up(dir *string) *cobra.Command {
	var options local.Options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster and wait until it is ready",
		Long: `Start a cluster and wait until it is ready. It runs until "cluster down".
A running cluster is not changed, and the remains of a crashed one are removed.`,
		Example: `  cluster up
  cluster up --dir .cluster --audit-log .cluster/audit.log --nodes 3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			options.Dir, options.Progress = *dir, say(cmd)
			kubeconfig, err := local.Up(cmd.Context(), options)
			if err != nil {
				return err
			}
			say(cmd)("Ready after %.1f s. To use it:\n\n  export KUBECONFIG=%s", time.Since(began).Seconds(), kubeconfig)
			return nil
		},
	}
	bin, err := ownFolder()
	flags := cmd.Flags()
	flags.StringVar(&options.Bin, "bin", bin, "`folder` with the Kubernetes programs (default: the folder of this program)")
	if err != nil {
		_ = cmd.MarkFlagRequired("bin")
	}
	flags.Lookup("bin").DefValue = ""
	flags.IntVar(&options.Port, "port", 0, "`port` of the API server (default: a free port)")
	flags.IntVar(&options.Nodes, "nodes", 2, "number of simulated nodes")
	flags.BoolVar(&options.Containers, "containers", false, "run containers on one real node instead of simulated nodes; requires Linux and root")
	flags.StringVar(&options.Images, "images", "", "`folder` with image archives (*.tar) for the real node, which cannot pull images")
	flags.StringVar(&options.AuditLog, "audit-log", "", "append an audit log entry for each request to this `file` (default: no audit log)")
	flags.DurationVar(&options.Timeout, "timeout", time.Minute, "maximum duration of the start")
	return cmd
}

// ownFolder returns the folder of this program, also if it is called through a
// symbolic link.
func ownFolder() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("cannot find the path of this program: %w", err)
	}
	return filepath.Dir(path), nil
}
