package valuesfrom

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/watches"
)

// Handler returns the handler that feeds the store from an informer on the
// metadata of a kind.
func (s *Store) Handler(kind watches.SourceKind) cache.ResourceEventHandler {
	observe := func(obj any) {
		if m, ok := obj.(metav1.Object); ok {
			s.observe(refOf(kind, m), m.GetResourceVersion())
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, obj any) { observe(obj) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if m, ok := obj.(metav1.Object); ok {
				s.gone(refOf(kind, m))
			}
		},
	}
}

func refOf(kind watches.SourceKind, m metav1.Object) Ref {
	return Ref{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()}
}

func (s *Store) observe(ref Ref, version string) {
	s.mu.Lock()
	before := s.versions[ref]
	s.versions[ref] = version
	users := s.users.Users(ref)
	s.mu.Unlock()
	if before == version {
		return
	}
	for _, user := range users {
		s.changed(user)
	}
}

func (s *Store) gone(ref Ref) {
	s.mu.Lock()
	delete(s.versions, ref)
	delete(s.objects, ref)
	users := s.users.Users(ref)
	s.mu.Unlock()
	for _, user := range users {
		s.changed(user)
	}
}

// Compact is the transform of that informer: it drops what the handler does
// not read, since the cache keeps every object that it has seen.
func Compact(obj any) (any, error) {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta: m.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		},
	}, nil
}
