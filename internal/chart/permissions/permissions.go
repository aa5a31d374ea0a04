package permissions

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/chartwright/chartwright/internal/catalog"
)

// Options describe the operator that uses the rules.
type Options struct {
	// Operator is the operator's name in a label of the role. The default is
	// chartwright.
	Operator string
	// Namespaced is true for an operator that serves some namespaces with Roles.
	Namespaced bool
	// InstallCRDs is true if the operator installs the CRDs of its kinds.
	InstallCRDs bool
	// ChartKinds is true if the operator serves the kinds of ChartKinds.
	ChartKinds bool
	// Analyzer keeps the results of analyses. If it is nil, every chart is analyzed.
	Analyzer *Analyzer
}

// Rule is a rule of the operator's role, and a short reason: "chart podset:
// templates/deployment.yaml".
type Rule struct {
	rbacv1.PolicyRule `json:",inline"`

	Why string `json:"why"`

	// Everywhere is true if the rule needs a ClusterRole even for an operator with
	// Roles: the watches entry declares it, and its resources are cluster-scoped.
	Everywhere bool `json:"everywhere,omitempty"`
}

// Unresolved is a line that may need permissions which could not be derived.
type Unresolved struct {
	// Kind is the kind of the custom resource, Where a file and a line, and What a
	// sentence that says what is unknown and what to do.
	Kind  string `json:"kind"`
	Where string `json:"where"`
	What  string `json:"what"`
	// File and Line are those of a template, if the line is in a chart. Line is 0 for
	// a whole template.
	File string `json:"-"`
	Line int    `json:"-"`
}

// String returns one line for users.
func (u Unresolved) String() string { return fmt.Sprintf("%s: %s: %s", u.Kind, u.Where, u.What) }

// Report holds the derived rules, and the lines whose permissions a user must declare.
type Report struct {
	Rules      []Rule       `json:"rules"`
	Unresolved []Unresolved `json:"unresolved"`

	options Options
}

// Derive derives the rules of an operator that serves the kinds.
func Derive(kinds []catalog.Kind, o Options) (*Report, error) {
	needs, served := deriveOwn(kinds, o)
	all, err := o.Analyzer.analyze(kinds)
	if err != nil {
		return nil, err
	}
	for i, kind := range kinds {
		if err := needs.chart(kind, all[i], served); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.Kind, err)
		}
	}
	return &Report{Rules: needs.result(), Unresolved: needs.unresolved, options: o}, nil
}

// Own returns the rules that an operator of the kinds needs regardless of their charts. In
// contrast to Derive, it renders nothing.
func Own(kinds []catalog.Kind, o Options) []Rule {
	needs, _ := deriveOwn(kinds, o)
	return needs.result()
}

func deriveOwn(kinds []catalog.Kind, o Options) (*needs, resources) {
	needs, served := &needs{namespaced: o.Namespaced}, resourcesOf(kinds)
	needs.own(kinds, served)
	if o.InstallCRDs {
		needs.installCRDs(kinds)
	}
	if o.ChartKinds {
		needs.chartKinds(o.InstallCRDs)
	}
	return needs, served
}

// Allowed returns the part of a rule that other rules do not allow, or nil, in as few
// rules as possible. It compares rules as the API server does.
func Allowed(have []rbacv1.PolicyRule, need rbacv1.PolicyRule) (missing []rbacv1.PolicyRule) {
	_, uncovered := validation.Covers(have, []rbacv1.PolicyRule{need})
	return joined(uncovered)
}

// joined merges rules with one verb that are otherwise equal.
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
