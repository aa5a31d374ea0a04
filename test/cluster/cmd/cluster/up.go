package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/test/cluster/internal/local"
)

// up is `cluster up`.
func up(dir *string) *cobra.Command {
	var options local.Options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a new cluster and return when it is ready",
		Long: `Start a new cluster and return when it is ready. It goes on running until
"cluster down". A cluster that runs already is left as it is.`,
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
	flags.StringVar(&options.Bin, "bin", bin, "the `folder` with the programs (default: the one of this program)")
	if err != nil {
		_ = cmd.MarkFlagRequired("bin")
	}
	flags.Lookup("bin").DefValue = ""
	flags.IntVar(&options.Port, "port", 0, "the `port` of the API server (default: any free one)")
	flags.IntVar(&options.Nodes, "nodes", 2, "how many nodes to play")
	flags.StringVar(&options.AuditLog, "audit-log", "", "a `file` to add a line to for every request (default: none)")
	flags.DurationVar(&options.Timeout, "timeout", time.Minute, "how long the start may take")
	return cmd
}

// ownFolder is where this program is, also when called by a symbolic link.
func ownFolder() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("cannot tell where this program is: %w", err)
	}
	return filepath.Dir(path), nil
}
