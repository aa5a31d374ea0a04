package main

import (
	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/test/cluster/internal/local"
)

// status returns the command `cluster status`.
func status(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Print the state of all components; exit with code 1 if one is not running",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := local.Check(cmd.Context(), *dir)
			if err != nil {
				return err
			}
			report(say(cmd), status)
			if !status.Up() {
				return errSilent
			}
			return nil
		},
	}
}

// report prints one line per component.
func report(say func(string, ...any), status *local.Status) {
	for _, part := range status.Parts {
		if part.Problem != nil {
			say("%-24s DOWN     %v (see %s)", part.Name, part.Problem, part.Log)
			continue
		}
		say("%-24s running  pid %d", part.Name, part.PID)
	}
	switch {
	case status.Up():
		say("Ready at %s. To use it:\n\n  export KUBECONFIG=%s", status.Server, status.Kubeconfig)
	case !status.Started:
		say("The cluster was never ready: run `cluster up` to clean up and start again.")
	default:
		say("The cluster is broken: run `cluster up` to clean up and start again.")
	}
}
