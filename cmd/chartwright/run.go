package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/zapr"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/operator"
	"github.com/chartwright/chartwright/internal/operator/chartsdir"
)

// watchNamespace is the environment variable with the namespaces of the operator.
const watchNamespace = "WATCH_NAMESPACE"

func newRun() *cobra.Command {
	options := operator.Defaults()
	var watchesFile string
	var charts chartsFolder
	var logging ctrlzap.Options
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the operator",
		Long: `Run the operator in the cluster, or outside it with $KUBECONFIG, for the namespaces
in $WATCH_NAMESPACE (separated by commas; default: all). $GOMEMLIMIT sets the memory
limit (default: 90% of the container's limit; $AUTOMEMLIMIT=off disables it).`,
		Example: `  chartwright run --watches-file watches.yaml --leader-elect`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger := zapr.NewLogger(ctrlzap.NewRaw(ctrlzap.UseFlagOptions(&logging)))
			ctrl.SetLogger(logger)
			klog.SetLogger(logger.WithName("client-go"))

			limitMemory(memlimit.FromCgroup, logger)

			loaded := limitGarbage(largeHeap)
			// Report invalid files without a connection.
			var err error
			if options.Kinds, options.Broken, err = catalog.Usable(fileKinds(cmd, watchesFile, charts)); err != nil {
				return err
			}
			if options.Folder, err = charts.open(); err != nil {
				return err
			}
			loaded()
			options.Namespaces = splitNamespaces(os.Getenv(watchNamespace))
			if err := options.Validate(); err != nil {
				return err
			}
			leaseByName(&options, os.Getenv(operatorName), logger)
			kubeconfig, err := config.GetConfig()
			if err != nil {
				return fmt.Errorf("connect by $KUBECONFIG, ~/.kube/config or the service account of the pod: %w", err)
			}
			watches := "none"
			if !charts.replaces(cmd, watchesFile) {
				watches = watchesName(watchesFile)
			}
			options.ContextNamespace = contextNamespace()
			kinds := slices.Concat(options.Kinds, charts.kinds(options.Folder))
			info := api.BuildInfo()
			logger.Info("starting", "version", info.Version, "commit", info.Commit, "helm", info.Helm,
				"watches", watches, "chartsDir", charts.dir, "operator", options.Name, "kinds", len(kinds), "namespaces", options.Namespaces)
			logAllowsEverything(kinds, logger)
			return operator.Run(ctrl.SetupSignalHandler(), kubeconfig, options, logger)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&watchesFile, "watches-file", "", "watches file (default: "+defaultWatches+")")
	charts.add(cmd)
	flags.BoolVar(&options.InstallCRDs, "install-crds", false, "install missing CRDs, and update its own CRDs unless that breaks custom resources")
	chartKindsFlags(cmd, &options.ChartKinds)
	flags.StringVar(&options.Name, "operator-name", options.Name, "name of this operator, unique in the cluster")
	flags.DurationVar(&options.ReconcilePeriod, "reconcile-period", options.ReconcilePeriod, "period for applying all resources again (default 0: never)")
	flags.DurationVar(&options.MinReconcilePeriod, "min-reconcile-period", options.MinReconcilePeriod, "shortest period for the annotation reconcile-period")
	flags.IntVar(&options.MaxConcurrentReconciles, "max-concurrent-reconciles", options.MaxConcurrentReconciles, "workers per kind")
	// The help must not depend on the machine.
	flags.Lookup("max-concurrent-reconciles").DefValue = "the number of CPUs"
	flags.IntVar(&options.MaxConcurrentActions, "max-concurrent-actions", options.MaxConcurrentActions, "concurrent Helm actions; one namespace can use at most half of them")
	metricsFlags(cmd, &options.Metrics)
	flags.StringVar(&options.HealthProbeBindAddress, "health-probe-bind-address", options.HealthProbeBindAddress, "address of /healthz and /readyz; 0 disables them")
	flags.StringVar(&options.PprofBindAddress, "pprof-bind-address", "", "loopback address of pprof, such as 127.0.0.1:6060 (default: disabled)")
	flags.BoolVar(&options.LeaderElection, "leader-elect", options.LeaderElection, "run actions only while holding the lease (required for several replicas)")
	flags.StringVar(&options.LeaderElectionID, "leader-election-id", "", "name of the lease (default: <operator-name>.chartwright.dev)")
	flags.StringVar(&options.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the lease (default: namespace of the pod)")
	flags.DurationVar(&options.GracefulShutdown, "graceful-shutdown-timeout", options.GracefulShutdown, "shutdown timeout; must be shorter than terminationGracePeriodSeconds")

	flags.StringVar(&options.Metrics.BindAddress, "metrics-addr", options.Metrics.BindAddress, "")
	flags.BoolVar(&options.LeaderElection, "enable-leader-election", options.LeaderElection, "")
	for old, now := range map[string]string{"metrics-addr": "metrics-bind-address", "enable-leader-election": "leader-elect"} {
		// This fails only if the flag does not exist.
		_ = flags.MarkDeprecated(old, "use --"+now)
	}
	operatorSDKFlags(cmd)
	// Errors come from charts and clusters, so that stack traces would not help.
	logging.StacktraceLevel = zapcore.PanicLevel
	logging.ZapOpts = append(logging.ZapOpts, zap.WrapCore(newLazyCore))
	zapFlags := flag.NewFlagSet("zap", flag.ContinueOnError)
	logging.BindFlags(zapFlags)
	flags.AddGoFlagSet(zapFlags)
	for name, usage := range map[string]string{
		"zap-devel":            "development mode: console format, debug level (default false)",
		"zap-encoder":          "log format: json or console (default json)",
		"zap-log-level":        "log level: debug, info, error, panic, or a number (default info)",
		"zap-stacktrace-level": "lowest level with stack traces: info, error or panic (default panic)",
		"zap-time-encoding":    "time format: epoch, millis, nano, iso8601, rfc3339, rfc3339nano (default rfc3339)",
	} {
		flags.Lookup(name).Usage = usage
	}
	for name, words := range map[string][]string{"zap-encoder": {"json", "console"}, "zap-log-level": {"debug", "info", "error", "panic"}, "zap-stacktrace-level": {"info", "error", "panic"}} {
		// This fails only if the flag does not exist.
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// open reads the folder of charts, nil without one. The operator follows the folder, and
// reports broken charts.
func (c *chartsFolder) open() (*chartsdir.Folder, error) {
	if c.dir == "" {
		return nil, nil
	}
	folder, err := chartsdir.Open(c.dir, c.defaults)
	if err != nil {
		return nil, fmt.Errorf("--charts-dir: %w", err)
	}
	return folder, nil
}

// kinds returns the kinds that were read from the folder.
func (c *chartsFolder) kinds(folder *chartsdir.Folder) []catalog.Kind {
	if folder == nil {
		return nil
	}
	return folder.Kinds()
}

// splitNamespaces splits a list at commas and removes duplicates.
func splitNamespaces(list string) []string {
	var namespaces []string
	for namespace := range strings.SplitSeq(list, ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" && !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// contextNamespace returns the namespace of the context in the kubeconfig, or "" if it
// cannot be read. The connection reports that error.
func contextNamespace() string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	namespace, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).Namespace()
	if err != nil {
		return ""
	}
	return namespace
}

// metricsFlags adds the flags of the metrics endpoint, with the names of kubebuilder and
// the operator-sdk.
func metricsFlags(cmd *cobra.Command, m *operator.Metrics) {
	flags := cmd.Flags()
	flags.StringVar(&m.BindAddress, "metrics-bind-address", m.BindAddress, "address of the metrics endpoint; 0 disables it")
	boolFlag(cmd, &m.Secure, "metrics-secure", "serve metrics with TLS (default: true unless the address is a loopback address)")
	boolFlag(cmd, &m.RequireRBAC, "metrics-require-rbac", "require permission to get /metrics (default: true if served with TLS)")
	flags.StringVar(&m.CertDir, "metrics-cert-path", "", "folder with the certificate for metrics, reloaded on changes (default: self-signed)")
	flags.StringVar(&m.CertName, "metrics-cert-name", m.CertName, "certificate file in --metrics-cert-path")
	flags.StringVar(&m.KeyName, "metrics-cert-key", m.KeyName, "key file in --metrics-cert-path")
}

// boolFlag adds a boolean flag that is nil if it is not set.
func boolFlag(cmd *cobra.Command, to **bool, name, usage string) {
	cmd.Flags().BoolFunc(name, usage, func(text string) error {
		value, err := strconv.ParseBool(text)
		*to = &value
		return err
	})
}
