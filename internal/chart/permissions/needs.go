package permissions

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// needs collects permissions. All verbs on one resource become one rule, with all of
// their reasons.
type needs struct {
	namespaced bool
	entries    []*entry
	unresolved []Unresolved
}

// entry holds the verbs on one resource, or on a few objects of it.
type entry struct {
	target
	verbs []string
	whys  []string
}

// target is the resource, objects or URL of a rule.
type target struct {
	schema.GroupResource
	// names limits the rule to objects of these names, joined by commas.
	names string
	// url is a non-resource URL.
	url string
	// everywhere is true if the rule needs a ClusterRole, although the operator has
	// Roles for all other rules.
	everywhere bool
}

// add adds verbs on a resource.
func (n *needs) add(why string, resource schema.GroupResource, verbs ...string) {
	n.addTo(target{GroupResource: resource}, why, verbs)
}

// addNamed adds verbs on objects with these names.
func (n *needs) addNamed(why string, resource schema.GroupResource, names []string, verbs ...string) {
	n.addTo(target{GroupResource: resource, names: joinNames(names)}, why, verbs)
}

// joinNames returns names in the format of target.
func joinNames(names []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ",")
}

func (n *needs) addTo(t target, why string, verbs []string) {
	at := slices.IndexFunc(n.entries, func(e *entry) bool { return e.target == t })
	if at < 0 {
		at = len(n.entries)
		n.entries = append(n.entries, &entry{target: t})
	}
	e := n.entries[at]
	for _, verb := range verbs {
		if !slices.Contains(e.verbs, verb) {
			e.verbs = append(e.verbs, verb)
		}
	}
	if !slices.Contains(e.whys, why) {
		e.whys = append(e.whys, why)
	}
}

func (n *needs) addUnresolved(u Unresolved) {
	if !slices.Contains(n.unresolved, u) {
		n.unresolved = append(n.unresolved, u)
	}
}

// result returns the rules. Resources with the same verbs and reasons share a rule.
func (n *needs) result() []Rule {
	var rules []Rule
	for _, e := range n.entries {
		e.verbs = n.beyond(e)
		if len(e.verbs) == 0 {
			continue
		}
		rule := e.rule()
		at := slices.IndexFunc(rules, func(r Rule) bool {
			return e.url == "" && r.Everywhere == rule.Everywhere && r.Why == rule.Why && slices.Equal(r.APIGroups, rule.APIGroups) &&
				slices.Equal(r.Verbs, rule.Verbs) && slices.Equal(r.ResourceNames, rule.ResourceNames)
		})
		if at < 0 {
			rules = append(rules, rule)
			continue
		}
		rules[at].Resources = append(rules[at].Resources, rule.Resources...)
		slices.Sort(rules[at].Resources)
	}
	return rules
}

// beyond returns the verbs of an entry that no entry for all names contains.
func (n *needs) beyond(e *entry) []string {
	if e.names == "" {
		return e.verbs
	}
	for _, all := range n.entries {
		if all.GroupResource == e.GroupResource && all.names == "" && all.url == "" && all.everywhere == e.everywhere {
			return slices.DeleteFunc(slices.Clone(e.verbs), func(verb string) bool { return slices.Contains(all.verbs, verb) })
		}
	}
	return e.verbs
}

func (e *entry) rule() Rule {
	rule := Rule{Why: strings.Join(e.whys, "; "), Everywhere: e.everywhere}
	rule.Verbs = slices.SortedFunc(slices.Values(e.verbs), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
	})
	if e.url != "" {
		rule.NonResourceURLs = []string{e.url}
		return rule
	}
	rule.APIGroups, rule.Resources = []string{e.Group}, []string{e.Resource}
	if e.names != "" {
		rule.ResourceNames = strings.Split(e.names, ",")
	}
	return rule
}

// verbOrder is the usual order of verbs.
var verbOrder = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

func rank(verb string) int {
	if at := slices.Index(verbOrder, verb); at >= 0 {
		return at
	}
	return len(verbOrder)
}
