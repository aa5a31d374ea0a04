package permissions

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Allowed returns what of a rule the others lack, in as few rules as say so: nil
// where they allow all of it. They are read as the API server reads them.
func Allowed(have []rbacv1.PolicyRule, need rbacv1.PolicyRule) (missing []rbacv1.PolicyRule) {
	for _, single := range singles(need) {
		if !slices.ContainsFunc(have, func(rule rbacv1.PolicyRule) bool { return covers(rule, single) }) {
			missing = append(missing, single)
		}
	}
	return joined(missing)
}

// singles splits a rule into rules of one group, one resource, one name and one
// verb.
func singles(rule rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			all = append(all, rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{url}})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				one := rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
				if len(rule.ResourceNames) == 0 {
					all = append(all, one)
				}
				for _, name := range rule.ResourceNames {
					named := one
					named.ResourceNames = []string{name}
					all = append(all, named)
				}
			}
		}
	}
	return all
}

// covers tells whether a rule allows what a single one does.
func covers(rule, single rbacv1.PolicyRule) bool {
	if !has(rule.Verbs, single.Verbs[0]) {
		return false
	}
	if len(single.NonResourceURLs) > 0 {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return urlCovers(url, single.NonResourceURLs[0]) })
	}
	if !has(rule.APIGroups, single.APIGroups[0]) {
		return false
	}
	if !slices.ContainsFunc(rule.Resources, func(r string) bool { return resourceCovers(r, single.Resources[0]) }) {
		return false
	}
	return len(rule.ResourceNames) == 0 ||
		len(single.ResourceNames) > 0 && slices.Contains(rule.ResourceNames, single.ResourceNames[0])
}

// has tells whether a list has a word, or all words.
func has(list []string, word string) bool {
	return slices.Contains(list, word) || slices.Contains(list, rbacv1.VerbAll)
}

// resourceCovers knows "*" and, of subresources, "*/scale".
func resourceCovers(rule, resource string) bool {
	if rule == rbacv1.ResourceAll || rule == resource {
		return true
	}
	_, sub, ok := strings.Cut(resource, "/")
	return ok && rule == "*/"+sub
}

// urlCovers knows "/healthz/*".
func urlCovers(rule, url string) bool {
	prefix, ok := strings.CutSuffix(rule, "*")
	return rule == url || ok && strings.HasPrefix(url, prefix)
}

// joined puts the verbs of equal single rules together.
func joined(singles []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, single := range singles {
		at := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Equal(r.APIGroups, single.APIGroups) && slices.Equal(r.Resources, single.Resources) &&
				slices.Equal(r.ResourceNames, single.ResourceNames) && slices.Equal(r.NonResourceURLs, single.NonResourceURLs)
		})
		if at < 0 {
			rules = append(rules, single)
			continue
		}
		if !slices.Contains(rules[at].Verbs, single.Verbs[0]) {
			rules[at].Verbs = append(rules[at].Verbs, single.Verbs[0])
		}
	}
	return rules
}
