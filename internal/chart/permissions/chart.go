package permissions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// chartNeeds finds what the chart of one kind needs.
type chartNeeds struct {
	*needs
	kind      catalog.Kind
	resources resources
	crds      []chart.RenderedObject
	scan      *scan
	rendered  rendered
	// uses are the objects that the chart makes, by kind.
	uses map[schema.GroupKind]*use
}

// use is how a chart makes objects of a kind.
type use struct {
	// plain are objects of the release, and hooks those that run beside it.
	plain, hook bool
	// logged: the chart asks for what its hooks print.
	logged bool
	// sources are the templates that they come from.
	sources []string
}

func newChartNeeds(n *needs, kind catalog.Kind, served resources) (*chartNeeds, error) {
	c := &chartNeeds{needs: n, kind: kind, resources: maps.Clone(served), uses: map[schema.GroupKind]*use{}}
	var err error
	if c.crds, err = kind.Chart.CRDs(); err != nil {
		return nil, err
	}
	for _, definition := range c.crds {
		if err := c.resources.define(definition.Unstructured); err != nil {
			return nil, fmt.Errorf("%s: %w", definition.Source, err)
		}
	}
	if c.scan, err = scanChart(kind.Chart); err != nil {
		return nil, err
	}
	c.rendered, err = renderAll(kind, c.scan.apiVersions())
	return c, err
}

func (c *chartNeeds) derive() error {
	// A definition among the templates names resources, too.
	for _, object := range c.rendered.objects {
		if object.GroupVersionKind().GroupKind() == definitionKind {
			if err := c.resources.define(object.Unstructured); err != nil {
				return fmt.Errorf("%s: %w", object.Source, err)
			}
		}
	}
	c.ownCRDs()
	for _, object := range c.rendered.objects {
		u := c.use(object.GroupVersionKind().GroupKind(), object.Source)
		u.plain = true
	}
	for _, object := range c.rendered.hooks {
		u := c.use(object.GroupVersionKind().GroupKind(), object.Source)
		u.hook = true
		u.logged = u.logged || logged(object.Unstructured)
	}
	c.scanned()
	c.objects()
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

// logPolicy is the annotation by which a chart asks for what a hook prints.
const logPolicy = "helm.sh/hook-output-log-policy"

func logged(object *unstructured.Unstructured) bool { return object.GetAnnotations()[logPolicy] != "" }

// unresolvedf notes a place that a template gets to, unless the watches entry
// settles the template.
func (c *chartNeeds) unresolvedf(template, where, format string, args ...any) {
	if !c.kind.Settled(template) {
		c.needs.unresolvedf(c.kind.Kind, fmt.Sprintf("chart %s: %s", c.kind.Chart.Name(), where), format, args...)
	}
}

func at(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }

// declare says how a person settles what is not known of a template.
func declare(what, template string) string {
	return fmt.Sprintf("declare %s by the key rbac of the watches entry, with template: %s", what, template)
}

// why tells which templates need something.
func (c *chartNeeds) why(sources []string) string {
	sorted := slices.Sorted(slices.Values(sources))
	more := ""
	if len(sorted) > 3 {
		sorted, more = sorted[:3], " and others"
	}
	return fmt.Sprintf("chart %s: %s%s", c.kind.Chart.Name(), strings.Join(sorted, ", "), more)
}

// ownCRDs asks for what is done with the folder crds/, as far as that is done in
// the operator's own name.
func (c *chartNeeds) ownCRDs() {
	if len(c.crds) == 0 || c.kind.CRDs == watches.CRDsSkip || c.impersonates() {
		return
	}
	var names []string
	for _, definition := range c.crds {
		names = append(names, definition.GetName())
	}
	if c.namespaced {
		c.unresolvedf(c.crds[0].Source, c.crds[0].Source, "definitions are cluster-scoped, which no Role can allow: install them by hand, and say crds: Skip in the watches entry")
		return
	}
	c.addNamed(fmt.Sprintf("chart %s: crds/", c.kind.Chart.Name()), definitions, names, "get", "watch", "create", "patch")
}

// impersonates tells that objects are read and written in another account's
// name.
func (c *chartNeeds) impersonates() bool { return c.kind.ServiceAccountName != "" }

// objects asks for what is done with the objects that the chart makes.
func (c *chartNeeds) objects() {
	kinds := slices.SortedFunc(maps.Keys(c.uses), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	for _, kind := range kinds {
		u, r := c.uses[kind], c.resources.of(kind)
		if r.cluster && c.namespaced {
			c.unresolvedf(u.sources[0], u.sources[0], "%s is cluster-scoped, which no Role can allow: turn it off in the chart's values, or serve the kind with a ClusterRole, without --namespaced", kind.Kind)
			continue
		}
		why := c.why(u.sources)
		if r.guessed {
			why += fmt.Sprintf(" (%s is no kind of Kubernetes: its resource is taken to be %s)", kind.Kind, r.Resource)
		}
		if verbs := c.verbs(kind, u); len(verbs) > 0 {
			c.add(why, r.GroupResource, verbs...)
		}
	}
}

// verbs are what packages helm, apply and inventory do with objects of a kind.
func (c *chartNeeds) verbs(kind schema.GroupKind, u *use) []string {
	var verbs []string
	switch {
	case u.plain && c.impersonates():
		// Watched in the operator's own name; and deleted, where the account is
		// gone.
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
	}
	return verbs
}

var (
	jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}
	podKind = schema.GroupKind{Kind: "Pod"}
	// podMakers are the kinds of which package diagnose asks the pods.
	podMakers = []schema.GroupKind{
		{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "ReplicaSet"}, {Group: "apps", Kind: "StatefulSet"},
		{Group: "apps", Kind: "DaemonSet"}, jobKind,
	}
)

// diagnosis asks for what tells why an object is not ready, and what a hook has
// printed.
func (c *chartNeeds) diagnosis() {
	const whyNot = "why an object is not ready"
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
			c.add("what hooks print", pods, "list")
			c.add("what hooks print", podLogs, "get")
		}
	}
}
