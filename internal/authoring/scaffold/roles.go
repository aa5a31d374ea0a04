package scaffold

import (
	"fmt"
	"strings"
)

// level is one of the roles that give users permissions for a kind. Each is
// aggregated to the built-in role of the same meaning, unless it lets users
// change more than their namespace (see aggregated).
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
	fmt.Fprintf(&text, "# %s %s. %s\n", l.about, k.definition.Name, l.membership(k))
	fmt.Fprintf(&text, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: %[3]s-%[1]s-role
  labels:
    app.kubernetes.io/name: %[2]s
    app.kubernetes.io/managed-by: kustomize
`, l.name, name, k.file)
	if l.aggregated(k) {
		fmt.Fprintf(&text, "    rbac.authorization.k8s.io/aggregate-to-%s: \"true\"\n", l.aggregate)
	}
	text.WriteString("rules:\n")
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

// aggregated reports whether the role is part of the built-in role of the same
// meaning. The built-in roles admin and edit are for one namespace. So they
// contain no kind whose custom resources have effects outside their namespaces.
func (l level) aggregated(k kind) bool {
	return l.aggregate == "view" || k.BeyondNamespace() == ""
}

// membership says for readers of the role how users get it.
func (l level) membership(k kind) string {
	if l.aggregated(k) {
		return "Part of the built-in role " + l.aggregate + "."
	}
	return "Not part of the built-in role " + l.aggregate + ": " + k.BeyondNamespace() + ", so bind this role only to users who may change all of that."
}
