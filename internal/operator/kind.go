package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/operator/crdwatch"
	"github.com/chartwright/chartwright/internal/operator/leader"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// servedKind is a kind that the API server serves. It has one controller, and a cache for
// each scope. The controller starts when it is known for each scope whether its custom
// resources can be watched, and they can be watched in at least one scope. Other scopes
// join later.
type servedKind struct {
	manager *KindManager
	state   *kindState
	kind    catalog.Kind
	gk      schema.GroupKind
	// removed: only deletions are carried out. broken is that of the state.
	removed bool
	broken  string
	// crdTried is closed after the first attempt to install the CRD.
	crdTried <-chan struct{}
	// stop ends the controller and the caches. tasks are the goroutines of the kind.
	stop  context.CancelFunc
	tasks *sync.WaitGroup
	// changed receives a value after changes of the custom resources of a removed kind.
	changed chan struct{}
	// unserved receives a value when the API server no longer serves a removed kind.
	unserved chan struct{}
	object   *unstructured.Unstructured
	logger   logr.Logger
	caches   caches

	// The other fields belong to the goroutine of run.

	// filled are the caches that the controller does not listen to yet.
	filled map[string]cache.Cache
	// unwatched is why a scope is not watched.
	unwatched map[string]string

	controller controller.Controller
	reconciler *reconcile.Reconciler
}

// scopeEvent reports the watch of a scope: a cache with all existing custom resources, or
// the reason why there is none.
type scopeEvent struct {
	scope  string
	cache  cache.Cache
	reason string
}

// reasonForbidden is why a scope is not watched if the operator lacks a permission.
const reasonForbidden = "the operator lacks the permission"

// startKind starts to serve a kind. A kind that the operator may not watch does not delay
// other kinds: it starts after a change of the operator's permissions.
func (k *KindManager) startKind(ctx context.Context, state *kindState, mapping *meta.RESTMapping) {
	if plural := mapping.Resource.Resource; state.kind.Version == "" || state.kind.PluralName() != plural {
		state.kind.Version, state.kind.Plural = mapping.GroupVersionKind.Version, plural
		if state.removed {
			k.permissions.AddRemoved(state.kind)
		} else {
			k.permissions.Add(state.kind)
		}
	}
	until, stop := context.WithCancel(ctx)
	kind := state.kind
	s := &servedKind{
		manager: k, state: state, kind: kind, gk: state.gk, removed: state.removed, broken: state.broken, crdTried: state.crdTried, stop: stop,
		tasks: &sync.WaitGroup{}, changed: make(chan struct{}, 1), unserved: make(chan struct{}, 1), object: &unstructured.Unstructured{},
		logger: k.logger.WithValues("kind", kind.Kind, "group", kind.Group, "version", kind.Version),
		filled: map[string]cache.Cache{}, unwatched: map[string]string{},
	}
	state.served = s
	s.object.SetGroupVersionKind(kind.GVK())
	k.resources.SetDecoder(kind.GVK(), decoderOf(kind))
	all := k.scopes
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		all = scopes{k.scopes.clusterScope(until, s.tasks)}
	}
	k.readiness.SetState(s.gk, readiness.Starting, "")
	events := make(chan scopeEvent)
	for _, scope := range all {
		s.tasks.Go(func() { s.watchScope(until, scope, events) })
	}
	s.tasks.Go(func() { s.run(until, len(all), events) })
	if s.removed {
		s.tasks.Go(func() { s.awaitUnserved(until) })
	}
	k.tasks.Go(func() {
		<-until.Done()
		s.tasks.Wait()
		state.wake.clear()
		if s.reconciler != nil {
			k.reconcilers.remove(s.reconciler)
		}
		send(ctx, k.ended, s)
	})
}

// watchScope waits for a scope, and fills a cache with its custom resources.
func (s *servedKind) watchScope(ctx context.Context, scope *namespaceScope, events chan<- scopeEvent) {
	report := func(filled cache.Cache, reason string) {
		send(ctx, events, scopeEvent{scope: scope.name, cache: filled, reason: reason})
	}
	if scope.await(ctx, func() { report(nil, reasonForbidden) }) != nil {
		return
	}
	for backoff := retryBackoff; ; {
		var filled cache.Cache
		err := s.manager.fill(ctx, func(attempt context.Context) (w watching, err error) {
			filled, w, err = s.newCache(attempt, scope)
			return w, err
		}, func(reason string) { report(nil, reason) })
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			report(filled, "")
			return
		}
		s.logger.Error(err, "kind not watched", "namespace", scope.name)
		report(nil, err.Error())
		if !receive(ctx, time.After(backoff.Step())) {
			return
		}
	}
}

// retryBackoff is the delay between attempts to serve a kind.
var retryBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Steps: math.MaxInt, Cap: time.Minute}

// newCache returns a cache for the custom resources of a scope, which runs until the
// context ends. The cache holds packed custom resources. They are decoded one at a time.
func (s *servedKind) newCache(ctx context.Context, scope *namespaceScope) (cache.Cache, watching, error) {
	options := s.manager.cacheOptions(scope)
	options.HTTPClient = s.observeResponses(options.HTTPClient)
	failed := s.manager.reportFailures(&options, failureReason)
	// Reconciliations copy objects before they change them.
	options.DefaultUnsafeDisableDeepCopy = new(true)
	gvk := s.kind.GVK()
	mapping, err := options.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, watching{}, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	selection := customresource.Selection{Mapping: mapping, Namespace: scope.name}
	if s.kind.Selector != nil {
		if selection.Labels, err = metav1.LabelSelectorAsSelector(s.kind.Selector); err != nil {
			return nil, watching{}, fmt.Errorf("selector: %w", err)
		}
	}
	packed, err := decoderOf(s.kind).ListWatch(s.manager.manager.GetConfig(), options.HTTPClient, selection)
	if err != nil {
		return nil, watching{}, err
	}
	options.NewInformer = func(_ toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return toolscache.NewSharedIndexInformer(packed, object, resync, indexers)
	}
	customResources, err := s.manager.startCache(ctx, options)
	if err != nil {
		return nil, watching{}, err
	}
	informer, err := customResources.GetInformer(ctx, s.object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, watching{}, err
	}
	return customResources, watching{synced: informer.HasSyncedChecker().Done(), failed: failed}, nil
}

// failureReason returns why the custom resources of a kind cannot be listed or watched. It
// is empty if the error does not concern the kind: the API server is unavailable, or does
// not serve the kind, which observeResponses detects.
func failureReason(err error) string {
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status), apierrors.IsNotFound(err), apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsTooManyRequests(err):
		return ""
	case apierrors.IsForbidden(err):
		return reasonForbidden
	default:
		return status.Status().Message
	}
}

// observeResponses returns a client for the kind's custom resources that detects whether
// the API server serves the kind. A served kind may lose its CRD, or the version. Its
// watches then end and are retried with backoff, and the API server responds with 404 until
// it serves the kind again. There is no other sign of that.
func (s *servedKind) observeResponses(from *http.Client) *http.Client {
	client := *from
	client.Transport = leader.RoundTripFunc(func(request *http.Request) (*http.Response, error) {
		response, err := from.Transport.RoundTrip(request)
		if err == nil {
			s.observeStatus(response.StatusCode)
		}
		return response, err
	})
	return &client
}

func (s *servedKind) observeStatus(status int) {
	unserved := ""
	switch {
	case status == http.StatusNotFound:
		unserved = fmt.Sprintf("the API server no longer serves %s: its CustomResourceDefinition is missing or lacks the version. "+
			"The operator retries at least every minute; if the plural or the scope has changed, restart the operator", s.kind.GVK().GroupVersion())
	case status >= http.StatusMultipleChoices:
		// The response says nothing about the kind.
		return
	}
	if s.removed && unserved != "" {
		select {
		case s.unserved <- struct{}{}:
		default: // a signal is already pending
		}
	}
	changed := false
	s.manager.readiness.Update(s.gk, func(k *readiness.Kind) {
		changed = k.Unserved != unserved
		k.Unserved = unserved
	})
	switch {
	case changed && unserved != "":
		s.logger.Info("kind not served", "reason", unserved)
	case changed:
		s.logger.Info("kind served again")
	}
}

// run is the event loop of the kind. It ends when all scopes are served. It retries a
// failed attempt, which does not affect other kinds.
func (s *servedKind) run(ctx context.Context, count int, events <-chan scopeEvent) {
	var again <-chan time.Time
	backoff := retryBackoff
	for joined := 0; joined < count || again != nil; {
		select {
		case event := <-events:
			if event.cache == nil {
				s.unwatched[event.scope] = event.reason
				break
			}
			delete(s.unwatched, event.scope)
			s.filled[event.scope] = event.cache
			joined++
		case <-again:
		case <-ctx.Done():
			return
		}
		if joined+len(s.unwatched) < count {
			// The result of other scopes is not known yet.
			continue
		}
		again = nil
		if err := s.serve(ctx); err != nil && ctx.Err() == nil {
			s.logger.Error(err, "kind not served")
			s.manager.readiness.SetState(s.gk, readiness.Failed, err.Error())
			again = time.After(backoff.Step())
		}
	}
	if s.removed && s.broken == "" {
		s.drain(ctx)
	}
}

// serve makes the controller use the filled caches.
func (s *servedKind) serve(ctx context.Context) error {
	first := s.controller == nil
	if first && len(s.filled) == 0 {
		state, reason := readiness.Forbidden, ""
		for _, other := range s.unwatched {
			if other != reasonForbidden {
				state, reason = readiness.Failed, other
			}
		}
		if !s.removed {
			s.manager.dependencies.unwatched(s.kind, cmp.Or(reason, reasonForbidden+" to list and watch the kind"))
		}
		s.manager.readiness.SetState(s.gk, state, reason)
		return nil
	}
	if first {
		if err := s.manager.crds.Read(ctx, crdwatch.Name(s.manager.manager.GetRESTMapper(), s.kind)); err != nil {
			return err
		}
		if !s.removed {
			s.manager.observed.startKind(ctx, s.kind)
			s.manager.dependencies.startKind(ctx, s.kind)
		}
		s.manager.startSources(ctx, s.kind)
	}
	// Before the first reconciliation, so that it reads all custom resources.
	for name, filled := range s.filled {
		s.caches.put(name, filled)
	}
	if !s.removed {
		if err := s.manager.dependencies.feedServed(ctx, s.kind, slices.Collect(maps.Values(s.filled))); err != nil {
			return err
		}
	}
	if first {
		if err := s.startController(ctx); err != nil {
			return err
		}
	}
	for name, filled := range s.filled {
		if !first {
			if err := s.reconciler.Grown(ctx, filled); err != nil {
				return err
			}
		}
		if err := s.listen(ctx, filled); err != nil {
			return err
		}
		delete(s.filled, name)
	}
	if s.removed {
		s.manager.readiness.SetState(s.gk, readiness.Removed, s.unwatchedLines())
		return nil
	}
	s.manager.readiness.SetState(s.gk, readiness.Serving, s.unwatchedLines())
	s.logger.Info("serving kind", "chart", s.kind.Chart.Name(), "chartVersion", s.kind.Chart.Version(), "exceptIn", slices.Sorted(maps.Keys(s.unwatched)))
	return nil
}

// unwatchedLines lists the namespaces in which the kind is not served.
func (s *servedKind) unwatchedLines() string {
	lines := make([]string, 0, len(s.unwatched))
	for _, name := range slices.Sorted(maps.Keys(s.unwatched)) {
		format := "not served in namespace %s: the watch fails and is retried: %s"
		if s.unwatched[name] == reasonForbidden {
			format = "not served in namespace %s: %s to list and watch the kind"
		}
		lines = append(lines, fmt.Sprintf(format, name, s.unwatched[name]))
	}
	return strings.Join(lines, "\n")
}
