package crdwatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
)

// lookupTimeout is how long Find waits for the API server.
const lookupTimeout = time.Second

// errNotAnswered marks a lookup without a response so far.
var errNotAnswered = errors.New("no response of the API server yet to the lookup of the kind")

// Lookups finds out whether the API server serves kinds.
type Lookups struct {
	mapper meta.RESTMapper
	tasks  *sync.WaitGroup
	// pending are the lookups without a response.
	pending map[schema.GroupVersionKind]chan Lookup
}

// Lookup is the resource of a kind, or the error if the API server does not serve the
// kind.
type Lookup struct {
	Kind    catalog.Kind
	Mapping *meta.RESTMapping
	Err     error
}

// NewLookups returns Lookups that run as tasks.
func NewLookups(mapper meta.RESTMapper, tasks *sync.WaitGroup) *Lookups {
	return &Lookups{mapper: mapper, tasks: tasks, pending: map[schema.GroupVersionKind]chan Lookup{}}
}

// Find looks up kinds concurrently, so that an API group that does not respond does not
// delay the kinds of other groups. A lookup without a response continues, and the next call
// returns its result. Find must not be called concurrently.
func (l *Lookups) Find(ctx context.Context, kinds []catalog.Kind) []Lookup {
	for _, kind := range kinds {
		if l.pending[kind.GVK()] != nil {
			continue
		}
		result := make(chan Lookup, 1)
		l.pending[kind.GVK()] = result
		l.tasks.Go(func() { result <- lookUp(l.mapper, kind) })
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	results := make([]Lookup, len(kinds))
	for i, kind := range kinds {
		result := l.pending[kind.GVK()]
		select {
		case results[i] = <-result:
		case <-ctx.Done():
			select {
			case results[i] = <-result:
			default:
				results[i] = Lookup{Kind: kind, Err: errNotAnswered}
				continue
			}
		}
		delete(l.pending, kind.GVK())
	}
	return results
}

func lookUp(mapper meta.RESTMapper, kind catalog.Kind) Lookup {
	mapping, err := mapper.RESTMapping(kind.GVK().GroupKind(), kind.Version)
	return Lookup{Kind: kind, Mapping: mapping, Err: err}
}

// crdName returns the name of the kind's CRD, empty if the kind is not served.
func (l Lookup) crdName() string {
	if l.Err != nil {
		return ""
	}
	return l.Mapping.Resource.Resource + "." + l.Kind.Group
}
