package chart

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClusterScoped returns a function that reports whether a kind is cluster-scoped. The
// function knows the kinds of Kubernetes and of the chart's own crds/, and returns false
// for all other kinds.
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

// ClusterScoped reports whether a kind of Kubernetes is cluster-scoped. It returns false
// for other kinds.
func ClusterScoped(kind schema.GroupKind) bool {
	return slices.Contains(clusterScoped[kind.Group], kind.Kind)
}

// SimilarClusterScoped returns the cluster-scoped kind of Kubernetes that a misspelled one
// means: the group is missing or another one of Kubernetes, or the name is a plural or in
// another case.
func SimilarClusterScoped(kind schema.GroupKind) (schema.GroupKind, bool) {
	if ClusterScoped(kind) {
		return kind, true
	}
	for group, names := range clusterScoped {
		if kind.Group != group && kind.Group != "" && !strings.HasSuffix(kind.Group, ".k8s.io") {
			continue
		}
		for _, name := range names {
			known := schema.GroupKind{Group: group, Kind: name}
			plural, _ := meta.UnsafeGuessKindToResource(known.WithVersion("v1"))
			if strings.EqualFold(kind.Kind, name) || strings.EqualFold(kind.Kind, plural.Resource) {
				return known, true
			}
		}
	}
	return kind, false
}

// clusterScoped holds the cluster-scoped kinds of Kubernetes by group.
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

// ClusterScopedResource reports whether a resource or subresource of Kubernetes is
// cluster-scoped. It returns false for other resources.
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

// virtual holds cluster-scoped resources that are not stored: resources of requests to
// the API server, and resources that only authorizers use.
var virtual = map[string][]string{
	"":                      {"groups", "users"},
	"authentication.k8s.io": {"tokenreviews", "selfsubjectreviews", "uids", "userextras"},
	"authorization.k8s.io":  {"subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"},
	"certificates.k8s.io":   {"signers"},
	"metrics.k8s.io":        {"nodes"},
}
