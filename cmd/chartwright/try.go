package main

import (
	"context"
	"os"
	"time"

	"github.com/go-logr/zapr"
	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/chartwright/chartwright/internal/authoring/tryout"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/landing"
	"github.com/chartwright/chartwright/internal/operator"
	"github.com/chartwright/chartwright/internal/plugin"
)

func newTry() *cobra.Command {
	var try tryout.Try
	var analysis analysisFlags
	var fetch fetchFlags
	cmd := &cobra.Command{
		Use:   "try CHART",
		Short: "Run a chart as a kind on a local cluster",
		Long: `Run a chart as a kind on a local cluster: start the cluster and an operator, create
a custom resource, and show it when it is ready. You need no project, and the command
leaves nothing behind. The nodes of the local cluster are simulated: no container
runs. CHART is a reference as in 'chartwright add'.

With --context, the command uses that cluster. At the end it deletes the custom
resource, which uninstalls the release; the CustomResourceDefinition remains.`,
		Example: `  chartwright try ./web
  chartwright try oci://registry.example.com/charts/web:1.2.0
  chartwright try web-1.2.0.tgz --context kind-kind`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := ctrl.SetupSignalHandler()
			cmd.SetContext(ctx)
			if try.Chart, err = fetch.load(cmd, args[0]); err != nil {
				return err
			}
			try.Finder = &landing.Finder{Store: analysis.analyzer(cmd).Store}
			try.Out, try.Serve, try.Show = cmd.OutOrStdout(), serveTry, showTry(cmd)
			return try.Run(ctx)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&try.Kind, "kind", "", "name of the kind (default: chart name in CamelCase)")
	flags.StringVar(&try.Context, "context", "", "context of the kubeconfig, for a cluster that you may change (default: a local cluster)")
	flags.DurationVar(&try.Timeout, "timeout", 5*time.Minute, "how long to wait until the custom resource is ready")
	flags.BoolVar(&try.Exit, "exit", false, "exit when the custom resource is ready (default: wait for Ctrl-C)")
	fetch.addRepo(cmd)
	fetch.add(cmd, false)
	analysis.add(cmd)
	return cmd
}

// serveTry runs an operator for one kind until the context ends.
func serveTry(ctx context.Context, config *rest.Config, kind catalog.Kind, namespace, log string) error {
	file, err := os.Create(log) //nolint:gosec // the caller's temporary folder
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // a log
	logger := zapr.NewLogger(ctrlzap.NewRaw(ctrlzap.WriteTo(file), ctrlzap.ConsoleEncoder(), ctrlzap.StacktraceLevel(zapcore.PanicLevel)))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client-go"))
	options := operator.Defaults()
	options.Name, options.Kinds = tryout.OperatorName, []catalog.Kind{kind}
	options.ContextNamespace, options.Metrics.BindAddress, options.HealthProbeBindAddress = namespace, "0", "0"
	return operator.Run(ctx, config, options, logger)
}

// showTry returns a function that runs the status command of the kubectl plugin.
func showTry(cmd *cobra.Command) func(ctx context.Context, kubeconfig, kubeContext, resource string) {
	return func(ctx context.Context, kubeconfig, kubeContext, resource string) {
		streams := genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr()}
		plugin.Run(ctx, []string{"kubectl-chartwright", "status", resource, "--kubeconfig", kubeconfig, "--context", kubeContext}, streams)
	}
}
