package scaffold

import (
	"fmt"
	"strings"
)

// level is one of the roles by which people get rights to a kind. Each is part
// of the role of the same meaning that Kubernetes has built in.
type level struct {
	name, about, aggregate string
	verbs, scale           string
}

var levels = []level{
	{"admin", "Everything with", "admin", "get, list, watch, create, update, patch, delete, deletecollection", "get, update, patch"},
	{"editor", "Make, change and delete", "edit", "get, list, watch, create, update, patch, delete", "get, update, patch"},
	{"viewer", "Look at", "view", "get, list, watch", "get"},
}

// role returns the role for a kind.
func (l level) role(name string, k kind) []byte {
	var text strings.Builder
	text.WriteString(header)
	fmt.Fprintf(&text, `# %[2]s %[6]s. Part of the built-in role %[3]s.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: %[5]s-%[1]s-role
  labels:
    app.kubernetes.io/name: %[4]s
    app.kubernetes.io/managed-by: kustomize
    rbac.authorization.k8s.io/aggregate-to-%[3]s: "true"
rules:
`, l.name, l.about, l.aggregate, name, k.file, k.definition.Name)
	rule := func(resource, verbs string) {
		fmt.Fprintf(&text, "  - apiGroups: [%s]\n    resources: [%s]\n    verbs: [%s]\n", k.Group, resource, verbs)
	}
	rule(k.plural(), l.verbs)
	rule(k.plural()+"/status", "get")
	if k.Subresources.Scale != nil {
		rule(k.plural()+"/scale", l.scale)
	}
	return []byte(text.String())
}
