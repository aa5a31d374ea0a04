package operator

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// need is a rule that serving a kind takes. It has one group and one resource.
type need struct {
	permissions.Rule
	// always: every release of the kind needs it, and not just those with some
	// values.
	always bool
}

// lack is a need that is not met.
type lack struct {
	need
	// namespaces are those in which it is not; none means all that the operator
	// serves.
	namespaces []string
}

// lacking returns what of the needs the rules of each namespace do not allow. A
// namespace that is not there allows everything: nothing is known of it.
func lacking(needs []need, namespaces []string, have map[string][]rbacv1.PolicyRule) []lack {
	var found []lack
	for _, needed := range needs {
		for _, namespace := range namespaces {
			rules, known := have[namespace]
			if !known {
				continue
			}
			for _, missing := range permissions.Allowed(rules, needed.PolicyRule) {
				l := lack{need: need{Rule: permissions.Rule{PolicyRule: missing, Why: needed.Why}, always: needed.always}}
				text := permissions.RuleText(missing)
				at := slices.IndexFunc(found, func(other lack) bool { return permissions.RuleText(other.PolicyRule) == text })
				if at < 0 {
					at, found = len(found), append(found, l)
				}
				found[at].always = found[at].always || l.always
				if !slices.Contains(found[at].namespaces, namespace) {
					found[at].namespaces = append(found[at].namespaces, namespace)
				}
			}
		}
	}
	for i := range found {
		if len(found[i].namespaces) == len(namespaces) {
			found[i].namespaces = nil
		}
	}
	return found
}

// of tells whether a rule is about a resource.
func (n need) of(resource schema.GroupResource) bool {
	return slices.Contains(n.APIGroups, resource.Group) && slices.Contains(n.Resources, resource.Resource)
}

// in tells whether a release in a namespace is concerned.
func (l lack) in(namespace string) bool {
	return len(l.namespaces) == 0 || slices.Contains(l.namespaces, namespace)
}

// rulesText writes several, for a sentence.
func rulesText(lacks []lack) string {
	texts := make([]string, len(lacks))
	for i := range lacks {
		texts[i] = permissions.RuleText(lacks[i].PolicyRule)
	}
	return strings.Join(texts, ", ")
}

// lackLines lists rules so that they can be copied into a Role: the reasons are
// comments.
func lackLines(lacks []lack) (lines []string) {
	for _, part := range []struct {
		always bool
		title  string
	}{
		{true, "rights are missing: add to the rules of the operator's role"},
		{false, "rights are missing that only some values need"},
	} {
		title := "  " + part.title
		for i := range lacks {
			l := &lacks[i]
			if l.always != part.always {
				continue
			}
			if title != "" {
				lines, title = append(lines, title), ""
			}
			why := l.Why
			if len(l.namespaces) > 0 {
				why = fmt.Sprintf("in %s; %s", strings.Join(l.namespaces, ", "), why)
			}
			lines = append(lines, fmt.Sprintf("  - %s # %s", permissions.RuleText(l.PolicyRule), why))
		}
	}
	return lines
}
