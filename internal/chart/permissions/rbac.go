package permissions

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chartwright/chartwright/internal/catalog"
)

// Options say for which operator the rules are.
type Options struct {
	// Operator is its name, a label of the role; empty means chartwright.
	Operator string
	// Namespaced asks for the rules of a Role, for an operator that serves a few
	// namespaces.
	Namespaced bool
	// InstallCRDs: it installs the definitions of its kinds itself.
	InstallCRDs bool
}

// Rule is what is to be allowed, and a short reason: "chart podset:
// templates/deployment.yaml".
type Rule struct {
	rbacv1.PolicyRule `json:",inline"`

	Why string `json:"why"`

	// Everywhere tells of an operator with Roles that this takes a ClusterRole: it
	// is declared, and of what has no namespace.
	Everywhere bool `json:"everywhere,omitempty"`
}

// Unresolved is a place that may need rights which could not be found out.
type Unresolved struct {
	// Kind is the custom resource's, Where a file and a line, and What a
	// sentence on what is not known and what to do.
	Kind  string `json:"kind"`
	Where string `json:"where"`
	What  string `json:"what"`
}

// String is the one line that a person reads.
func (u Unresolved) String() string { return fmt.Sprintf("%s: %s: %s", u.Kind, u.Where, u.What) }

// Report is what was found.
type Report struct {
	Rules      []Rule       `json:"rules"`
	Unresolved []Unresolved `json:"unresolved"`

	options Options
}

// Derive returns the rules of an operator that serves the kinds.
func Derive(kinds []catalog.Kind, o Options) (*Report, error) {
	needs := &needs{namespaced: o.Namespaced}
	served, err := resourcesOf(kinds)
	if err != nil {
		return nil, err
	}
	needs.own(kinds, served)
	if o.InstallCRDs {
		needs.installCRDs(kinds, served)
	}
	for i, kind := range kinds {
		c, err := newChartNeeds(needs, kind, served)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kinds[i].Kind, err)
		}
		if err := c.derive(); err != nil {
			return nil, fmt.Errorf("%s: %w", kinds[i].Kind, err)
		}
	}
	return &Report{Rules: needs.result(), Unresolved: needs.unresolved, options: o}, nil
}
