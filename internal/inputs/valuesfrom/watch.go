package valuesfrom

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/inputs"
	"github.com/chartwright/chartwright/internal/watches"
)

// Handler returns the event handler of an informer on the metadata of a kind. It feeds the
// Store.
func (s *Store) Handler(kind watches.SourceKind) cache.ResourceEventHandler {
	return inputs.EventHandler(s.users,
		func(m metav1.Object) []types.UID { return s.observe(refOf(kind, m), m.GetResourceVersion()) },
		func(m metav1.Object) []types.UID { return s.remove(refOf(kind, m)) },
	)
}

func refOf(kind watches.SourceKind, m metav1.Object) Ref {
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
	delete(s.objects, ref)
	return s.users.Users(ref)
}

// Compact is the transform of the informer. It drops everything that the handler does not
// read, because the cache holds all objects of the kind.
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

// object is the content of one object, as far as it is used. The zero object was never
// read.
type object struct {
	mu      sync.Mutex
	version string
	keys    map[string]content
}

// get returns the content of a key. It reads the object if the given version is newer than
// the one in memory, or if the key was not read before. Concurrent callers share one
// request.
func (o *object) get(ctx context.Context, read Reader, ref Ref, key, version string) (content, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, asked := o.keys[key]
	if asked && !api.IsNewer(version, o.version) {
		return found, nil
	}
	data, err := read(ctx, ref)
	if err != nil {
		return content{}, err
	}
	keys := map[string]content{key: {}}
	for asked := range o.keys {
		keys[asked] = content{}
	}
	for asked := range keys {
		if text, found := data.Keys[asked]; found {
			keys[asked] = newContent(ref.Kind, string(text))
		}
	}
	o.version, o.keys = data.ResourceVersion, keys
	return keys[key], nil
}

// Ref identifies an object.
type Ref struct {
	Kind            watches.SourceKind
	Namespace, Name string
}

// String returns the kind, namespace and name.
func (r Ref) String() string { return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name) }

// Source is a key of an object that a custom resource takes values from.
type Source struct {
	Ref
	// Key is the key in the object's data.
	Key string
	// TargetPath is the value to set to the content of the key, as a string. If it is
	// empty, the content is YAML that is merged into the values.
	TargetPath string
	// Optional: the object may be missing.
	Optional bool
}

// Error is a problem of a source.
type Error struct {
	// Reason is a condition reason, see package api.
	Reason  string
	Message string
}

// Error returns the message, which never contains content of the source.
func (e *Error) Error() string { return e.Message }

func failf(reason, format string, args ...any) error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
