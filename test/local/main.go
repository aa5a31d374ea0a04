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
	// Messages of the Kubernetes client would only disturb the output.
	ctrl.SetLogger(logr.Discard())

	// Closing the terminal has the same effect as Ctrl-C.
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
		Use:   "local",
		Short: "Run the operator on this machine",
		Long: `Run the operator on this machine against a local or an existing cluster.

A local cluster is started if necessary and stopped at the end. The operator
uses the ServiceAccount and the permissions of config/default.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&options.cluster, "cluster", ".cluster", "`folder` of the local cluster, or \"existing\" for the cluster of $KUBECONFIG")
	flags.StringVar(&options.bin, "bin", "bin", "`folder` with the programs cluster, kubectl, helm and chartwright")
	root.AddCommand(
		&cobra.Command{
			Use:   "run",
			Short: "Start the operator, apply the samples, and run until Ctrl-C",
			Example: `  local run
  KUBECONFIG=dev.kubeconfig local run --cluster existing`,
			Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return with(cmd, options, run)
			},
		},
		&cobra.Command{
			Use:     "demo",
			Short:   "Start the operator, demonstrate its features, and stop it",
			Example: `  local demo`,
			Args:    cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return with(cmd, options, demo)
			},
		},
	)
	return root
}

// with runs a command on a rig and always stops the rig afterwards.
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
