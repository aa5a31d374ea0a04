package crdwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/operator/permissions"
	"github.com/chartwright/chartwright/internal/operator/readiness"
)

var crdResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// Config configures a Watcher and an Installer.
type Config struct {
	Manager manager.Manager
	// Operator is the name of the operator.
	Operator string
	// Kinds returns the kinds of the operator.
	Kinds func() []catalog.Kind
	// Install installs the CRDs of the kinds.
	Install bool
	// Namespaced: the operator watches only some namespaces. It then works without the
	// permission to watch CRDs, and checks whether it has the permission.
	Namespaced  bool
	Reviews     authorizationclient.SelfSubjectAccessReviewInterface
	Permissions *permissions.Checker
	Readiness   *readiness.Checker
	// OnPause is called with the name of the CRD when a user has paused or resumed the
	// rollout of a kind's chart.
	OnPause func(crdName string, paused bool)
	// Warn emits a warning for the administrator.
	Warn func(reason, message string)
}

// Watcher watches CRDs. It runs on every replica.
type Watcher struct {
	Config

	changes   chan struct{}
	known     chan struct{}
	setKnown  func()
	forbidden atomic.Bool
	tasks     sync.WaitGroup
	lookups   *Lookups

	mu sync.Mutex
	// paused are the CRDs by name on which a user has paused the rollout.
	paused map[string]bool
}

// NewWatcher returns a Watcher that has not started.
func NewWatcher(config Config) *Watcher {
	w := &Watcher{Config: config, changes: make(chan struct{}, 1), known: make(chan struct{}), paused: map[string]bool{}}
	w.lookups = NewLookups(config.Manager.GetRESTMapper(), &w.tasks)
	w.setKnown = sync.OnceFunc(func() { close(w.known) })
	return w
}

// Changes returns a channel that receives a value after changes of CRDs.
func (w *Watcher) Changes() <-chan struct{} { return w.changes }

// Known returns a channel that is closed when the CRDs of the kinds are listed, or the
// operator turns out to lack the permission to watch them.
func (w *Watcher) Known() <-chan struct{} { return w.known }

// Forbidden reports whether the operator lacks the permission to watch CRDs. Changes then
// receives nothing.
func (w *Watcher) Forbidden() bool { return w.forbidden.Load() }

// Paused reports whether a user has paused the rollout on a CRD.
func (w *Watcher) Paused(crdName string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.paused[crdName]
}

// Start watches CRDs until the context ends. Without the permission it waits for the
// permission.
func (w *Watcher) Start(ctx context.Context) error {
	defer w.tasks.Wait()
	changed := w.Permissions.Changed()
	for w.Namespaced && !w.allowed(ctx) {
		if !w.forbidden.Swap(true) {
			w.Manager.GetLogger().Info("CRDs not watched because of a missing permission: new CRDs are detected with a delay, and rollouts cannot be paused on a CRD")
			w.setKnown()
		}
		select {
		case <-changed:
			changed = w.Permissions.Changed()
		case <-ctx.Done():
			return nil
		}
	}
	if err := w.watch(ctx); err != nil {
		if !w.forbidden.Load() {
			return err
		}
		// Kinds are served already, and the operator polls for other kinds.
		w.Manager.GetLogger().Error(err, "failed to watch CRDs")
	}
	return nil
}

func (w *Watcher) watch(ctx context.Context) error {
	client, err := w.client()
	if err != nil {
		return err
	}
	informer := toolscache.NewSharedIndexInformer(w.listWatch(client), &metav1.PartialObjectMetadata{}, 0, toolscache.Indexers{})
	refused := make(chan struct{})
	refuse := sync.OnceFunc(func() { close(refused) })
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		// No signal for existing CRDs, because all kinds are looked up at start.
		AddFunc:    func(crd any, initial bool) { w.onCRDEvent(crd, !initial) },
		UpdateFunc: func(_, crd any) { w.onCRDEvent(crd, true) },
		DeleteFunc: func(crd any) { w.onCRDEvent(crd, true) },
	})
	if err := errors.Join(err, informer.SetTransform(compact), informer.SetWatchErrorHandlerWithContext(
		func(ctx context.Context, reflector *toolscache.Reflector, err error) {
			toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
			if apierrors.IsForbidden(err) {
				refuse()
			}
		})); err != nil {
		return fmt.Errorf("watch CRDs: %w", err)
	}
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	defer running.Wait()

	synced := registration.HasSyncedChecker().Done()
	select {
	case <-synced:
	case <-refused:
		w.forbidden.Store(true)
		w.Manager.GetLogger().Info("CRDs not watched because of a missing permission: new CRDs are detected with a delay")
		w.Permissions.Check()
	case <-ctx.Done():
		return nil
	}
	w.setKnown()
	select {
	case <-synced:
		if w.forbidden.Swap(false) {
			w.signalChange()
		}
		<-ctx.Done()
	case <-ctx.Done():
	}
	return nil
}

// onCRDEvent updates whether the rollout is paused, and signals a change.
func (w *Watcher) onCRDEvent(object any, signal bool) {
	if crd, ok := object.(*metav1.PartialObjectMetadata); ok {
		paused := crd.Annotations[api.AnnotationRolloutPaused] == "true"
		w.mu.Lock()
		changed := w.paused[crd.Name] != paused
		w.paused[crd.Name] = paused
		w.mu.Unlock()
		if changed {
			w.OnPause(crd.Name, paused)
		}
	}
	if signal {
		w.signalChange()
	}
}

func (w *Watcher) signalChange() {
	select {
	case w.changes <- struct{}{}:
	default: // a signal is already pending
	}
}

// listWatch lists the CRDs of the kinds and watches all CRDs: other CRDs are only relevant
// when they are added or deleted, and the existing ones, several hundred in many clusters,
// are never read.
func (w *Watcher) listWatch(client metadata.ResourceInterface) toolscache.ListerWatcher {
	listed := false
	return withoutWatchList{&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			list, err := listCRDs(ctx, client, w.crdNames(ctx))
			if err == nil && listed {
				// The watch was interrupted, and events may be lost.
				w.signalChange()
			}
			listed = listed || err == nil
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}}
}

// withoutWatchList lists and then watches. A watch that starts with all existing objects
// would bypass the list.
type withoutWatchList struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported returns true. The name is client-go's.
func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// crdNames returns the names of the kinds' CRDs. If a CRD is not served yet, or the API
// server does not respond in time, it returns the name that Chartwright generates. If the
// CRD has another name, the watch reports it.
func (w *Watcher) crdNames(ctx context.Context) []string {
	kinds := w.Kinds()
	names := make([]string, len(kinds))
	for i, found := range w.lookups.Find(ctx, kinds) {
		names[i] = cmp.Or(found.crdName(), crd.Name(found.Kind))
	}
	return names
}

// Read reads whether the rollout is paused on the CRD of a kind that was added after the
// CRDs were listed. It makes a request only if the watch has not reported the CRD.
func (w *Watcher) Read(ctx context.Context, crdName string) error {
	w.mu.Lock()
	_, known := w.paused[crdName]
	w.mu.Unlock()
	if known || crdName == "" || w.Forbidden() {
		return nil
	}
	client, err := w.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	list, err := client.List(ctx, named(crdName))
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("read the CustomResourceDefinition %s: %w", crdName, err)
	}
	w.mu.Lock()
	_, known = w.paused[crdName]
	w.mu.Unlock()
	for i := range list.Items {
		if !known {
			w.onCRDEvent(&list.Items[i], false)
		}
	}
	return nil
}

// readTimeout is how long Read waits for the API server.
const readTimeout = 5 * time.Second

// named selects a CRD by name in a list. A role can allow to list CRDs and not to get them.
func named(crdName string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, crdName).String()}
}

func (w *Watcher) client() (metadata.ResourceInterface, error) {
	client, err := metadata.NewForConfigAndClient(metadata.ConfigFor(w.Manager.GetConfig()), w.Manager.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("watch CRDs: %w", err)
	}
	return client.Resource(crdResource), nil
}

// Name returns the name of a kind's CRD, empty if the API server does not serve
// the kind.
func Name(mapper meta.RESTMapper, kind catalog.Kind) string { return lookUp(mapper, kind).crdName() }

// listCRDs reads CRDs by name, each with a separate request. The resourceVersion of the
// list is older than that of the CRDs, so that a watch from there reports later changes.
func listCRDs(ctx context.Context, client metadata.ResourceInterface, names []string) (*metav1.PartialObjectMetadataList, error) {
	list, err := client.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	found, errs := make([][]metav1.PartialObjectMetadata, len(names)), make([]error, len(names))
	var read sync.WaitGroup
	for i, name := range names {
		read.Go(func() {
			list, err := client.List(ctx, named(name))
			if err != nil {
				errs[i] = err
				return
			}
			found[i] = list.Items
		})
	}
	read.Wait()
	return &metav1.PartialObjectMetadataList{
		TypeMeta: list.TypeMeta,
		ListMeta: metav1.ListMeta{ResourceVersion: list.ResourceVersion},
		Items:    slices.Concat(found...),
	}, errors.Join(errs...)
}

// allowed reports whether the operator may watch CRDs. It returns true if that is unknown.
func (w *Watcher) allowed(ctx context.Context) bool {
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: crdResource.Group, Resource: crdResource.Resource, Verb: verb},
		}}
		answer, err := w.Reviews.Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			return false
		}
	}
	return true
}

// compact removes everything except the identity of a CRD and the annotation that pauses a
// rollout.
func compact(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	compacted := api.Identity(m)
	if m.Annotations[api.AnnotationRolloutPaused] == "true" {
		// Other values have no effect.
		compacted.Annotations = map[string]string{api.AnnotationRolloutPaused: "true"}
	}
	return compacted, nil
}
