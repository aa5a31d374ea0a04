package operator

import (
	"regexp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// refusal is a request that the API server did not allow.
type refusal struct {
	// user is in whose name the request was made.
	user string
	// rule would have allowed it, in the namespace, empty for all.
	rule      rbacv1.PolicyRule
	namespace string
}

// refusalText is how the API server says that nobody allowed a request. What
// admission, quotas or the escalation check refuse is forbidden too, and says
// otherwise: no rule of the operator's would help.
var refusalText = regexp.MustCompile(`User "([^"]+)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)

// refusals reads the requests out of an error, each once.
func refusals(err error) []refusal {
	if !apierrors.IsForbidden(err) {
		return nil
	}
	var found []refusal
	for _, words := range refusalText.FindAllStringSubmatch(err.Error(), -1) {
		r := refusal{
			user: words[1], namespace: words[5],
			rule: rbacv1.PolicyRule{APIGroups: []string{words[4]}, Resources: []string{words[3]}, Verbs: []string{words[2]}},
		}
		if !slices.ContainsFunc(found, func(other refusal) bool {
			return other.user == r.user && permissions.RuleText(other.rule) == permissions.RuleText(r.rule)
		}) {
			found = append(found, r)
		}
	}
	return found
}
