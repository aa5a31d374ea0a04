// Command cluster starts and stops a real Kubernetes on this machine, for
// development and for tests. It needs no container engine. Without containers, it
// needs no root.
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

// errSilent makes the program exit with an error that is already printed.
var errSilent = errors.New("not all components are running")

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

// root returns the root command.
func root() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:           "cluster",
		Short:         "Run a real Kubernetes on this machine, without a container engine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", local.DefaultDir, "`folder` of the cluster; each folder is a separate cluster")
	cmd.AddCommand(up(&dir), down(&dir), status(&dir), kubeconfig(&dir),
		requirements(), restartNode(&dir), machine(), cloudController())
	return cmd
}

// say returns a function that prints one line.
func say(cmd *cobra.Command) func(format string, args ...any) {
	return func(format string, args ...any) {
		fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...) //nolint:errcheck // there is no other output
	}
}
