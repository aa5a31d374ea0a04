package operator

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// latch is a condition that becomes true once.
type latch struct {
	// done is closed when set is called.
	done chan struct{}
	set  func()
}

func newLatch() latch {
	done := make(chan struct{})
	return latch{done: done, set: sync.OnceFunc(func() { close(done) })}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// receive waits for a value, or for the end of the channel. It returns false if the context ends
// first.
func receive[T any](ctx context.Context, from <-chan T) bool {
	select {
	case <-from:
		return true
	case <-ctx.Done():
		return false
	}
}

// send sends a value, unless the context ends first.
func send[T any](ctx context.Context, to chan<- T, value T) {
	select {
	case to <- value:
	case <-ctx.Done():
	}
}

// namespaceScope is a namespace that the operator watches, or all namespaces. Each scope
// has its own watches, so that a forbidden, deleted or missing namespace does not delay the
// others.
type namespaceScope struct {
	// name is empty for all namespaces.
	name string
	// ready is set when the release records in the scope are listed and managed resources
	// are watched. forbidden is set when the operator lacks the permission to watch the
	// records; the permission may be added later.
	ready, forbidden latch
}

func newScope(name string) *namespaceScope {
	return &namespaceScope{name: name, ready: newLatch(), forbidden: newLatch()}
}

// limit restricts a cache to the scope.
func (s *namespaceScope) limit(options *cache.Options) {
	if s.name != "" {
		options.DefaultNamespaces = map[string]cache.Config{s.name: {}}
	}
}

// has reports whether a namespace belongs to the scope.
func (s *namespaceScope) has(namespace string) bool { return s.name == "" || s.name == namespace }

// await waits until the scope is ready. It calls onForbidden if the scope is forbidden
// first.
func (s *namespaceScope) await(ctx context.Context, onForbidden func()) error {
	select {
	case <-s.ready.done:
	case <-s.forbidden.done:
		if !isClosed(s.ready.done) {
			onForbidden()
		}
	case <-ctx.Done():
	}
	if !receive(ctx, s.ready.done) {
		return ctx.Err()
	}
	return nil
}

// scopes are the namespaces to watch.
type scopes []*namespaceScope

// newScopes returns a scope for each namespace, one for all if none is given.
func newScopes(namespaces []string) scopes {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	all := make(scopes, len(namespaces))
	for i, name := range namespaces {
		all[i] = newScope(name)
	}
	return all
}

// each calls a function for each scope when it is ready, concurrently. It returns when the
// function has returned for all scopes except those that are forbidden now. The tasks for
// those continue, until the context ends at the latest.
func (s scopes) each(ctx context.Context, tasks *sync.WaitGroup, do func(*namespaceScope)) {
	var decided sync.WaitGroup
	for _, scope := range s {
		decided.Add(1)
		tasks.Go(func() {
			done := sync.OnceFunc(decided.Done)
			defer done()
			if scope.await(ctx, done) == nil {
				do(scope)
			}
		})
	}
	decided.Wait()
}

// clusterScope returns the scope of cluster-scoped custom resources. It is ready when all
// scopes are ready, because releases of these custom resources may be in any namespace.
func (s scopes) clusterScope(ctx context.Context, tasks *sync.WaitGroup) *namespaceScope {
	all := newScope("")
	tasks.Go(func() {
		for _, scope := range s {
			if scope.await(ctx, all.forbidden.set) != nil {
				return
			}
		}
		all.ready.set()
	})
	return all
}
