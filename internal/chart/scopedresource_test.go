package chart_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/chart"
)

func TestClusterScopedResource_OfBuiltInResources(t *testing.T) {
	for text, want := range map[string]bool{
		"nodes": true, "nodes/proxy": true, "namespaces": true, "pods": false, "pods/log": false, "users": true,
		"customresourcedefinitions.apiextensions.k8s.io": true, "apiservices.apiregistration.k8s.io": true,
		"ingressclasses.networking.k8s.io": true, "ipaddresses.networking.k8s.io": true, "ingresses.networking.k8s.io": false,
		"validatingadmissionpolicies.admissionregistration.k8s.io": true, "storageclasses.storage.k8s.io": true,
		"clusterroles.rbac.authorization.k8s.io": true, "roles.rbac.authorization.k8s.io": false,
		"subjectaccessreviews.authorization.k8s.io": true, "localsubjectaccessreviews.authorization.k8s.io": false,
		"nodes.example.com": false,
	} {
		if got := chart.ClusterScopedResource(schema.ParseGroupResource(text)); got != want {
			t.Errorf("%s: got cluster-scoped %v, want %v", text, got, want)
		}
	}
}
