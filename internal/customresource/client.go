package customresource

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patcher patches custom resources, and decodes the answers into packed ones.
type Patcher struct {
	config     *rest.Config
	httpClient *http.Client
	mapper     meta.RESTMapper
	// decoder returns the decoder for a kind.
	decoder func(schema.GroupVersionKind) Decoder

	mu      sync.Mutex
	clients map[schema.GroupVersionKind]patched
}

// patched is how custom resources of one kind are patched.
type patched struct {
	rest    rest.Interface
	mapping *meta.RESTMapping
}

// NewPatcher returns a patcher of the kinds that a function returns decoders for.
func NewPatcher(config *rest.Config, httpClient *http.Client, mapper meta.RESTMapper, decoder func(schema.GroupVersionKind) Decoder) *Patcher {
	return &Patcher{config: config, httpClient: httpClient, mapper: mapper, decoder: decoder, clients: map[schema.GroupVersionKind]patched{}}
}

// Patch patches a custom resource and replaces its content by the answer.
func (p *Patcher) Patch(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error {
	return p.patch(ctx, cr, patch)
}

// PatchStatus patches the status of a custom resource and replaces its content by
// the answer.
func (p *Patcher) PatchStatus(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error {
	return p.patch(ctx, cr, patch, fieldStatus)
}

func (p *Patcher) patch(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch, subresource ...string) error {
	data, err := patch.Data(cr)
	if err != nil {
		return fmt.Errorf("compute the patch: %w", err)
	}
	to, err := p.client(cr.GroupVersionKind())
	if err != nil {
		return err
	}
	return to.rest.Patch(patch.Type()).NamespaceIfScoped(cr.GetNamespace(), cr.GetNamespace() != "").
		Resource(to.mapping.Resource.Resource).Name(cr.GetName()).SubResource(subresource...).
		Body(data).Do(ctx).Into(cr)
}

func (p *Patcher) client(gvk schema.GroupVersionKind) (patched, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, is := p.clients[gvk]; is {
		return known, nil
	}
	mapping, err := p.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return patched{}, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	to, err := connect(p.config, p.httpClient, mapping, p.decoder(gvk))
	if err != nil {
		return patched{}, err
	}
	p.clients[gvk] = patched{rest: to, mapping: mapping}
	return p.clients[gvk], nil
}
