package operator

import (
	"context"
	"slices"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/chartwright/chartwright/internal/testenv"
)

func TestScopes(t *testing.T) {
	for _, test := range []struct {
		namespaces []string
		names      []string
		hasA       []bool
		limited    []int
	}{
		{nil, []string{""}, []bool{true}, []int{0}},
		{[]string{"a"}, []string{"a"}, []bool{true}, []int{1}},
		{[]string{"b", "a"}, []string{"b", "a"}, []bool{false, true}, []int{1, 1}},
	} {
		for i, a := range newScopes(test.namespaces) {
			var options cache.Options
			a.limit(&options)
			if a.name != test.names[i] || a.has("a") != test.hasA[i] || len(options.DefaultNamespaces) != test.limited[i] {
				t.Errorf("%v: scope %q has namespace a: %t, limits to %v", test.namespaces, a.name, a.has("a"), options.DefaultNamespaces)
			}
		}
	}
}

// TestScopes_Each: each does not wait for a forbidden scope, and calls the function for it
// when it becomes ready.
func TestScopes_Each(t *testing.T) {
	all := newScopes([]string{"open", "closed"})
	open, closed := all[0], all[1]
	open.ready.set()
	closed.forbidden.set()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var done []string
	later := make(chan struct{})
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	all.each(ctx, &tasks, func(a *namespaceScope) {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, a.name)
		if a == closed {
			close(later)
		}
	})
	mu.Lock()
	if !slices.Equal(done, []string{"open"}) {
		t.Errorf("called for %q, want only the open scope", done)
	}
	mu.Unlock()
	closed.ready.set()
	testenv.Receive(t, "the call for the scope that became ready", later)
}
