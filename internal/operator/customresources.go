package operator

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/customresource"
)

// decoderOf returns the decoder for the custom resources of a kind.
func decoderOf(kind catalog.Kind) customresource.Decoder {
	return customresource.Decoder{Scale: kind.ScalePath()}
}

// listWatch returns how the custom resources of an area are listed and watched:
// packed, and one at a time.
func (s *service) listWatch(a *area, httpClient *http.Client) (toolscache.ListerWatcher, error) {
	gvk := s.kind.GVK()
	mapping, err := s.manager.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	selection := customresource.Selection{Mapping: mapping, Namespace: a.name}
	if s.kind.Selector != nil {
		if selection.Labels, err = metav1.LabelSelectorAsSelector(s.kind.Selector); err != nil {
			return nil, fmt.Errorf("selector: %w", err)
		}
	}
	return decoderOf(s.kind).ListWatch(s.manager.GetConfig(), httpClient, selection)
}

// newPatcher returns what patches the custom resources of all kinds.
func (k *kinds) newPatcher() *customresource.Patcher {
	return customresource.NewPatcher(k.manager.GetConfig(), k.manager.GetHTTPClient(), k.manager.GetRESTMapper(), func(gvk schema.GroupVersionKind) customresource.Decoder {
		for _, kind := range k.options.Kinds {
			if kind.GVK() == gvk {
				return decoderOf(kind)
			}
		}
		return customresource.Decoder{}
	})
}
