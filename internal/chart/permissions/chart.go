package permissions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/guard"
	"github.com/chartwright/chartwright/internal/watches"
)

// chartNeeds finds the permissions that the chart of one kind needs.
type chartNeeds struct {
	*needs
	kind      catalog.Kind
	resources resources
	facts     *facts
	// crds, objects and hooks are those of the facts.
	crds, objects, hooks []chart.RenderedObject
	// uses holds the uses of kinds by the chart.
	uses map[schema.GroupKind]*use
}

// use describes how a chart uses a kind.
type use struct {
	// plain is true if objects of the release are of the kind, and hook if hooks are.
	plain, hook bool
	// logged is true if the chart requests the logs of its hooks.
	logged bool
	// sources are the templates that render the objects.
	sources []string
}

// chart adds the permissions that the chart of a kind needs, by the facts about it.
func (n *needs) chart(kind catalog.Kind, f *facts, served resources) error {
	c := &chartNeeds{
		needs: n, kind: kind, resources: maps.Clone(served), facts: f, uses: map[schema.GroupKind]*use{},
		crds: restored(f.CRDs), objects: restored(f.Objects), hooks: restored(f.Hooks),
	}
	if kind.CRDs != watches.CRDsSkip {
		c.objects = slices.Concat(c.objects, restored(f.CRDFolder))
	}
	// Templates can render CRDs, too.
	for _, object := range slices.Concat(c.crds, c.objects) {
		if object.GroupVersionKind().GroupKind() == definitionKind {
			if err := c.resources.define(object.Unstructured); err != nil {
				return fmt.Errorf("%s: %w", object.Source, err)
			}
		}
	}
	c.ownCRDs()
	for _, object := range c.objects {
		c.use(object.GroupVersionKind().GroupKind(), object.Source).plain = true
		if object.GetAnnotations()[api.AnnotationClaims] != "" && !c.impersonates() {
			c.add("claims of StatefulSets", claims, "list", "delete")
		}
		if policy, _, _ := unstructured.NestedString(object.Object, whenDeleted...); policy == "Delete" && !c.impersonates() {
			c.add("claims of StatefulSets", claims, "get", "list", "patch")
		}
	}
	for _, object := range c.hooks {
		u := c.use(object.GroupVersionKind().GroupKind(), object.Source)
		u.hook = true
		u.logged = u.logged || logged(object.Unstructured)
	}
	c.addDocuments()
	c.addUses()
	c.diagnosis()
	c.grants()
	c.lookups()
	c.declared()
	return nil
}

var definitionKind = schema.GroupKind{Group: groupAPIExtensions, Kind: "CustomResourceDefinition"}

func (c *chartNeeds) use(kind schema.GroupKind, source string) *use {
	u := c.uses[kind]
	if u == nil {
		u = &use{}
		c.uses[kind] = u
	}
	if !slices.Contains(u.sources, source) {
		u.sources = append(u.sources, source)
	}
	return u
}

func logged(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[analysis.HookLogPolicy] != ""
}

// unresolvedf adds an Unresolved for a line of a template, or for the whole template if
// the line is 0, unless the key rbac of the watches entry covers the rendered template.
func (c *chartNeeds) unresolvedf(template, file string, line int, format string, args ...any) {
	if c.kind.CoversTemplate(template) {
		return
	}
	where := fmt.Sprintf("chart %s: %s", c.kind.Chart.Name(), file)
	if line > 0 {
		where += fmt.Sprintf(":%d", line)
	}
	c.addUnresolved(Unresolved{Kind: c.kind.Kind, Where: where, File: file, Line: line, What: fmt.Sprintf(format, args...)})
}

// declare returns the advice to declare the permissions of a template in the watches
// entry.
func declare(what, template string) string {
	return fmt.Sprintf("declare %s by the key rbac of the watches entry, with template: %s", what, template)
}

// why returns the reason of a rule: the templates that need the rule.
func (c *chartNeeds) why(sources []string) string {
	sorted := slices.Sorted(slices.Values(sources))
	more := ""
	if len(sorted) > 3 {
		sorted, more = sorted[:3], " and others"
	}
	return fmt.Sprintf("chart %s: %s%s", c.kind.Chart.Name(), strings.Join(sorted, ", "), more)
}

// ownCRDs adds the permissions to install the folder crds/, which the operator
// needs unless it impersonates another account.
func (c *chartNeeds) ownCRDs() {
	if len(c.crds) == 0 || c.kind.CRDs == watches.CRDsSkip || c.impersonates() {
		return
	}
	var names []string
	for _, definition := range c.crds {
		names = append(names, definition.GetName())
	}
	if c.namespaced {
		c.unresolvedf(c.crds[0].Source, c.crds[0].Source, 0, "CRDs are cluster-scoped, which no Role can allow: install them manually, and set crds: Skip in the watches entry")
		return
	}
	c.addNamed(fmt.Sprintf("chart %s: crds/", c.kind.Chart.Name()), definitions, names, "get", "watch", "create", "patch")
}

// impersonates reports whether the operator reads and writes the objects with another
// service account.
func (c *chartNeeds) impersonates() bool { return c.kind.ServiceAccountName != "" }

// addUses adds the permissions on the objects of the chart.
func (c *chartNeeds) addUses() {
	kinds := slices.SortedFunc(maps.Keys(c.uses), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	for _, kind := range kinds {
		u, r := c.uses[kind], c.resources.of(kind)
		if r.cluster && c.namespaced {
			c.unresolvedf(u.sources[0], u.sources[0], 0, "%s is cluster-scoped, which no Role can allow: disable it in the chart's values, or serve the kind with a ClusterRole, without --namespaced", kind.Kind)
			continue
		}
		why := c.why(u.sources) + r.assumption(kind.Kind)
		if verbs := c.verbs(kind, u); len(verbs) > 0 {
			c.add(why, r.GroupResource, verbs...)
		}
	}
}

// verbs returns the verbs that packages helm, apply and inventory use on objects of a
// kind.
func (c *chartNeeds) verbs(kind schema.GroupKind, u *use) []string {
	var verbs []string
	switch {
	case u.plain && c.impersonates():
		// The operator watches the objects with its own account, and deletes them if
		// the other account does not exist.
		verbs = append(verbs, "get", "list", "watch", "delete")
	case u.plain:
		verbs = append(verbs, objectVerbs...)
	}
	runs := kind == jobKind || kind == podKind
	switch {
	case u.hook && c.impersonates() && runs:
		verbs = append(verbs, "get")
	case u.hook && !c.impersonates():
		verbs = append(verbs, "get", "create", "delete")
		if runs {
			verbs = append(verbs, "watch")
		}
		if (guard.Rules{Kinds: sets.New(c.kind.Guard.GroupKinds()...)}).Kind(kind) != "" {
			// An uninstall labels the object and leaves it.
			verbs = append(verbs, "patch")
		}
	}
	return verbs
}

var (
	jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}
	podKind = schema.GroupKind{Kind: "Pod"}

	statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	// podMakers are the kinds whose pods package diagnose reads.
	podMakers = []schema.GroupKind{
		{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "ReplicaSet"}, {Group: "apps", Kind: "StatefulSet"},
		{Group: "apps", Kind: "DaemonSet"}, jobKind,
	}
)

// diagnosis adds the permissions to diagnose objects that are not ready, and to read the
// logs of hooks.
func (c *chartNeeds) diagnosis() {
	const whyNot = "diagnosis of objects that are not ready"
	if c.uses[podMakers[0]] != nil {
		c.add(whyNot, replicaSets, "list")
	}
	for _, kind := range podMakers {
		if c.uses[kind] != nil {
			c.add(whyNot, pods, "list")
		}
	}
	for _, u := range c.uses {
		if u.hook && u.logged && !c.impersonates() {
			c.add("logs of hooks", pods, "list")
			c.add("logs of hooks", podLogs, "get")
		}
	}
}

// objectVerbs are the verbs that the operator uses on the objects of a release.
var objectVerbs = []string{"get", "list", "watch", "create", "patch", "delete"}

// declared adds the rules that the watches entry declares.
func (c *chartNeeds) declared() {
	const why = "watches.yaml"
	for _, rule := range c.kind.RBAC {
		verbs := rule.Verbs
		if len(verbs) == 0 {
			verbs = objectVerbs
		}
		for _, url := range rule.NonResourceURLs {
			c.addTo(target{url: url, everywhere: c.namespaced}, why, verbs)
		}
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				t := target{GroupResource: schema.GroupResource{Group: group, Resource: name}, names: joinNames(rule.ResourceNames)}
				t.everywhere = c.namespaced && c.clusterScoped(t.GroupResource)
				c.addTo(t, why, verbs)
			}
		}
	}
}

// clusterScoped reports whether a resource in the watches entry is cluster-scoped.
func (c *chartNeeds) clusterScoped(resource schema.GroupResource) bool {
	name, _, _ := strings.Cut(resource.Resource, "/")
	for _, known := range c.resources {
		if known.Group == resource.Group && known.Resource == name {
			return known.cluster
		}
	}
	return chart.ClusterScopedResource(resource)
}
