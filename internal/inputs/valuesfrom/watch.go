package valuesfrom

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inputs"
)

// watched is the state of the watch of a kind.
type watched struct {
	// cluster: the kind is cluster-scoped.
	cluster bool
	// synced: the watch has listed all existing objects.
	synced bool
	// failed is why the watch fails before it has synced.
	failed string
}

// Feed passes the objects of a watched kind to a Store, which therefore distinguishes objects
// that do not exist from objects that were not listed yet. Without a Feed, the objects that
// Handler has received are all that exist.
type Feed struct {
	store *Store
	kind  schema.GroupVersionKind
	state *watched
}

// Feed returns the feed of a kind.
func (s *Store) Feed(kind schema.GroupVersionKind) Feed {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	if s.kinds[kind] == nil {
		s.kinds[kind] = &watched{}
	}
	return Feed{s, kind, s.kinds[kind]}
}

// Handler returns the event handler of an informer on the metadata of the kind.
func (f Feed) Handler() cache.ResourceEventHandler { return f.store.Handler(f.kind) }

// Transform is Compact.
func (Feed) Transform(object any) (any, error) { return Compact(object) }

// Scoped records whether the kind is cluster-scoped.
func (f Feed) Scoped(cluster bool) {
	f.update(func(w *watched) { w.cluster = cluster })
}

// Synced records that the watch has listed all existing objects.
func (f Feed) Synced() {
	f.update(func(w *watched) { w.synced, w.failed = true, "" })
}

// Failed records why the watch fails, and reports whether the reason is new. It ignores
// failures after Synced, because watches end and restart regularly.
func (f Feed) Failed(reason string) (isNew bool) {
	return f.update(func(w *watched) {
		if !w.synced {
			w.failed = reason
		}
	})
}

// End removes all objects, because the watch has ended. The feed is then without effect.
func (f Feed) End() {
	f.store.users.Mu.Lock()
	defer f.store.users.Mu.Unlock()
	delete(f.store.kinds, f.kind)
	maps.DeleteFunc(f.store.versions, func(ref Ref, _ string) bool { return ref.Kind == f.kind })
}

// update changes the state of the kind, and notifies the users of its objects if it is
// another state.
func (f Feed) update(change func(*watched)) (changed bool) {
	f.store.users.Update(func() []types.UID {
		before := *f.state
		change(f.state)
		if *f.state == before || f.store.kinds[f.kind] != f.state {
			return nil
		}
		changed = true
		var refs []Ref
		for ref := range f.store.users.All() {
			if ref.Kind == f.kind {
				refs = append(refs, ref)
			}
		}
		return f.store.users.Users(refs...)
	})
	return changed
}

// forbidden is the beginning of the reason for a watch that the operator lacks the permission
// for.
const forbidden = "the operator lacks the permission to get, list and watch the kind: add to the rules of the operator's role: "

// Forbidden returns the reason for Failed if the operator lacks a rule.
func Forbidden(rule string) string { return forbidden + rule }

// notFound returns the problem of a source whose object the watch has not reported, or an
// error that may go away by itself.
func (w *watched) notFound(source Source) error {
	switch {
	case w == nil || w.synced:
		what := "create it"
		if source.Expression == nil {
			what += " with the key " + source.Key
		}
		return source.failf(api.ReasonValuesSourceMissing, "%s does not exist: %s", source.Ref, what)
	case strings.HasPrefix(w.failed, forbidden):
		return source.failf(api.ReasonValuesSourceForbidden, "%s cannot be read: %s", source.Ref, w.failed)
	case w.failed != "":
		return source.failf(api.ReasonValuesSourceMissing, "%s cannot be read: %s", source.Ref, w.failed)
	default:
		return fmt.Errorf("%s: objects of the kind %s are not listed yet", source.Ref, source.Kind.Kind)
	}
}

// scoped returns the source with the namespace of its object, which is empty for a
// cluster-scoped kind. It requires the lock.
func (s *Store) scoped(source Source) Source {
	if w := s.kinds[source.Kind]; w != nil && w.cluster {
		source.Namespace = ""
	}
	return source
}

// Handler returns the event handler of an informer on the metadata of a kind. It feeds the
// Store.
func (s *Store) Handler(kind schema.GroupVersionKind) cache.ResourceEventHandler {
	return inputs.EventHandler(s.users,
		func(m metav1.Object) []types.UID { return s.observe(refOf(kind, m), m.GetResourceVersion()) },
		func(m metav1.Object) []types.UID { return s.remove(refOf(kind, m)) },
	)
}

func refOf(kind schema.GroupVersionKind, m metav1.Object) Ref {
	return Ref{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()}
}

func (s *Store) observe(ref Ref, version string) []types.UID {
	if s.versions[ref] == version {
		return nil
	}
	s.versions[ref] = version
	return s.users.Users(ref)
}

func (s *Store) remove(ref Ref) []types.UID {
	delete(s.versions, ref)
	s.drop(ref)
	return s.users.Users(ref)
}

// Compact is the transform of the informer. It drops everything that the handler does not
// read, because the cache holds all objects of the kind.
func Compact(obj any) (any, error) {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return api.Identity(m), nil
}

// partID identifies a part of an object.
type partID struct{ key, expression string }

func (s Source) partID() partID {
	id := partID{key: s.Key}
	if s.Expression != nil {
		id.expression = s.Expression.text
	}
	return id
}

// object is the content of one object, as far as it is used. The zero object was never
// read.
type object struct {
	mu      sync.Mutex
	version string
	parts   map[partID]*content
	// sources are any sources with these parts.
	sources map[partID]Source
	// all are the values of parts.
	all []*content
}

// get returns the part of the object that a source uses, and all parts in memory. It reads the object if the given version is newer than the one in memory, or if the
// part was not read before. Concurrent callers share one request.
func (o *object) get(ctx context.Context, read Reader, source Source, version string) (*content, []*content, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := source.partID()
	found, asked := o.parts[id]
	if asked && !api.IsNewer(version, o.version) {
		return found, o.all, nil
	}
	whole, err := read(ctx, source.Ref)
	if err != nil {
		return nil, o.all, err
	}
	parts, sources := map[partID]*content{}, map[partID]Source{id: source}
	maps.Copy(sources, o.sources)
	for id, source := range sources {
		if parts[id], err = newContent(whole, source); err != nil {
			return nil, o.all, err
		}
		parts[id].namespace = source.Namespace
	}
	o.version, o.parts, o.sources, o.all = whole.GetResourceVersion(), parts, sources, slices.Collect(maps.Values(parts))
	return parts[id], o.all, nil
}
