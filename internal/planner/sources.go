package planner

import (
	"context"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
)

// sources reads the objects of valuesFrom. If the user may not read one, its values are
// those of the deployed revision.
type sources struct {
	*valuesfrom.Store
	read valuesfrom.Reader
	// deployed returns the values of the deployed revision of a custom resource.
	deployed func(ctx context.Context, user types.UID) (map[string]any, error)

	mu      sync.Mutex
	unknown map[types.UID][]string
}

// Merge merges the sources of a custom resource into values.
func (s *sources) Merge(ctx context.Context, user types.UID, from []valuesfrom.Source, over map[string]any) (map[string]any, valuesfrom.Secrets, error) {
	readable := make([]valuesfrom.Source, 0, len(from))
	var hidden []valuesfrom.Source
	for _, source := range from {
		object, err := s.read(ctx, source.Ref)
		switch {
		case apierrors.IsForbidden(err):
			hidden = append(hidden, source)
			continue
		case meta.IsNoMatchError(err):
			s.Feed(source.Kind).Failed(err.Error())
		case err == nil:
			s.Feed(source.Kind).Scoped(object.GetNamespace() == "")
			s.Feed(source.Kind).Synced()
			s.Handler(source.Kind).OnAdd(object, true)
		}
		// Merge reports other errors.
		readable = append(readable, source)
	}
	merged, secrets, err := s.Store.Merge(ctx, user, readable, over)
	if err != nil || len(hidden) == 0 {
		return merged, secrets, err
	}
	deployed, err := s.deployed(ctx, user)
	if err != nil {
		return nil, secrets, err
	}
	kept := map[string]any{}
	for _, source := range hidden {
		s.hide(user, source.String())
		if source.TargetPath == "" {
			kept = values.Merge(kept, deployed)
			continue
		}
		path := strings.Split(source.TargetPath, ".")
		if value, found, _ := unstructured.NestedFieldCopy(deployed, path...); found {
			if err := unstructured.SetNestedField(kept, value, path...); err != nil {
				return nil, secrets, err
			}
		}
	}
	return values.Merge(kept, merged), append(secrets, valuesfrom.SecretsBeside(kept, over)...), nil
}

// hide records a source that the user may not read.
func (s *sources) hide(user types.UID, source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown[user] = append(s.unknown[user], source)
}

// hidden returns the sources of a custom resource that the user may not read.
func (s *sources) hidden(user types.UID) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unknown[user]
}
