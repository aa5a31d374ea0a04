package operator

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/reconcile"
	actionqueue "github.com/chartwright/chartwright/internal/reconcile/queue"
	"github.com/chartwright/chartwright/internal/release"
)

// Run serves the kinds until the context ends. It returns an error where the
// operator cannot start, or lost its lease.
func Run(ctx context.Context, config *rest.Config, options Options, logger logr.Logger) error {
	mgr, err := New(config, options, ctrlmetrics.Registry, logger)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// New returns a manager that serves the kinds when it is started. It registers the
// operator's metrics with the registerer.
func New(config *rest.Config, options Options, registerer prometheus.Registerer, logger logr.Logger) (manager.Manager, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	// The API server's own priority and fairness limits us better than a
	// guess here does.
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return deadline{next: next, after: requestDeadline} })
	config.Wrap(newWarnings(logger).heed)
	config.WarningHandler = rest.NoWarnings{}

	// The requests about the lease are the way to get past the fence.
	lease := rest.CopyConfig(config)
	if options.LeaderElection {
		held := &fence{now: time.Now}
		config.Wrap(held.guard)
		lease.Wrap(held.learn)
	}

	mgr, err := newManager(config, lease, options, logger)
	if err != nil {
		return nil, err
	}
	clientset, err := newClientset(mgr)
	if err != nil {
		return nil, err
	}
	kinds := &kinds{manager: mgr, clientset: clientset, options: options, waiting: options.Kinds, board: newBoard(options.Kinds, options.Broken)}
	index := release.NewIndex(kinds.recordChanged)
	objects := kinds.newInventory()
	counted := metrics.New(registerer, metrics.Sources{
		Kinds: kinds.board.metrics, Watched: objects.Watches.Counts, Unwatched: func() []string { return unwatchedKinds(objects.Watches) },
	})
	recorder, err := newRecorder(mgr, clientset, options.Name)
	if err != nil {
		return nil, err
	}
	kinds.notices = newNotices(recorder)
	unfenced, err := kubernetes.NewForConfig(lease)
	if err != nil {
		return nil, fmt.Errorf("set up the client of the signing key: %w", err)
	}
	kinds.signingKey = newSigningKey(options, clientset, unfenced, mgr.Elected(), kinds.board, kinds.notices, logger)
	helmClient, err := helm.NewClient(helm.Config{
		REST:       mgr.GetConfig(),
		HTTP:       mgr.GetHTTPClient(),
		Clientset:  clientset,
		Mapper:     mgr.GetRESTMapper(),
		Index:      index,
		Inventory:  objects,
		Keys:       kinds.signingKey.keys,
		SigningKey: kinds.signingKey.secret,
		Confined:   len(options.Namespaces) > 0,
	})
	if err != nil {
		return nil, err
	}
	kinds.recordKinds = newRecordKinds(helmClient.Capabilities().Serves, logger)
	pool := actionqueue.NewPool(options.MaxConcurrentActions, len(options.Namespaces) == 1, time.Now, counted)
	if err := mgr.Add(pool); err != nil {
		return nil, err
	}
	kinds.sources = kinds.newSources()
	kinds.observing = kinds.newObserving()
	kinds.tellBroken()
	kinds.shared = reconcile.Shared{
		Operator:           options.Name,
		ReconcilePeriod:    options.ReconcilePeriod,
		MinReconcilePeriod: options.MinReconcilePeriod,
		Patcher:            kinds.newPatcher(),
		Helm:               helmClient,
		Index:              index,
		Inventory:          objects,
		Pool:               pool,
		Sources:            kinds.sources,
		Observed:           kinds.observing.store,
		Recorder:           recorder,
		Metrics:            counted,
		Why:                newDiagnosis(clientset),
		Hook:               newHookDiagnosis(clientset),
		Namespaces:         options.Namespaces,
		OwnNamespace:       kinds.notices.namespace(),
		Signatures:         rate.NewLimiter(signaturesPerSecond, signaturesPerSecond),
		Now:                time.Now,
	}
	if err := kinds.addTo(mgr); err != nil {
		return nil, err
	}
	if kinds.rights, err = kinds.newRights(); err != nil {
		return nil, err
	}
	if err := mgr.Add(newThrift()); err != nil {
		return nil, err
	}
	probes, err := newProbes(options.HealthProbeBindAddress, kinds.board.report)
	if err != nil || probes == nil {
		return mgr, err
	}
	return mgr, mgr.Add(probes)
}

// signaturesPerSecond is how many records are signed a second that the current key
// has not signed: those of an earlier version, or all after the key was replaced.
const signaturesPerSecond = 10

func newManager(config, lease *rest.Config, o Options, logger logr.Logger) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	// For the references in events and the leader election; custom resources
	// are unstructured and need no scheme.
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:         scheme,
		Logger:         logger,
		Metrics:        o.Metrics.server(),
		MapperProvider: newMapper,
		// See newProbes.
		HealthProbeBindAddress:        "0",
		PprofBindAddress:              o.PprofBindAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              o.LeaseName(),
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaderElectionConfig:          lease,
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(leaseRetry),
		GracefulShutdownTimeout:       &o.GracefulShutdown,
		// Reads go to the caches of the kinds; this client is for writes.
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			options.Cache = nil
			return client.New(config, options)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	return mgr, nil
}
