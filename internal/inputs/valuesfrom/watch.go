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

// Handler returns the handler that feeds the store from an informer on the
// metadata of a kind.
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

// object holds what is used of one object. One request at a time reads it, for
// all who wait. The zero object was never read.
type object struct {
	mu      sync.Mutex
	version string
	keys    map[string]content
}

// get returns what a key holds, and reads the object only where the version
// that the watch has seen is newer than what is in memory, or where nobody has
// asked for the key.
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

// Ref names an object.
type Ref struct {
	Kind            watches.SourceKind
	Namespace, Name string
}

// String names the object for people.
func (r Ref) String() string { return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name) }

// Source is one object as one custom resource uses it.
type Source struct {
	Ref
	// Key is the key of the object's data.
	Key string
	// TargetPath is where the key's content goes, as text; empty means that it
	// is YAML and is laid over the values.
	TargetPath string
	// Optional: the object need not be there.
	Optional bool
}

// Error is why a source cannot be used.
type Error struct {
	// Reason is that of the condition, see package api.
	Reason  string
	Message string
}

// Error returns the message, which holds nothing of the source's content.
func (e *Error) Error() string { return e.Message }

func failf(reason, format string, args ...any) error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
