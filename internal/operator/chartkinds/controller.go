package chartkinds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/source"
	"github.com/chartwright/chartwright/internal/chartkind"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/operator/chartcache"
	"github.com/chartwright/chartwright/internal/operator/permissions"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/watches"
)

// Flags that messages mention.
const (
	FlagHosts   = "--chart-hosts"
	FlagKeyring = "--chart-keyring"
)

// workers is how many ChartKinds are reconciled at a time. Most of the time they wait for
// a registry.
const workers = 4

// Kinds are the kinds that the operator serves.
type Kinds interface {
	// Put adds or replaces the kind of a ChartKind, and Remove removes the kind.
	Put(name string, kind catalog.Kind)
	Remove(name string)
	// Claim notes that a ChartKind defines a kind whose chart is not available yet.
	Claim(name string, kind schema.GroupKind)
	// Conflict returns who serves the kind of a ChartKind instead, whether or not the kind
	// was added.
	Conflict(name string, kind catalog.Kind) string
	// ServedByFile reports whether the operator serves a kind from a file.
	ServedByFile(kind schema.GroupKind) bool
	// State returns the state of the kind that the operator serves.
	State(kind schema.GroupKind) State
}

// State is the state of a kind.
type State struct {
	State  readiness.State
	Reason string
	// Missing are the rules that the operator lacks. Known is false before all rules are
	// derived, or if they are unknown for the reason Unknown.
	Missing []permissions.Rule
	Known   bool
	Unknown string
}

// Outcomes of a pull.
const (
	OutcomeNew       = "new"
	OutcomeUnchanged = "unchanged"
	OutcomeFailed    = "failed"
	OutcomeInvalid   = "invalid"
)

// Keyring has the keys that sign charts. The zero Keyring requires no signature.
type Keyring struct {
	Path string
	// ID is the digest of the file.
	ID string
}

// Config is what a Controller needs.
type Config struct {
	// Operator is the name of the operator, and Namespace its namespace.
	Operator, Namespace string
	// Namespaces are the namespaces that the operator watches; none means all.
	Namespaces []string
	// Allow limits what ChartKinds may allow. Hosts may have private addresses.
	Allow   watches.Allow
	Hosts   []string
	Keyring Keyring

	Client   dynamic.Interface
	Metadata metadata.Interface
	Mapper   meta.RESTMapper
	Secrets  typedcorev1.SecretInterface
	Recorder record.EventRecorder
	Metrics  *metrics.Metrics
	Logger   logr.Logger

	// Elected is closed when the process becomes the leader.
	Elected <-chan struct{}
	Kinds   Kinds
	// Changes receives a value after changes of the kinds that the operator serves.
	Changes <-chan struct{}
	Cache   *chartcache.Cache
	Fetch   func(context.Context, source.Reference, source.Options) (source.Chart, error)
	// InstallCRD installs or updates the CRD of a kind. Without write it only checks
	// whether that is possible.
	InstallCRD func(ctx context.Context, kind catalog.Kind, write bool) error
	Now        func() time.Time
}

// Controller reconciles ChartKinds. It runs on every replica.
type Controller struct {
	Config

	queue    workqueue.TypedRateLimitingInterface[string]
	informer toolscache.SharedIndexInformer
	tasks    sync.WaitGroup
	// loaded is closed when the charts in the cache are served.
	loaded    chan struct{}
	setLoaded func()

	// loading has an element while a chart is downloaded or loaded.
	loading chan struct{}

	mu     sync.Mutex
	served map[string]*served
	counts map[string]*counter
}

// New returns a Controller that has not started.
func New(config Config) *Controller {
	loaded := make(chan struct{})
	return &Controller{
		Config: config, loaded: loaded, setLoaded: sync.OnceFunc(func() { close(loaded) }),
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute)),
		loading: make(chan struct{}, 1), served: map[string]*served{}, counts: map[string]*counter{},
	}
}

// Loaded returns a channel that is closed when the kinds of all ChartKinds with a chart in
// the cache were added, or ChartKinds are forbidden or not served.
func (c *Controller) Loaded() <-chan struct{} { return c.loaded }

// withoutWatchList lists and then watches. A watch that starts with all existing objects
// is an error in older API servers, and the list is small.
type withoutWatchList struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported returns true. The name is client-go's.
func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// Start reconciles ChartKinds until the context ends.
func (c *Controller) Start(ctx context.Context) error {
	defer c.tasks.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	resource := c.Client.Resource(chartkind.GVR)
	c.informer = toolscache.NewSharedIndexInformer(withoutWatchList{&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, options)
		},
	}}, &unstructured.Unstructured{}, 0, toolscache.Indexers{})
	registration, err := c.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, object any) { c.enqueue(object) },
		DeleteFunc: c.enqueue,
	})
	var once sync.Once
	err = errors.Join(err, c.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		once.Do(func() { c.Logger.Error(err, "ChartKinds not watched", "advice", advice(err)) })
		if unlistable(err) {
			c.setLoaded()
		}
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	}))
	if err != nil {
		return fmt.Errorf("watch ChartKinds: %w", err)
	}
	c.tasks.Go(func() { c.informer.RunWithContext(ctx) })
	select {
	case <-registration.HasSyncedChecker().Done():
	case <-ctx.Done():
		c.queue.ShutDown()
		return nil
	}
	c.restoreAll()
	c.setLoaded()
	for range workers {
		c.tasks.Go(func() { c.work(ctx) })
	}
	for elected := c.Elected; ; c.EnqueueAll() {
		select {
		case <-elected:
			// The leader reports what it has only served so far.
			elected = nil
		case <-c.Changes:
		case <-ctx.Done():
			c.queue.ShutDown()
			return nil
		}
	}
}

// unlistable reports whether ChartKinds cannot be listed before an administrator acts. After
// other errors, kinds of ChartKinds must not count as removed.
func unlistable(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// advice returns what to do if ChartKinds cannot be watched.
func advice(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "their CustomResourceDefinition is missing: apply config/chartkinds"
	case apierrors.IsForbidden(err):
		return "the operator's role lacks the rules: apply config/chartkinds"
	default:
		return "the operator retries"
	}
}

func (c *Controller) enqueue(object any) {
	if key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		c.queue.Add(key)
	}
}

// EnqueueAll requests a reconciliation of every ChartKind, after a change of the kinds that
// the operator serves.
func (c *Controller) EnqueueAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.served {
		c.queue.Add(name)
	}
}

// Enqueue requests a reconciliation of the ChartKinds of a kind. A nil Controller does
// nothing.
func (c *Controller) Enqueue(kind schema.GroupKind) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, s := range c.served {
		if s.group == kind {
			c.queue.Add(name)
		}
	}
}

// work reconciles ChartKinds until the queue is shut down.
func (c *Controller) work(ctx context.Context) {
	for {
		name, ended := c.queue.Get()
		if ended {
			return
		}
		after, err := c.reconcile(ctx, name)
		switch {
		case ctx.Err() != nil:
		case apierrors.IsConflict(err):
			// An event about the change follows.
			c.queue.AddAfter(name, time.Second)
		case err != nil:
			c.Logger.Info("ChartKind not reconciled", "chartKind", name, "error", err.Error())
			c.queue.AddRateLimited(name)
		default:
			c.queue.Forget(name)
			if after > 0 {
				c.queue.AddAfter(name, after)
			}
		}
		c.queue.Done(name)
	}
}

// leads reports whether the process is the leader.
func (c *Controller) leads() bool {
	select {
	case <-c.Elected:
		return true
	default:
		return false
	}
}

// state returns what the operator knows about a ChartKind, new if it knows nothing.
func (c *Controller) state(name string, kind schema.GroupKind) *served {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.served[name] == nil {
		c.served[name] = &served{}
	}
	c.served[name].group = kind
	return c.served[name]
}

// forget stops serving a ChartKind.
func (c *Controller) forget(name string) {
	c.Kinds.Remove(name)
	c.Metrics.DeleteChartKind(name)
	c.mu.Lock()
	counts := c.counts[name]
	delete(c.served, name)
	delete(c.counts, name)
	c.mu.Unlock()
	if counts != nil {
		counts.stop()
	}
}
