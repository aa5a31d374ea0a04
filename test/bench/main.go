package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

func main() {
	// Our own client's messages are of no use to anybody here.
	klog.SetLogger(logr.Discard())

	// A terminal that is closed is a Ctrl-C, too.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := newRoot().ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil {
		// Of all that was under way nobody wants to read.
		err = errors.New("interrupted")
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nError:", err)
		os.Exit(1)
	}
}

// options are what a person can choose.
type options struct {
	cluster, bin string
	crs, queue   int
	// atOnce is how many are made at once.
	atOnce    int
	idle      time.Duration
	rollout   int
	scenarios []string
	subject   string
	json      string
	markdown  string
	ratio     float64
	// checking: only what guard rails need is measured.
	checking bool
}

func newRoot() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:           "bench",
		Short:         "Measure how fast an operator is, and what it costs",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&o.cluster, "cluster", ".cluster-bench", "`folder` of the cluster that is started for it")
	flags.StringVar(&o.bin, "bin", "bin", "`folder` with the programs")
	flags.StringVar(&o.json, "json", "", "`file` to write the results into, for machines")

	run := &cobra.Command{
		Use:   "run",
		Short: "Go through the scenarios, and print a table",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), cmd.OutOrStdout(), o) },
	}
	flags = run.Flags()
	flags.IntVarP(&o.crs, "crs", "n", 1000, "how many custom resources there are")
	flags.IntVar(&o.queue, "queue", 0, "how many installs queue in one-behind-many (default: as many)")
	flags.DurationVar(&o.idle, "idle", 5*time.Minute, "how long nothing is done in idle")
	flags.IntVar(&o.rollout, "rollout-max-concurrent", 0, "how many may get the new chart at a time in rollout (default: the operator's own)")
	flags.StringSliceVar(&o.scenarios, "scenarios", scenarioNames(), "which to go through; install and delete always are")
	flags.StringVar(&o.subject, "subject", "", "`command line` of another operator, in which {watches} and {kubeconfig} are replaced; it is split at spaces")
	flags.StringVar(&o.markdown, "markdown", "", "`file` to write the table into, between its marks")

	var few int
	check := &cobra.Command{
		Use:   "check",
		Short: "Go through a few scenarios, and fail where ratios and counts are worse than they may be",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.crs = few
			return check(cmd.Context(), cmd.OutOrStdout(), o)
		},
	}
	flags = check.Flags()
	// A variable of its own: a flag's default is set when it is declared.
	flags.IntVarP(&few, "crs", "n", 50, "how many custom resources there are")
	flags.Float64Var(&o.ratio, "cpu-ratio", defaultRatio, "how many times the floor's CPU time an install may take")

	root.AddCommand(run, check, newFloor())
	return root
}
