package migrate

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// roleFile is where the operator-sdk keeps the operator's rights.
const roleFile = "config/rbac/role.yaml"

// roleFindings tells which rights the operator lacks.
func (p *Project) roleFindings() []Finding {
	f := finder{topic: topicOperator}
	text, exists := p.files[roleFile]
	if !exists || len(p.kinds) == 0 {
		return nil
	}
	report, err := permissions.Derive(p.kinds, permissions.Options{})
	if err != nil {
		f.addf(Unknown, roleFile, "the rights that the charts need cannot be derived: %v", err).Do = "mend that first"
		return f.findings
	}
	have := rulesOf(text)
	var lines strings.Builder
	missing, whole := 0, 0
	for _, rule := range report.Rules {
		lack := permissions.Allowed(have, rule.PolicyRule)
		if len(lack) == 0 {
			whole++
		}
		for _, one := range lack {
			missing++
			lines.WriteString("- " + permissions.RuleText(one) + " # " + rule.Why + "\n")
		}
	}
	generate := "or have the whole role derived: chartwright rbac --output-file " + roleFile
	if missing > 0 {
		found := f.addf(ToDo, roleFile, "%s of the %d that the operator and the charts need are missing, or not whole", counted(len(report.Rules)-whole, "rule", "rules"), len(report.Rules))
		found.Do, found.Lines = "add these rules; "+generate, lines.String()
	} else {
		f.addf(Works, roleFile, "it has all rights that the operator and the charts need").Do = generate + ", which has no wildcards"
	}
	for _, unresolved := range report.Unresolved {
		f.addf(ToDo, roleFile, "%s", unresolved).Do = "add the rule to the role, as today"
	}
	return f.findings
}

// rulesOf returns the rules of all roles in a file.
func rulesOf(text string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for document := range strings.SplitSeq(text, "\n---") {
		var role rbacv1.ClusterRole
		if yaml.Unmarshal([]byte(document), &role) == nil && strings.HasSuffix(role.Kind, "Role") {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}
