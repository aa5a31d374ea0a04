package operator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/inputs/dependencies"
	"github.com/chartwright/chartwright/internal/inputs/observed"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory/diagnose"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/operator/chartkinds"
	"github.com/chartwright/chartwright/internal/operator/crdwatch"
	"github.com/chartwright/chartwright/internal/operator/kindset"
	"github.com/chartwright/chartwright/internal/operator/leader"
	"github.com/chartwright/chartwright/internal/operator/permissions"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/operator/signingkey"
	"github.com/chartwright/chartwright/internal/reconcile"
	actionqueue "github.com/chartwright/chartwright/internal/reconcile/queue"
	"github.com/chartwright/chartwright/internal/release"
)

// signaturesPerSecond limits how fast the operator signs records that the current key has
// not signed: records of an earlier version, or all records after the key was replaced.
const signaturesPerSecond = 10

// Run serves the kinds until the context ends. It returns an error if the operator cannot
// start, or loses its lease.
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
	stopping, stop := context.WithCancel(context.Background())
	config, lease := newConfigs(stopping, config, options.LeaderElection, logger)
	mgr, err := newManager(config, lease, options, logger)
	if err != nil {
		stop()
		return nil, err
	}
	if err := addRunnables(mgr, lease, options, registerer, stop); err != nil {
		stop()
		return nil, err
	}
	return mgr, nil
}

// addRunnables creates the parts of the operator and adds them to the manager.
func addRunnables(mgr manager.Manager, lease *rest.Config, options Options, registerer prometheus.Registerer, stop func()) error {
	logger, mapper := mgr.GetLogger(), mgr.GetRESTMapper()
	clientset, objects, onlyMetadata, err := newClients(mgr)
	if err != nil {
		return err
	}
	unfenced, err := kubernetes.NewForConfig(lease)
	if err != nil {
		return fmt.Errorf("set up the client of the signing key: %w", err)
	}
	recorder, err := newRecorder(mgr, clientset, options.Name)
	if err != nil {
		return err
	}
	notices := newNotices(recorder)

	served := &reconcilers{}
	limited := newRecordKinds(logger)
	set := options.set
	if set == nil {
		set = kindset.New(slices.Concat(options.Kinds, options.Broken))
	}
	broken := catalog.BrokenEntries(options.Broken)
	reports := &brokenReports{logger: logger, notices: notices, entries: broken}
	loaded := closedChannel
	if options.Folder != nil {
		options.Folder.Serve(set)
		broken, loaded = append(broken, options.Folder.Broken()...), options.Folder.Loaded()
	}
	first := set.Kinds()
	managed := newInventory(mapper, first, served, limited)
	ready := readiness.NewChecker(first, broken, func() []string { return unwatchedLines(managed.Watches) })
	counted := metrics.New(registerer, metrics.Sources{
		Kinds: ready.Metrics, Watched: managed.Counts, Unwatched: func() []string { return unwatchedKinds(managed.Watches) },
	})
	key := signingkey.New(signingkey.Config{
		Secret: options.signingKeySecret(), Operator: options.Name, Clientset: clientset, Unfenced: unfenced,
		Elected: mgr.Elected(), Readiness: ready, Warn: notices.warn, Logger: logger,
	})
	var index *release.Index
	index = release.NewIndex(func(record release.Record) {
		// An action watches its kinds only in its own process. A standby watches the kinds
		// in the records, so that it need not apply all resources when it becomes leader.
		if owner := ownerIn(index, record, options.Name); owner != "" && !isClosed(mgr.Elected()) {
			managed.WatchMore(owner, limited.of(record))
		}
		served.each(func(r *reconcile.Reconciler) { r.RecordChanged(record) })
	})
	helmClient, err := helm.NewClient(helm.Config{
		REST:       mgr.GetConfig(),
		HTTP:       mgr.GetHTTPClient(),
		Clientset:  clientset,
		Mapper:     mapper,
		Index:      index,
		Inventory:  managed,
		Keys:       key.Keys(),
		SigningKey: key.Secret,
		Confined:   len(options.Namespaces) > 0,
	})
	if err != nil {
		return err
	}
	pool := actionqueue.NewPool(options.MaxConcurrentActions, len(options.Namespaces) == 1, time.Now, counted)
	var chartKinds *chartkinds.Controller
	checker := permissions.NewChecker(permissions.Config{
		Operator: options.Name, Kinds: first, Namespaces: options.Namespaces, Mapper: mapper, Logger: logger,
		Review: permissions.NewReviewer(clientset.AuthorizationV1().SelfSubjectRulesReviews()),
		OnChange: func(kind schema.GroupKind, missing []permissions.Rule, unknown string) {
			ready.Update(kind, func(k *readiness.Kind) { k.Missing, k.Unknown = missing, unknown })
			reportPermissions(logger, notices, ready, kind, missing, unknown)
			served.each(func(r *reconcile.Reconciler) {
				if r.Kind.GVK().GroupKind() == kind {
					r.PermissionsChanged()
				}
			})
		},
		OnDerived: func(kind schema.GroupKind) { chartKinds.Enqueue(kind) },
	})
	crdConfig := crdwatch.Config{
		Manager: mgr, Operator: options.Name, Kinds: set.Kinds, Install: options.InstallCRDs, Namespaced: len(options.Namespaces) > 0,
		Reviews: clientset.AuthorizationV1().SelfSubjectAccessReviews(), Permissions: checker, Readiness: ready, Warn: notices.warn,
		OnPause: func(crdName string, paused bool) {
			served.each(func(r *reconcile.Reconciler) {
				if crdwatch.Name(mapper, r.Kind) == crdName {
					r.PauseRollout(paused)
				}
			})
		},
	}
	crds, installer := crdwatch.NewWatcher(crdConfig), crdwatch.NewInstaller(crdConfig)
	caches := informers{manager: mgr, permissions: checker, scopes: newScopes(options.Namespaces), tasks: &sync.WaitGroup{}, logger: logger}
	read := valuesfrom.FromServer(objects, mapper, key.Secret)
	sources := valuesfrom.NewStore(read, served.forOne((*reconcile.Reconciler).SourceChanged))
	sourced := newSourceWatches(caches, sources)
	observe := func(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error) {
		return read(ctx, valuesfrom.Ref{Kind: kind, Namespace: name.Namespace, Name: name.Name})
	}
	observes := newObservedWatches(caches, observed.NewStore(observe, served.forOne((*reconcile.Reconciler).ObservedChanged)))
	// A change of a dependency has the effect of a change of a source of values.
	dependent := newDependencyWatches(caches, dependencies.NewStore(served.forOne((*reconcile.Reconciler).DependencyChanged)), catalog.Kind.DependencyKinds)
	live := liveKinds{options: options, clientset: clientset, objects: objects, metadata: onlyMetadata, recorder: recorder, metrics: counted, set: set, readiness: ready, permissions: checker}
	var restored <-chan struct{}
	if chartKinds, restored, err = live.newController(mgr); err != nil {
		return err
	}
	resources := customresource.NewClient(mgr.GetConfig(), mgr.GetHTTPClient(), mapper, nil)
	kinds := &KindManager{
		options: options, set: set, loaded: loaded, chartKinds: restored, reconcilers: served, informers: caches, sources: sourced, observed: observes, dependencies: dependent,
		recordKinds: limited, crds: crds, installer: installer, signingKey: key, readiness: ready, resources: resources,
		first: map[schema.GroupKind]kindset.Entry{}, ended: make(chan *servedKind), emptied: make(chan *servedKind),
		unserved: make(chan *servedKind), opened: make(chan struct{}, 1),
		shared: reconcile.Shared{
			Operator:           options.Name,
			ReconcilePeriod:    options.ReconcilePeriod,
			MinReconcilePeriod: options.MinReconcilePeriod,
			Resources:          resources,
			Actions:            helmClient,
			Index:              index,
			Inventory:          managed,
			Pool:               pool,
			Sources:            sources,
			Observed:           observes.store,
			Outputs:            outputsClient{mapper, clientset.CoreV1(), key.Secret},
			Dependencies:       dependent.store,
			Version:            versionReader(onlyMetadata, mapper),
			Recorder:           recorder,
			Metrics:            counted,
			Why: func(ctx context.Context, object apply.Key, uid types.UID) (string, error) {
				cause, err := diagnose.Why(forDiagnosis(ctx), clientset, object, uid)
				return cause.WithAdvice(), err
			},
			Hook: func(ctx context.Context, hook apply.Key, uid types.UID) (api.HookState, string, error) {
				found, err := diagnose.CheckHook(forDiagnosis(ctx), clientset, hook, uid, time.Now())
				return found.State, found.Why(), err
			},
			Namespaces:   options.Namespaces,
			OwnNamespace: notices.namespace(),
			Signatures:   rate.NewLimiter(signaturesPerSecond, signaturesPerSecond),
			Now:          time.Now,
		},
	}

	for _, entry := range set.List() {
		kinds.first[entry.GroupKind()] = entry
	}
	runnables := []manager.Runnable{pool, installer}
	reports.readiness = ready
	reports.update(nil)
	if options.Folder != nil {
		options.Folder.Report(reports.update)
		runnables = append(runnables, options.Folder)
	}
	for _, start := range []everyReplica{checker.Start, crds.Start, key.Start, kinds.Start, newMemoryReleaser().Start, onEnd(stop)} {
		runnables = append(runnables, start)
	}
	probes, err := readiness.NewServer(options.HealthProbeBindAddress, ready.Report)
	if err != nil {
		return err
	}
	if probes != nil {
		runnables = append(runnables, probes)
	}
	for _, runnable := range runnables {
		if err := mgr.Add(runnable); err != nil {
			return err
		}
	}
	return nil
}

// everyReplica is a Runnable that runs on every replica, not only on the leader.
type everyReplica func(context.Context) error

// onEnd calls a function when the manager ends.
func onEnd(do func()) everyReplica {
	return func(ctx context.Context) error {
		<-ctx.Done()
		do()
		return nil
	}
}

// Start runs the function.
func (e everyReplica) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection returns false.
func (everyReplica) NeedLeaderElection() bool { return false }

// brokenReports reports entries of the watches file, and folders of --charts-dir, that cannot
// be served.
type brokenReports struct {
	logger  logr.Logger
	notices notices
	// entries are those of the watches file.
	entries   []catalog.Broken
	readiness *readiness.Checker
	known     map[string]string
}

// update reports folders that were not broken before, or have another problem now.
func (r *brokenReports) update(folders []catalog.Broken) {
	broken := slices.Concat(r.entries, folders)
	r.readiness.SetBroken(broken)
	known := map[string]string{}
	for _, one := range broken {
		known[one.Folder] = one.Err.Error()
		if r.known[one.Folder] != known[one.Folder] {
			r.logger.Error(one.Err, "kind is broken", "kind", one.Kind.Kind, "group", one.Kind.Group, "source", one.Folder)
			r.notices.warn(api.EventKindBroken, fmt.Sprintf("%s: %v", one.Folder, one.Err))
		}
	}
	for folder := range r.known {
		if known[folder] == "" {
			r.logger.Info("kind is no longer broken", "source", folder)
		}
	}
	r.known = known
}

// reportPermissions logs the missing rules of a kind, and emits a warning. A kind that was
// removed causes neither.
func reportPermissions(logger logr.Logger, notices notices, ready *readiness.Checker, kind schema.GroupKind, missing []permissions.Rule, unknown string) {
	logger = logger.WithValues("kind", kind.Kind, "group", kind.Group)
	found, _ := ready.Get(kind)
	switch {
	case found.IsRemoved():
	case len(missing) > 0:
		rules := permissions.Text(missing)
		logger.Info("rules missing from the operator's role", "rules", rules)
		notices.warn(api.EventPermissionsMissing, fmt.Sprintf("%s: add to the rules of the operator's role: %s", kind, rules))
	case unknown != "":
		logger.V(1).Info("missing rules unknown", "reason", unknown)
	default:
		logger.Info("no rules missing")
	}
}

// newConfigs returns the configuration of all clients, and that of the leader election,
// which the fence does not restrict.
func newConfigs(stopping context.Context, config *rest.Config, leaderElection bool, logger logr.Logger) (fenced, lease *rest.Config) {
	config = rest.CopyConfig(config)
	// Priority and fairness of the API server limits the operator.
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return deadline{next: next, after: requestDeadline}
	})
	config.Wrap(newWarnings(logger).wrapTransport)
	config.WarningHandler = rest.NoWarnings{}
	lease = rest.CopyConfig(config)
	if leaderElection {
		fence := leader.NewFence()
		config.Wrap(fence.CheckLease)
		lease.Wrap(fence.ObserveLease)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return apply.Repeats{Next: next, Stopping: stopping} })
	return config, lease
}

func newManager(config, lease *rest.Config, o Options, logger logr.Logger) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	// For events and the leader election. Custom resources are unstructured.
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:         scheme,
		Logger:         logger,
		Metrics:        o.Metrics.server(),
		MapperProvider: newMapper,
		// See package readiness.
		HealthProbeBindAddress:        "0",
		PprofBindAddress:              o.PprofBindAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              o.LeaseName(),
		LeaderElectionNamespace:       o.leaseNamespace(),
		LeaderElectionReleaseOnCancel: true,
		LeaderElectionConfig:          lease,
		LeaseDuration:                 new(leader.LeaseDuration),
		RenewDeadline:                 new(leader.RenewDeadline),
		RetryPeriod:                   new(leader.RetryPeriod),
		GracefulShutdownTimeout:       &o.GracefulShutdown,
		// This client is for writes. Reads use the caches of the kinds.
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

// newClients returns the clients for the built-in kinds and for other kinds. The first one
// uses protobuf, which is much cheaper than JSON on both sides: release records are Secrets,
// whose data JSON encodes as base64 once more.
func newClients(mgr manager.Manager) (kubernetes.Interface, dynamic.Interface, metadata.Interface, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	clientset, err := kubernetes.NewForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return nil, nil, nil, fmt.Errorf("set up the client of the built-in kinds: %w", err)
	}
	objects, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, nil, nil, fmt.Errorf("set up the client of other kinds: %w", err)
	}
	onlyMetadata, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, nil, nil, fmt.Errorf("set up the client of metadata: %w", err)
	}
	return clientset, objects, onlyMetadata, nil
}

// decoderOf returns the decoder for the custom resources of a kind.
func decoderOf(kind catalog.Kind) customresource.Decoder {
	return customresource.Decoder{Scale: kind.ScalePath()}
}
