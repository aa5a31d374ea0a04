package operator

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
)

// lookup is whether the API server has a kind, and whether its custom resources
// have a namespace.
type lookup struct {
	kind  catalog.Kind
	scope meta.RESTScopeName
	err   error
}

// lookupsWithin is how long the kinds that the API server has wait for those of
// which it has not answered yet.
const lookupsWithin = time.Second

// errNotAnswered marks a kind of which the API server has not answered yet.
var errNotAnswered = errors.New("the API server has not answered yet whether it has the kind")

// lookUp looks kinds up, all at once: a group of the API server that does not
// answer must not delay the kinds of the others. A lookup that is not answered in
// time goes on, and the next call returns its answer. Only one goroutine calls it.
func (k *kinds) lookUp(kinds []catalog.Kind) []lookup {
	if k.lookups == nil {
		k.lookups = map[schema.GroupVersionKind]chan lookup{}
	}
	for _, kind := range kinds {
		if k.lookups[kind.GVK()] != nil {
			continue
		}
		answer := make(chan lookup, 1)
		k.lookups[kind.GVK()] = answer
		go func() {
			found := lookup{kind: kind}
			mapping, err := k.manager.GetRESTMapper().RESTMapping(kind.GVK().GroupKind(), kind.GVK().Version)
			if found.err = err; err == nil {
				found.scope = mapping.Scope.Name()
			}
			answer <- found
		}()
	}
	answers := make([]lookup, 0, len(kinds))
	within, cancel := context.WithTimeout(context.Background(), lookupsWithin)
	defer cancel()
	for _, kind := range kinds {
		found, answered := k.lookups[kind.GVK()], lookup{kind: kind, err: errNotAnswered}
		select {
		case answered = <-found:
			delete(k.lookups, kind.GVK())
		case <-within.Done():
			select {
			case answered = <-found:
				delete(k.lookups, kind.GVK())
			default:
			}
		}
		answers = append(answers, answered)
	}
	return answers
}
