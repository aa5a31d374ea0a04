package helm

import (
	"context"
	"time"

	helmkube "helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// servedWithin is how long the API server may take to serve a kind whose
// definition has just been created. It mostly takes less than a second.
const servedWithin = 10 * time.Second

// definedIn returns the kinds that CustomResourceDefinitions among objects
// define.
func definedIn(objects helmkube.ResourceList) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, info := range objects {
		definition := object(info).Unstructured
		if definition.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		kinds[schema.GroupKind{Group: group, Kind: kind}] = true
	}
	return kinds
}

// mapping returns the resource of a kind. It waits for kinds that the release
// itself defines: their hooks run soon after the definitions are created.
func (b *builder) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := b.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if !meta.IsNoMatchError(err) || !b.awaited[gvk.GroupKind()] {
		return mapping, err
	}
	waited := wait.PollUntilContextTimeout(b.ctx, servedWithin/100, servedWithin, true, func(context.Context) (bool, error) {
		mapping, err = b.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		return !meta.IsNoMatchError(err), nil
	})
	if waited != nil && b.ctx.Err() != nil {
		return nil, waited
	}
	return mapping, err
}
