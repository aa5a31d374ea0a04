package scaffold

import (
	"fmt"
	"strings"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// bindingOfDeclared binds what a watches entry declares and no Role can allow.
const bindingOfDeclared = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: manager-rolebinding-cluster
  labels:
    app.kubernetes.io/name: %s
    app.kubernetes.io/managed-by: kustomize
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: manager-role-cluster
subjects:
  - kind: ServiceAccount
    name: controller-manager
    namespace: system
`

// generateNamespaced writes the rights of an operator that serves a few
// namespaces, for projects that have an overlay for one. What no Role can allow
// is said in the file: it concerns those alone who deploy that overlay.
func (p Project) generateNamespaced(plan *Plan, name string, served []catalog.Kind) error {
	folder := p.config("namespaced")
	overlay, err := plan.read(folder + "/kustomization.yaml")
	if err != nil || overlay == nil {
		return err
	}
	report, err := permissions.Derive(served, permissions.Options{Operator: name, Namespaced: true})
	if err != nil {
		return err
	}
	role, err := report.Role("manager-role")
	if err != nil {
		return err
	}
	var text strings.Builder
	text.Write(role)
	if strings.Contains(string(role), "\nkind: ClusterRole\n") {
		fmt.Fprintf(&text, bindingOfDeclared, name)
	}
	if len(report.Unresolved) > 0 {
		text.WriteString("# What no Role can allow, or what is not known; \"chartwright rbac --namespaced\" says where:\n")
	}
	for _, unresolved := range report.Unresolved {
		text.WriteString("# - " + unresolved.Kind + ": " + unresolved.What + "\n")
	}
	return plan.generated(folder+"/role.yaml", []byte(text.String()))
}
