package operator

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// area is a namespace that the operator serves, or all of them. Each has watches
// of its own, so that one that is forbidden, gone or not there yet holds up none
// of the others.
type area struct {
	// name is empty for all namespaces.
	name string
	// ready is closed when the release records are known there and what releases
	// own is watched, and closed when it is known that the records may not be.
	// They may later.
	ready, closed chan struct{}
	// again is told that the operator's rights have changed.
	again chan struct{}
}

// newAreas returns an area for each namespace, one for all where none is named.
func newAreas(namespaces []string) []*area {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	areas := make([]*area, len(namespaces))
	for i, name := range namespaces {
		areas[i] = &area{name: name, ready: make(chan struct{}), closed: make(chan struct{}), again: make(chan struct{}, 1)}
	}
	return areas
}

// limit keeps a cache to the area.
func (a *area) limit(options *cache.Options) {
	if a.name != "" {
		options.DefaultNamespaces = map[string]cache.Config{a.name: {}}
	}
}

// has tells whether a namespace belongs to the area.
func (a *area) has(namespace string) bool { return a.name == "" || a.name == namespace }

// openAreas opens each area beside the others, and returns when of each is known
// whether it can be, and one can.
func (k *kinds) openAreas(ctx context.Context) error {
	failed, opened := make(chan error, len(k.areas)), make(chan struct{})
	open := sync.OnceFunc(func() { close(opened) })
	for _, a := range k.areas {
		go func() {
			if err := k.openArea(ctx, a); err != nil {
				if ctx.Err() == nil {
					k.manager.GetLogger().Error(err, "namespace not served", "namespace", a.name)
				}
				failed <- err
				return
			}
			open()
		}()
	}
	for _, a := range k.areas {
		select {
		case <-a.ready:
		case <-a.closed:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case <-opened:
		return nil
	default:
		// Nothing can be done without them, and rights may come.
		k.board.hold("release records, which are Secrets, may not be watched, for lack of rights")
	}
	select {
	case <-opened:
		k.board.hold("the operator is starting")
		return nil
	case err := <-failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// openArea watches what passes ask for, and returns when all of it is known.
func (k *kinds) openArea(ctx context.Context, a *area) error {
	if err := k.watchRecords(ctx, a); err != nil {
		return err
	}
	if err := k.watchSources(ctx, a); err != nil {
		return err
	}
	if err := k.watchDependents(ctx, a); err != nil {
		return err
	}
	close(a.ready)
	if a.name != "" {
		k.manager.GetLogger().Info("serving namespace", "namespace", a.name)
	}
	return nil
}

// eachArea calls a function for each area that is ready, and for the others when
// they are, beside what calls it. It returns when the function has returned for
// all but those that are closed now.
func (k *kinds) eachArea(ctx context.Context, do func(*area)) {
	var settled sync.WaitGroup
	for _, a := range k.areas {
		settled.Add(1)
		go func() {
			done := sync.OnceFunc(settled.Done)
			defer done()
			select {
			case <-a.ready:
			case <-a.closed:
				done()
			case <-ctx.Done():
				return
			}
			select {
			case <-a.ready:
				do(a)
			case <-ctx.Done():
			}
		}()
	}
	settled.Wait()
}
