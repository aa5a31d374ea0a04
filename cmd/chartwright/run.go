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
	"github.com/chartwright/chartwright/internal/operator"
)

// watchNamespace is the environment variable that limits the namespaces.
const watchNamespace = "WATCH_NAMESPACE"

func newRun() *cobra.Command {
	options := operator.Defaults()
	var watchesFile, chartsDir string
	var logging ctrlzap.Options
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the operator",
		Long: `Run the operator against the cluster of $KUBECONFIG or, inside a cluster,
against that cluster. The kinds and charts are those of --watches-file, else of
watches.yaml in the working folder; where there is none, those that are embedded
in the binary. Beside them are served those of --charts-dir: each of its folders
with a chart and a kind.yaml. One that is broken is told, and the others run.

$WATCH_NAMESPACE, a list with commas, limits the namespaces; empty means all.

In a container the garbage collector heeds nine tenths of the memory limit,
unless $GOMEMLIMIT says something else or $AUTOMEMLIMIT is "off".

--metrics-addr and --enable-leader-election are older names of
--metrics-bind-address and --leader-elect, which still work.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger := zapr.NewLogger(ctrlzap.NewRaw(ctrlzap.UseFlagOptions(&logging)))
			ctrl.SetLogger(logger)
			klog.SetLogger(logger.WithName("client-go"))

			limitMemory(memlimit.FromCgroup, logger)

			// What is wrong with the files is told before the cluster is asked.
			var err error
			if options.Kinds, options.Broken, err = loadBeside(cmd, watchesFile, chartsDir); err != nil {
				return err
			}
			options.Namespaces = splitNamespaces(os.Getenv(watchNamespace))
			if err := options.Validate(); err != nil {
				return err
			}
			leaseByName(&options, os.Getenv(operatorName), logger)
			kubeconfig, err := config.GetConfig()
			if err != nil {
				return fmt.Errorf("find the cluster by $KUBECONFIG, ~/.kube/config or the pod's own account: %w", err)
			}
			watches := "none"
			if !onlyFolder(cmd, watchesFile, chartsDir) {
				watches = watchesName(watchesFile)
			}
			options.ContextNamespace = contextNamespace()
			info := api.BuildInfo()
			logger.Info("starting", "version", info.Version, "commit", info.Commit, "helm", info.Helm,
				"watches", watches, "chartsDir", chartsDir, "operator", options.Name, "kinds", len(options.Kinds), "namespaces", options.Namespaces)
			warnOfEverything(options.Kinds, logger)
			return operator.Run(ctrl.SetupSignalHandler(), kubeconfig, options, logger)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&watchesFile, "watches-file", "", "watches file to serve; chart paths are relative to it (default: "+defaultWatches+")")
	flags.StringVar(&chartsDir, "charts-dir", "", "folder of which each folder with a chart and a kind.yaml is a kind, too; with --watches-file= no others are served")
	flags.BoolVar(&options.InstallCRDs, "install-crds", false, "apply the CustomResourceDefinitions of the kinds that are missing, and update those that this operator has applied unless that would break resources")
	flags.StringVar(&options.Name, "operator-name", options.Name, "name of this operator, by which several in a cluster tell their objects apart")
	flags.DurationVar(&options.ReconcilePeriod, "reconcile-period", options.ReconcilePeriod, "how often to apply every object again; 0 is never, for changes are seen as they happen")
	flags.DurationVar(&options.MinReconcilePeriod, "min-reconcile-period", options.MinReconcilePeriod, "shortest period that the annotation reconcile-period of a custom resource may set")
	flags.IntVar(&options.MaxConcurrentReconciles, "max-concurrent-reconciles", options.MaxConcurrentReconciles, "workers for each kind")
	// It is that of the machine, which is not that of whoever reads the help.
	flags.Lookup("max-concurrent-reconciles").DefValue = "the number of CPUs"
	flags.IntVar(&options.MaxConcurrentActions, "max-concurrent-actions", options.MaxConcurrentActions, "installs, upgrades and uninstalls at once, over all kinds; one of several namespaces gets at most half")
	metricsFlags(cmd, &options.Metrics)
	flags.StringVar(&options.HealthProbeBindAddress, "health-probe-bind-address", options.HealthProbeBindAddress, "address of /healthz and /readyz; 0 turns them off")
	flags.StringVar(&options.PprofBindAddress, "pprof-bind-address", "", "loopback address at which profiles can be had, such as 127.0.0.1:6060 (default: none)")
	flags.BoolVar(&options.LeaderElection, "leader-elect", options.LeaderElection, "act only while holding the lease, so that several replicas may run")
	flags.StringVar(&options.LeaderElectionID, "leader-election-id", "", "name of the lease (default: <operator-name>.chartwright.dev)")
	flags.StringVar(&options.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the lease (default: the pod's own)")
	flags.DurationVar(&options.GracefulShutdown, "graceful-shutdown-timeout", options.GracefulShutdown, "how long a stop may take; less than the pod's terminationGracePeriodSeconds")

	flags.StringVar(&options.Metrics.BindAddress, "metrics-addr", options.Metrics.BindAddress, "")
	flags.BoolVar(&options.LeaderElection, "enable-leader-election", options.LeaderElection, "")
	for old, now := range map[string]string{"metrics-addr": "metrics-bind-address", "enable-leader-election": "leader-elect"} {
		// Only a flag that is not there is an error.
		_ = flags.MarkDeprecated(old, "use --"+now)
	}
	operatorSDKFlags(cmd)
	// What goes wrong here goes wrong in charts and clusters; where in this
	// program it was noticed helps nobody.
	logging.StacktraceLevel = zapcore.PanicLevel
	logging.ZapOpts = append(logging.ZapOpts, zap.WrapCore(newLazyCore))
	zapFlags := flag.NewFlagSet("zap", flag.ContinueOnError)
	logging.BindFlags(zapFlags)
	flags.AddGoFlagSet(zapFlags)
	return cmd
}

// splitNamespaces returns each namespace of a list once.
func splitNamespaces(list string) []string {
	var namespaces []string
	for namespace := range strings.SplitSeq(list, ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" && !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// contextNamespace returns the namespace of the kubeconfig's context. It is empty
// if the kubeconfig cannot be read, which connecting by it reports.
func contextNamespace() string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	namespace, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).Namespace()
	if err != nil {
		return ""
	}
	return namespace
}

// metricsFlags are those of the metrics endpoint, by the names that users of
// kubebuilder and the operator-sdk know.
func metricsFlags(cmd *cobra.Command, m *operator.Metrics) {
	flags := cmd.Flags()
	flags.StringVar(&m.BindAddress, "metrics-bind-address", m.BindAddress, "address of the metrics endpoint, such as :8443; 0 turns it off")
	boolFlag(cmd, &m.Secure, "metrics-secure", "serve metrics by TLS; without it on loopback addresses alone (default: unless the address is a loopback one)")
	boolFlag(cmd, &m.RequireRBAC, "metrics-require-rbac", "serve metrics to those alone who may get /metrics, by the API server's word (default: wherever they are served by TLS)")
	flags.StringVar(&m.CertDir, "metrics-cert-path", "", "folder of the metrics endpoint's certificate, which is read again when it changes (default: a self-signed one)")
	flags.StringVar(&m.CertName, "metrics-cert-name", m.CertName, "file of the certificate in that folder")
	flags.StringVar(&m.KeyName, "metrics-cert-key", m.KeyName, "file of its key in that folder")
}

// boolFlag adds a boolean flag without a default.
func boolFlag(cmd *cobra.Command, to **bool, name, usage string) {
	cmd.Flags().BoolFunc(name, usage, func(text string) error {
		value, err := strconv.ParseBool(text)
		*to = &value
		return err
	})
}
