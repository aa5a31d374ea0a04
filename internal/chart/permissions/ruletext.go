package permissions

import (
	"encoding/json"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// RuleText writes a rule as an item of the rules of a Role, on one line.
func RuleText(rule rbacv1.PolicyRule) string {
	var fields []string
	for _, field := range []struct {
		name  string
		words []string
	}{
		{"apiGroups", rule.APIGroups}, {"resources", rule.Resources}, {"resourceNames", rule.ResourceNames},
		{"nonResourceURLs", rule.NonResourceURLs}, {"verbs", rule.Verbs},
	} {
		if len(field.words) > 0 {
			quoted, err := json.Marshal(field.words)
			if err != nil {
				// Texts always can be.
				continue
			}
			fields = append(fields, field.name+": "+strings.ReplaceAll(string(quoted), `","`, `", "`))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
