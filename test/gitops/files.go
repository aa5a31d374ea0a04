package gitops

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Files of docs/guides/gitops.
const (
	HealthScript  = "argocd-health.lua"
	Application   = "argocd-application.yaml"
	Kustomization = "flux-kustomization.yaml"
)

// Read reads a file of docs/guides/gitops in the repository with the given root.
func Read(root, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "guides", "gitops", name))
	return string(text), err
}

// HealthChecks returns the expressions in the Kustomization.
func HealthChecks(root string) ([]HealthCheck, error) {
	text, err := Read(root, Kustomization)
	if err != nil {
		return nil, err
	}
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []HealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(text), &kustomization); err != nil {
		return nil, fmt.Errorf("%s: %w", Kustomization, err)
	}
	return kustomization.Spec.HealthCheckExprs, nil
}
