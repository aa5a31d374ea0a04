package chart

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClusterScoped tells, without a cluster, of the kinds of Kubernetes and of the
// chart's own crds/ which have no namespace. Of any other kind it is not known,
// and it passes for one that has.
func (c *Chart) ClusterScoped() (func(schema.GroupKind) bool, error) {
	definitions, err := c.CRDs()
	if err != nil {
		return nil, err
	}
	own := map[schema.GroupKind]bool{}
	for _, definition := range definitions {
		kind, _, cluster := DefinedKind(definition.Unstructured)
		own[kind] = cluster
	}
	return func(kind schema.GroupKind) bool {
		return own[kind] || ClusterScoped(kind)
	}, nil
}

// DefinedKind returns the kind and the plural of a CRD, empty if they are missing,
// and reports whether the kind is cluster-scoped.
func DefinedKind(definition *unstructured.Unstructured) (kind schema.GroupKind, plural string, cluster bool) {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(definition.Object, append([]string{"spec"}, fields...)...)
		return value
	}
	return schema.GroupKind{Group: text("group"), Kind: text("names", "kind")}, text("names", "plural"), text("scope") == "Cluster"
}

// ClusterScoped tells the kinds of Kubernetes whose objects have no namespace.
func ClusterScoped(kind schema.GroupKind) bool {
	return slices.Contains(clusterScoped[kind.Group], kind.Kind)
}

// clusterScoped are the kinds of Kubernetes whose objects have no namespace.
var clusterScoped = map[string][]string{
	"":                             {"Namespace", "Node", "PersistentVolume", "ComponentStatus"},
	"admissionregistration.k8s.io": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"internal.apiserver.k8s.io":    {"StorageVersion"},
	"networking.k8s.io":            {"IngressClass", "IPAddress", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "ResourceSlice", "DeviceTaintRule"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
}

// ClusterScopedResource tells of the resources of Kubernetes, and of their
// subresources, which have no namespace. Any other passes for one that has.
func ClusterScopedResource(resource schema.GroupResource) bool {
	resource.Resource, _, _ = strings.Cut(resource.Resource, "/")
	return clusterScopedResources()[resource]
}

var clusterScopedResources = sync.OnceValue(func() map[schema.GroupResource]bool {
	known := map[schema.GroupResource]bool{}
	for group, resources := range virtual {
		for _, resource := range resources {
			known[schema.GroupResource{Group: group, Resource: resource}] = true
		}
	}
	for group, kinds := range clusterScoped {
		for _, kind := range kinds {
			plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
			known[plural.GroupResource()] = true
		}
	}
	return known
})

// virtual are resources without a namespace that are no kinds of Kubernetes' own:
// what the API server is asked, and what only its authorizers know.
var virtual = map[string][]string{
	"":                      {"groups", "users"},
	"authentication.k8s.io": {"tokenreviews", "selfsubjectreviews", "uids", "userextras"},
	"authorization.k8s.io":  {"subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"},
	"certificates.k8s.io":   {"signers"},
	"metrics.k8s.io":        {"nodes"},
}
