package permissions

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// The API server only allows an account to grant permissions that the account has. To
// create a Role, an account needs the rules of the Role. To create a binding, it needs
// the rules of the bound role, or the verb bind on this role.

// grants adds the permissions that the chart's roles and bindings grant, unless
// the operator impersonates another account.
func (c *chartNeeds) grants() {
	if c.impersonates() {
		return
	}
	shown := map[string]bool{}
	for _, object := range c.granting() {
		shown[object.GetKind()+" "+object.Source] = true
		switch object.GetKind() {
		case "Role", "ClusterRole":
			c.role(object)
		default:
			c.binding(object)
		}
	}
	for _, d := range c.facts.Documents {
		for _, o := range d.Objects {
			if grantingKind(o.Kind) && strings.HasPrefix(o.APIVersion, rbacv1.GroupName) && !shown[o.Kind+" "+d.Path] {
				c.unresolvedf(d.Path, o.File, o.Line, "none of the tested values render this %s, so its rules are unknown: add a file ci/*-values.yaml to the chart that renders it", o.Kind)
			}
		}
	}
}

func grantingKind(kind string) bool {
	return slices.Contains([]string{"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}, kind)
}

// granting returns the rendered roles and bindings.
func (c *chartNeeds) granting() []chart.RenderedObject {
	all := slices.Concat(c.objects, c.hooks)
	return slices.DeleteFunc(all, func(o chart.RenderedObject) bool {
		return o.GroupVersionKind().Group != rbacv1.GroupName || !grantingKind(o.GetKind()) ||
			c.namespaced && strings.HasPrefix(o.GetKind(), "Cluster")
	})
}

func (c *chartNeeds) role(object chart.RenderedObject) {
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
		// The API server rejects the object.
		return
	}
	if role.AggregationRule != nil {
		c.unresolvedf(object.Source, object.Source, 0, "to create an aggregated ClusterRole, the operator needs all permissions or the verb escalate on clusterroles: %s", declare("this", object.Source))
	}
	why := c.why([]string{object.Source}) + " grants it"
	for _, rule := range role.Rules {
		for _, one := range validation.BreakdownRule(rule) {
			words := slices.Concat(one.Verbs, one.APIGroups, one.Resources, one.NonResourceURLs)
			if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "*") }) {
				c.unresolvedf(object.Source, object.Source, 0, "%s %s grants a wildcard, for which the operator needs the same rule: %s", object.GetKind(), readableName(object.GetName()), declare("the rule", object.Source))
				continue
			}
			t := target{}
			if len(one.NonResourceURLs) > 0 {
				t.url = one.NonResourceURLs[0]
			} else {
				t.GroupResource = schema.GroupResource{Group: one.APIGroups[0], Resource: one.Resources[0]}
				t.names = strings.Join(c.fixed(one.ResourceNames), ",")
			}
			c.addTo(t, why, one.Verbs)
		}
	}
}

// fixed returns the names if they are literals in the templates, and therefore the same
// for every release. Otherwise it returns nil, so that the rule applies to all names.
func (c *chartNeeds) fixed(names []string) []string {
	for _, name := range names {
		if !slices.ContainsFunc(c.kind.Chart.Templates(), func(f analysis.File) bool { return strings.Contains(f.Text, name) }) {
			return nil
		}
	}
	return names
}

func readableName(name string) string {
	return strings.NewReplacer(probeRelease, "<release>", probeNamespace, "<namespace>").Replace(name)
}

func (c *chartNeeds) binding(object chart.RenderedObject) {
	var binding rbacv1.ClusterRoleBinding
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding); err != nil {
		// The API server rejects the object.
		return
	}
	ref := binding.RoleRef
	for _, role := range c.granting() {
		if role.GetKind() == ref.Kind && role.GetName() == ref.Name {
			// The operator has the rules of this role.
			return
		}
	}
	resource := schema.GroupResource{Group: rbacv1.GroupName, Resource: guess(ref.Kind)}
	names := c.fixed([]string{ref.Name})
	if names == nil {
		c.unresolvedf(object.Source, object.Source, 0, "it binds %s %s, which the chart does not render and which values may select: %s", ref.Kind, readableName(ref.Name), declare("the verb bind on it", object.Source))
		return
	}
	c.addNamed(c.why([]string{object.Source})+" binds it", resource, names, "bind")
}
