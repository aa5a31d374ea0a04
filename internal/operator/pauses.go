package operator

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// pauses holds the CRDs on which a person has stopped the rollout of the kind's
// chart, by their names.
type pauses struct {
	mu    sync.Mutex
	names map[string]bool
}

func (p *pauses) set(name string, paused bool) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names == nil {
		p.names = map[string]bool{}
	}
	changed = p.names[name] != paused
	p.names[name] = paused
	return changed
}

func (p *pauses) get(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names[name]
}

// sawCRD takes from a CRD what it says of its kind's rollout.
func (k *kinds) sawCRD(object any) {
	definition, ok := object.(*metav1.PartialObjectMetadata)
	if !ok || !k.pauses.set(definition.Name, definition.Annotations[api.AnnotationRolloutPaused] == "true") {
		return
	}
	k.each(func(r *reconcile.Reconciler) {
		if k.definitionOf(r.Kind) == definition.Name {
			r.PauseRollout(k.pauses.get(definition.Name))
		}
	})
}

// definitionOf returns the name of a kind's CRD, empty where it is not served.
func (k *kinds) definitionOf(kind catalog.Kind) string {
	gvk := kind.GVK()
	mapping, err := k.manager.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return ""
	}
	return mapping.Resource.Resource + "." + gvk.Group
}

// compactCRD keeps of a CRD what tells it from others, and what it says of the
// rollout.
func compactCRD(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	compact := &metav1.PartialObjectMetadata{
		TypeMeta:   m.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion},
	}
	if paused, there := m.Annotations[api.AnnotationRolloutPaused]; there {
		compact.Annotations = map[string]string{api.AnnotationRolloutPaused: paused}
	}
	return compact, nil
}
