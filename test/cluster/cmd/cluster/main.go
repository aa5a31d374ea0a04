// Command cluster starts and stops a real Kubernetes on this machine, for
// development and for tests. It needs no container engine and no root.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/test/cluster/internal/local"
)

// errSilent ends the program with an error that was told already.
var errSilent = errors.New("not everything runs")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		if !errors.Is(err, errSilent) {
			fmt.Fprintln(os.Stderr, "Error:", err)
		}
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// root is the command without a verb.
func root() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:           "cluster",
		Short:         "A real Kubernetes on this machine, without containers",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", local.DefaultDir, "the `folder` that the cluster lives in; two folders are two clusters")
	cmd.AddCommand(up(&dir), down(&dir), status(&dir), kubeconfig(&dir))
	return cmd
}

// say prints one line for the user.
func say(cmd *cobra.Command) func(format string, args ...any) {
	return func(format string, args ...any) {
		fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...) //nolint:errcheck // there is nowhere else to say it
	}
}
