package permissions

import (
	"regexp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// Refusal is a request that the API server refused because no rule allows it.
type Refusal struct {
	// user is the account that sent the request.
	user string
	// rule would have allowed the request in the namespace, empty for all namespaces.
	rule      rbacv1.PolicyRule
	namespace string
}

// refusalText matches the API server's message if no rule allows a request. Refusals by
// admission, quotas or the escalation check have other messages, and rules in the
// operator's role would not help.
var refusalText = regexp.MustCompile(`User "([^"]+)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)

// Refusals returns the refused requests that an error reports, without duplicates.
func Refusals(err error) []Refusal {
	if !apierrors.IsForbidden(err) {
		return nil
	}
	var found []Refusal
	for _, words := range refusalText.FindAllStringSubmatch(err.Error(), -1) {
		r := Refusal{
			user: words[1], namespace: words[5],
			rule: rbacv1.PolicyRule{APIGroups: []string{words[4]}, Resources: []string{words[3]}, Verbs: []string{words[2]}},
		}
		if !slices.ContainsFunc(found, func(other Refusal) bool {
			return other.user == r.user && permissions.RuleText(other.rule) == permissions.RuleText(r.rule)
		}) {
			found = append(found, r)
		}
	}
	return found
}
