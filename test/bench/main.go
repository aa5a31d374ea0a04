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
	// Messages of the Kubernetes client would only disturb the output.
	klog.SetLogger(logr.Discard())

	// Closing the terminal has the same effect as Ctrl-C.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := newRoot().ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil {
		// After an interrupt, other errors are not of interest.
		err = errors.New("interrupted")
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nError:", err)
		os.Exit(1)
	}
}

// options are the values of the flags.
type options struct {
	cluster, bin string
	crs, queue   int
	// concurrency is the number of concurrent installs.
	concurrency int
	idle        time.Duration
	rollout     int
	scenarios   []string
	subject     string
	json        string
	markdown    string
	ratio       float64
	// kinds is the number of kinds in the scenarios kinds and authoring, and chart the
	// folder of their chart.
	kinds int
	chart string
	// checking restricts the run to measurements for guard rails.
	checking bool
}

func newRoot() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast an operator is, and what it costs",
		Long: `Measure how fast an operator is, and what it costs.

Boots a cluster, runs the operator and a benchmark floor (a bare client that
only writes the same objects) on it, and removes the cluster at the end.
docs/dev/performance.md explains the numbers. Requires Linux.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&o.cluster, "cluster", ".cluster-bench", "`folder` for the cluster and for log files")
	flags.StringVar(&o.bin, "bin", "bin", "`folder` with the programs cluster and chartwright")
	flags.StringVar(&o.json, "json", "", "write the results as JSON to this `file`")

	run := &cobra.Command{
		Use:   "run",
		Short: "Run the scenarios and print a table",
		Example: `  bench run --crs 200 --idle 1m
  bench run --scenarios idle,restart --json bench.json
  bench run --subject 'helm-operator run --watches-file={watches}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), cmd.OutOrStdout(), o) },
	}
	flags = run.Flags()
	flags.IntVarP(&o.crs, "crs", "n", 1000, "number of custom resources")
	flags.IntVar(&o.queue, "queue", 0, "number of queued installs in the scenario one-behind-many (default: the number of custom resources)")
	flags.DurationVar(&o.idle, "idle", 5*time.Minute, "duration of the scenario idle")
	flags.IntVar(&o.rollout, "rollout-max-concurrent", 0, "maximum number of concurrent upgrades in the scenario rollout (default: the operator's default)")
	flags.StringSliceVar(&o.scenarios, "scenarios", scenarioNames(), "scenarios to run, in addition to install and delete")
	flags.StringVar(&o.subject, "subject", "", "measure another operator with this `command line`; it is split at spaces, and {watches} and {kubeconfig} are replaced by paths")
	flags.IntVar(&o.kinds, "kinds", 160, "number of kinds in the scenarios kinds and authoring")
	flags.StringVar(&o.chart, "chart", "", "`folder` of the chart in the scenarios kinds and authoring (default: the chart of the other scenarios)")
	flags.StringVar(&o.markdown, "markdown", "", "write the table between the marks in this `file`")

	var few int
	check := &cobra.Command{
		Use:   "check",
		Short: "Run a few scenarios and fail if a guard rail is exceeded",
		Long: `Run a few scenarios and fail if a guard rail is exceeded.

The guard rails are numbers of requests, the ratio of an install's CPU time to
that of the benchmark floor, and the memory of an idle kind. No guard rail is a
time.`,
		Example: `  bench check
  bench check --crs 100 --cpu-ratio 8`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.crs, o.kinds = few, checkKinds
			return check(cmd.Context(), cmd.OutOrStdout(), o)
		},
	}
	flags = check.Flags()
	// A separate variable, because declaring a flag sets its default.
	flags.IntVarP(&few, "crs", "n", 50, "number of custom resources")
	flags.Float64Var(&o.ratio, "cpu-ratio", defaultRatio, "maximum ratio of an install's CPU time to that of the benchmark floor")

	root.AddCommand(run, check, newFloor())
	return root
}
