package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// service is how a kind is served: by one controller, over a cache for each area.
// It begins when of each area is known whether it can be watched, and one can.
// The others join as they come.
type service struct {
	*kinds
	kind   catalog.Kind
	object *unstructured.Unstructured
	logger logr.Logger
	caches caches

	// What follows belongs to run alone.

	// filled are those of the caches that no controller listens to yet.
	filled map[string]cache.Cache
	// closed says why an area is not watched.
	closed map[string]string
	// heard are the areas of which anything is known.
	heard map[string]bool

	controller controller.Controller
	reconciler *reconcile.Reconciler
}

// arrival is what became of the watch of an area: a cache that holds all that is
// there, or why there is none.
type arrival struct {
	area  *area
	cache cache.Cache
	why   string
}

const whyForbidden = "for lack of rights"

// start begins to serve a kind. One that may not be watched holds up nobody: it
// starts anew when the operator gets other rights. It is called under the lock.
func (k *kinds) start(ctx context.Context, kind catalog.Kind, scope meta.RESTScopeName) {
	s := &service{
		kinds:  k,
		kind:   kind,
		object: &unstructured.Unstructured{},
		logger: k.manager.GetLogger().WithValues("kind", kind.Kind, "group", kind.Group, "version", kind.Version),
		filled: map[string]cache.Cache{}, closed: map[string]string{}, heard: map[string]bool{},
	}
	s.object.SetGroupVersionKind(kind.GVK())
	areas := k.areas
	if scope == meta.RESTScopeNameRoot {
		areas = []*area{k.everywhere(ctx)}
	}
	arrivals := make(chan arrival)
	for _, a := range areas {
		changed := make(chan struct{}, 1)
		k.forbidden[kind.GVK().GroupKind()] = append(k.forbidden[kind.GVK().GroupKind()], changed)
		go s.await(ctx, a, changed, arrivals)
	}
	k.board.set(kind.GVK().GroupKind(), stateStarting, "")
	go s.run(ctx, len(areas), arrivals)
}

// everywhere returns the area of custom resources that have no namespace. Their
// releases may be in any.
func (k *kinds) everywhere(ctx context.Context) *area {
	all := newAreas(nil)[0]
	closed := sync.OnceFunc(func() { close(all.closed) })
	go func() {
		for _, a := range k.areas {
			select {
			case <-a.ready:
				continue
			case <-a.closed:
				closed()
			case <-ctx.Done():
				return
			}
			select {
			case <-a.ready:
			case <-ctx.Done():
				return
			}
		}
		close(all.ready)
	}()
	return all
}

// await waits for an area, and tells what becomes of its watch.
func (s *service) await(ctx context.Context, a *area, changed <-chan struct{}, arrivals chan<- arrival) {
	tell := func(to arrival) {
		select {
		case arrivals <- to:
		case <-ctx.Done():
		}
	}
	select {
	case <-a.ready:
	case <-a.closed:
		tell(arrival{area: a, why: whyForbidden})
	case <-ctx.Done():
		return
	}
	select {
	case <-a.ready:
	case <-ctx.Done():
		return
	}
	for pause := serveAgain; ; pause = min(2*pause, serveAtMost) {
		customResources, err := s.fill(ctx, a, changed, func(why string) { tell(arrival{area: a, why: why}) })
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			tell(arrival{area: a, cache: customResources})
			return
		}
		s.logger.Error(err, "kind not watched", "watched", a.name)
		tell(arrival{area: a, why: err.Error()})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// Bounds of the time between attempts to serve a kind that could not be served.
const (
	serveAgain  = time.Second
	serveAtMost = time.Minute
)

// run takes in the areas until all have come and are served. What fails is tried
// again, and affects no other kind.
func (s *service) run(ctx context.Context, areas int, arrivals <-chan arrival) {
	var again <-chan time.Time
	pause := serveAgain
	for joined := 0; joined < areas || again != nil; {
		var a arrival
		select {
		case a = <-arrivals:
		case <-again:
		case <-ctx.Done():
			return
		}
		if a.area != nil {
			joined += s.take(a)
		}
		if len(s.heard) < areas {
			continue
		}
		again = nil
		if err := s.serve(ctx); err != nil && ctx.Err() == nil {
			s.logger.Error(err, "kind not served")
			s.board.set(s.kind.GVK().GroupKind(), stateFailed, err.Error())
			again, pause = time.After(pause), min(2*pause, serveAtMost)
		}
	}
}

// take notes what became of the watch of an area, and returns how many areas have
// joined by it.
func (s *service) take(a arrival) int {
	name := a.area.name
	s.heard[name] = true
	if a.cache == nil {
		s.closed[name] = a.why
		return 0
	}
	delete(s.closed, name)
	s.filled[name] = a.cache
	return 1
}

// serve has the controller listen to the caches that have come.
func (s *service) serve(ctx context.Context) error {
	gk := s.kind.GVK().GroupKind()
	if s.controller == nil && len(s.filled) == 0 {
		state, why := stateForbidden, ""
		for _, other := range s.closed {
			if other != whyForbidden {
				state, why = stateFailed, other
			}
		}
		s.board.set(gk, state, why)
		return nil
	}
	begins := s.controller == nil
	if begins {
		s.watchObserved(ctx, s.kind)
	}
	// Before any pass, so that the first knows of all that are there.
	for name, customResources := range s.filled {
		s.caches.put(name, customResources)
	}
	if begins {
		if err := s.addController(); err != nil {
			return err
		}
	}
	for name, customResources := range s.filled {
		if !begins {
			uids, err := s.uids(ctx, customResources)
			if err != nil {
				return err
			}
			s.reconciler.Grown(uids)
		}
		if err := s.listen(ctx, customResources); err != nil {
			return err
		}
		delete(s.filled, name)
	}
	s.board.set(gk, stateServing, s.exceptIn())
	s.logger.Info("serving kind", "chart", s.kind.Chart.Name(), "chartVersion", s.kind.Chart.Version(), "exceptIn", slices.Sorted(maps.Keys(s.closed)))
	return nil
}

// exceptIn says where the kind is not served, empty where it is everywhere.
func (s *service) exceptIn() string {
	lines := make([]string, 0, len(s.closed))
	for _, name := range slices.Sorted(maps.Keys(s.closed)) {
		line := fmt.Sprintf("not in namespace %s: it may not be watched there, %s", name, s.closed[name])
		if s.closed[name] != whyForbidden {
			line = fmt.Sprintf("not in namespace %s: it cannot be watched there, and is tried again: %s", name, s.closed[name])
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// uids lists what a cache holds.
func (s *service) uids(ctx context.Context, customResources cache.Cache) ([]types.UID, error) {
	list := &unstructured.UnstructuredList{}
	gvk := s.kind.GVK()
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	if err := customResources.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list %s from the cache: %w", s.kind.Kind, err)
	}
	uids := make([]types.UID, len(list.Items))
	for i := range list.Items {
		uids[i] = list.Items[i].GetUID()
	}
	return uids, nil
}
