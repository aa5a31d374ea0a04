package permissions

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// KindChecker finds missing rules of one kind.
type KindChecker struct {
	all  *Checker
	kind catalog.Kind
	// removed: the kind was removed. Its missing rules do not repeat the check.
	removed bool

	// The other fields are guarded by all.mu.

	required []Rule
	// queued: the rules of the chart are derived, or will be.
	queued bool
	// complete: the derivation has ended.
	complete bool
	// underived is why the rules of the chart are unknown after the derivation.
	underived error
	missing   []Rule
	unknown   string
	// checked: missing and unknown are set.
	checked bool
}

// Derive requests that the rules of the chart are derived, once per process, after a sign
// that one of them is missing.
func (k *KindChecker) Derive() {
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	k.enqueue()
}

// enqueue requires all.mu.
func (k *KindChecker) enqueue() {
	if !k.queued {
		k.queued = true
		k.all.queue = append(k.all.queue, k)
		select {
		case k.all.queued <- struct{}{}:
		default: // a signal is already pending
		}
	}
}

// derive derives the rules that the kind requires. It takes between ten milliseconds and a
// minute, depending on the chart.
func (k *KindChecker) derive() {
	required, err := deriveRules(k.kind, k.all.Operator, k.all.namespaced(), k.all.Mapper)
	if err != nil {
		k.all.Logger.Error(err, "failed to derive the required rules", "kind", k.kind.Kind, "group", k.kind.Group)
	}
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	for _, known := range k.required {
		if !covers(required, known.PolicyRule) {
			required = append(required, known)
		}
	}
	k.required, k.underived, k.complete = required, err, true
}

// Missing returns the missing rules that every release of the kind in a namespace requires.
// known is false before the first check and, if no rule is missing so far, before the rules
// of the chart are derived.
func (k *KindChecker) Missing(namespace string) (rules string, known bool) {
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	rules = Text(slices.DeleteFunc(slices.Clone(k.missing), func(m Rule) bool { return !m.Always || !m.in(namespace) }))
	return rules, k.checked && (k.complete || rules != "")
}

// Refused returns the rules to add after a forbidden request as advice, and requests a
// check and the derivation of the chart's rules. Before the derivation, the advice may
// contain the refused verb only.
func (k *KindChecker) Refused(err error, account string) string {
	var own, others []string
	for _, refused := range Refusals(err) {
		if refused.user == account {
			others = append(others, permissions.RuleText(refused.rule))
			continue
		}
		for _, rule := range k.forbidden(refused) {
			own = append(own, permissions.RuleText(rule))
		}
	}
	var advice []string
	if len(own) > 0 {
		k.all.Check()
		advice = append(advice, "Add to the rules of the operator's role: "+strings.Join(own, ", "))
	}
	if len(others) > 0 {
		advice = append(advice, fmt.Sprintf("Add to the rules of %s: %s", account, strings.Join(others, ", ")))
	}
	return strings.Join(advice, ". ")
}

// forbidden returns the rules to add after a refused request, and adds the refused rule to
// the required rules of the kind.
func (k *KindChecker) forbidden(refused Refusal) []rbacv1.PolicyRule {
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	have, ok := k.all.have[allNamespaces]
	if !ok {
		have = k.all.have[refused.namespace]
	}
	k.enqueue()
	missing := missingFrom(k.required, have, refused.rule)
	if !covers(k.required, refused.rule) {
		k.required = append(k.required, Rule{Rule: permissions.Rule{PolicyRule: refused.rule, Why: "a request was forbidden"}})
	}
	return missing
}

// covers reports whether one of the rules allows all that another rule allows.
func covers(rules []Rule, other rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool {
		return len(permissions.Allowed([]rbacv1.PolicyRule{r.PolicyRule}, other)) == 0
	})
}
