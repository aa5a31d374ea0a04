package operator

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/operator/chartsdir"
	"github.com/chartwright/chartwright/internal/operator/kindset"
)

// Options are the settings of an operator. Package main defines the names of the flags.
type Options struct {
	// Name distinguishes operators in the same cluster. It is a label on the objects that
	// they create.
	Name string
	// Kinds are the kinds of the watches file that can be served, and Broken the others; see
	// catalog.Usable.
	Kinds, Broken []catalog.Kind
	// Folder is the folder of more kinds; nil means none.
	Folder *chartsdir.Folder
	// set holds the kinds to serve, for tests that change it; nil means Kinds.
	set *kindset.Set
	// ChartKinds are the settings of kinds that are added by custom resources.
	ChartKinds ChartKinds
	// InstallCRDs installs the CRDs of the kinds.
	InstallCRDs bool
	// Namespaces are the namespaces to watch, without duplicates; none means all.
	Namespaces []string

	// MaxConcurrentReconciles is the number of workers per kind.
	MaxConcurrentReconciles int
	// MaxConcurrentActions limits concurrent Helm actions of all kinds.
	MaxConcurrentActions int
	// ReconcilePeriod is how often all resources of a release are applied again; 0 means
	// never.
	ReconcilePeriod time.Duration
	// MinReconcilePeriod is the lowest period that an annotation may set.
	MinReconcilePeriod time.Duration

	Metrics                Metrics
	HealthProbeBindAddress string
	// PprofBindAddress is the address of pprof; empty or "0" disables it.
	PprofBindAddress        string
	LeaderElection          bool
	LeaderElectionID        string
	LeaderElectionNamespace string
	// ContextNamespace is the namespace of the kubeconfig's context. An operator outside of
	// a cluster stores its signing key there.
	ContextNamespace string
	// GracefulShutdown limits how long the operator takes to stop.
	GracefulShutdown time.Duration
}

// leastPeriod is the lowest MinReconcilePeriod. With a shorter period the operator would
// reconcile continuously.
const leastPeriod = 100 * time.Millisecond

// Defaults returns the default options.
func Defaults() Options {
	return Options{
		Name:                    "chartwright",
		MaxConcurrentReconciles: runtime.NumCPU(),
		MaxConcurrentActions:    16,
		MinReconcilePeriod:      10 * time.Second,
		Metrics:                 Metrics{BindAddress: "127.0.0.1:8080", CertName: "tls.crt", KeyName: "tls.key"},
		HealthProbeBindAddress:  ":8081",
		GracefulShutdown:        25 * time.Second,
		ChartKinds:              ChartKinds{CacheSize: defaultChartCache},
	}
}

// Validate reports all problems of the options at once.
func (o Options) Validate() error {
	var errs []error
	require := func(valid bool, format string, args ...any) {
		if !valid {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	problems := validation.IsDNS1123Label(o.Name)
	require(len(problems) == 0, "--operator-name %q: %s", o.Name, strings.Join(problems, "; "))
	for _, namespace := range o.Namespaces {
		problems := validation.IsDNS1123Label(namespace)
		require(len(problems) == 0, "$WATCH_NAMESPACE: %q is not a namespace name: %s; separate several namespaces by commas", namespace, strings.Join(problems, "; "))
	}
	require(!o.LeaderElection || o.leaseNamespace() != "", "--leader-elect outside a pod requires --leader-election-namespace")
	require(o.MaxConcurrentReconciles >= 1, "--max-concurrent-reconciles is %d: expected at least 1", o.MaxConcurrentReconciles)
	require(o.MaxConcurrentActions >= 1, "--max-concurrent-actions is %d: expected at least 1", o.MaxConcurrentActions)
	require(o.ReconcilePeriod >= 0, "--reconcile-period is %s: expected 0 (never) or more", o.ReconcilePeriod)
	require(o.MinReconcilePeriod >= leastPeriod, "--min-reconcile-period is %s: expected %s or more", o.MinReconcilePeriod, leastPeriod)
	errs = append(errs, o.Metrics.validate())
	err := checkLoopback(o.PprofBindAddress)
	require(err == nil, "--pprof-bind-address %q: %w", o.PprofBindAddress, err)
	errs = append(errs, o.ChartKinds.validate())
	require(len(o.Kinds)+len(o.Broken) > 0 || o.Folder != nil || o.ChartKinds.Enabled, "no kinds to serve: the watches file has no entries")
	return errors.Join(errs...)
}

// checkLoopback rejects addresses that other machines can reach, because profiles are
// served without authentication and cost CPU time.
func checkLoopback(address string) error {
	if address == "" || address == "0" {
		return nil
	}
	loopback, err := isLoopback(address)
	if err != nil {
		return fmt.Errorf("expected an address such as 127.0.0.1:6060: %w", err)
	}
	if !loopback {
		return errors.New("expected a loopback address, 127.0.0.1, [::1] or localhost, because profiles are served without authentication; use kubectl port-forward to reach it")
	}
	return nil
}

// signingKeySecret returns the Secret of the signing key, in the namespace of the lease.
func (o Options) signingKeySecret() types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(o.leaseNamespace(), o.ContextNamespace, metav1.NamespaceDefault), Name: o.Name + "-signing-key"}
}

// leaseNamespace returns the namespace of the leader election's lease, empty outside a pod
// without a flag.
func (o Options) leaseNamespace() string {
	if pod := ownPod(os.Getenv, os.ReadFile, os.Hostname); o.LeaderElectionNamespace == "" && pod != nil {
		return pod.Namespace
	}
	return o.LeaderElectionNamespace
}

// LeaseName returns the name of the leader election's lease.
func (o Options) LeaseName() string { return cmp.Or(o.LeaderElectionID, o.Name+".chartwright.dev") }
