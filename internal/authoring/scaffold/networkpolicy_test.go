package scaffold_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// TestConfig_RestrictsIngress: what is deployed by default accepts connections to
// the metrics, from labeled namespaces, and no others. A bundle has no policy,
// because older versions of OLM refuse it.
func TestConfig_RestrictsIngress(t *testing.T) {
	for _, root := range []string{repository, newProject(t)} {
		for _, folder := range []string{"default", "namespaced"} {
			var policies []networkingv1.NetworkPolicy
			var manager appsv1.Deployment
			for document := range strings.SplitSeq(build(t, filepath.Join(root, "config", folder)), "\n---\n") {
				var meta metav1.TypeMeta
				decodeYAML(t, document, &meta)
				switch meta.Kind {
				case "NetworkPolicy":
					policies = append(policies, networkingv1.NetworkPolicy{})
					decodeYAML(t, document, &policies[len(policies)-1])
				case "Deployment":
					decodeYAML(t, document, &manager)
				}
			}
			if len(policies) != 1 {
				t.Fatalf("%s: config/%s has %d network policies, want 1", root, folder, len(policies))
			}
			policy := policies[0]
			if policy.Namespace != manager.Namespace || !cmp.Equal(policy.Spec.PodSelector.MatchLabels, manager.Spec.Template.Labels) {
				t.Errorf("%s: the policy of config/%s does not select the pods of the Deployment: %v", root, folder, policy.Spec.PodSelector)
			}
			want := networkingv1.NetworkPolicySpec{
				PodSelector: policy.Spec.PodSelector,
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress: []networkingv1.NetworkPolicyIngressRule{{
					From:  []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"metrics": "enabled"}}}},
					Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromString("metrics")), Protocol: new(corev1.ProtocolTCP)}},
				}},
			}
			if diff := cmp.Diff(want, policy.Spec); diff != "" {
				t.Errorf("%s: config/%s (-want +got):\n%s", root, folder, diff)
			}
		}
		if strings.Contains(build(t, filepath.Join(root, "config", "manifests")), "kind: NetworkPolicy") {
			t.Errorf("%s: the bundle has a NetworkPolicy", root)
		}
	}
}

func decodeYAML(t *testing.T, document string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(document), into); err != nil {
		t.Fatal(err)
	}
}
