package scaffold_test

import (
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConfig_RunsWithoutPrivileges checks that the operator's pods comply with the Pod
// Security Standard "restricted" and have a read-only root filesystem, and that the
// namespace enforces that standard.
func TestConfig_RunsWithoutPrivileges(t *testing.T) {
	for _, root := range []string{repository, newProject(t)} {
		var namespace corev1.Namespace
		var manager appsv1.Deployment
		for document := range strings.SplitSeq(build(t, filepath.Join(root, "config", "default")), "\n---\n") {
			var meta metav1.TypeMeta
			decodeYAML(t, document, &meta)
			switch meta.Kind {
			case "Namespace":
				decodeYAML(t, document, &namespace)
			case "Deployment":
				decodeYAML(t, document, &manager)
			}
		}
		if standard := namespace.Labels["pod-security.kubernetes.io/enforce"]; standard != "restricted" {
			t.Errorf("%s: the namespace enforces %q, want restricted", root, standard)
		}
		pod := manager.Spec.Template.Spec
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: the pod's security context is %v", root, s)
		}
		if pod.HostNetwork || pod.HostPID || pod.HostIPC {
			t.Errorf("%s: the pod uses namespaces of its node", root)
		}
		if len(pod.Containers) != 1 {
			t.Fatalf("%s: the pod has %d containers, want 1", root, len(pod.Containers))
		}
		s := pod.Containers[0].SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
			s.Capabilities == nil || len(s.Capabilities.Add) > 0 || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%s: the container's security context is %v", root, s)
		}
	}
}
