package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	// Our own client's messages are of no use to anybody here.
	ctrl.SetLogger(logr.Discard())

	// A terminal that is closed is a Ctrl-C, too.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nError:", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	var options options
	root := &cobra.Command{
		Use:           "local",
		Short:         "Run the operator on this machine, to look at it",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&options.cluster, "cluster", ".cluster", "`folder` of the local cluster, or \"existing\" for that of $KUBECONFIG")
	flags.StringVar(&options.bin, "bin", "bin", "`folder` with the programs")
	root.AddCommand(
		&cobra.Command{
			Use:   "run",
			Short: "Start everything, with the samples, and stay until Ctrl-C",
			Args:  cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return with(cmd, options, run)
			},
		},
		&cobra.Command{
			Use:   "demo",
			Short: "Start everything, go through what the operator does, and stop it again",
			Args:  cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return with(cmd, options, demo)
			},
		},
	)
	return root
}

// with runs a command on a rig and takes the rig down however the command ends.
func with(cmd *cobra.Command, options options, do func(context.Context, *rig) error) (err error) {
	r, err := newRig(cmd.Context(), cmd.OutOrStdout(), options)
	if err != nil {
		return err
	}
	err = do(r.ctx, r)
	if err != nil {
		err = r.explain(err)
	}
	return errors.Join(err, r.stop())
}
