package permissions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/watches"
)

// apiVersionsOf returns the API version of an object in a template, with and without the
// kind, unless it depends on the values.
func apiVersionsOf(o analysis.Object) []string {
	switch {
	case o.APIVersion == "" || strings.Contains(o.APIVersion, analysis.Unknown):
		return nil
	case strings.Contains(o.Kind, analysis.Unknown):
		return []string{o.APIVersion}
	}
	return []string{o.APIVersion, o.APIVersion + "/" + o.Kind}
}

// addDocuments adds the objects in the syntax of templates to the rendered ones.
func (c *chartNeeds) addDocuments() {
	for _, d := range c.facts.Documents {
		if len(d.Objects) == 0 {
			for _, o := range d.Opaque {
				c.unresolvedf(d.Path, o.File, o.Line, "the output of %s depends on the values: %s", o.Text, declare("its objects", d.Path))
			}
		}
		for _, o := range d.Objects {
			c.addObject(d, o)
		}
	}
}

func (c *chartNeeds) addObject(d document, o analysis.Object) {
	path := d.Path
	if strings.Contains(o.Kind, analysis.Unknown) {
		readable := fmt.Sprintf("%q", strings.ReplaceAll(o.Kind, analysis.Unknown, "{{…}}"))
		c.unresolvedf(path, o.File, o.Line, "the kind of the object is %s: %s", readable, declare("what it can be", path))
		return
	}
	groups := c.groups(o)
	if len(groups) == 0 {
		c.unresolvedf(path, o.File, o.Line, "the group of %s depends on the values: %s", o.Kind, declare("its resource", path))
	}
	for _, group := range groups {
		u := c.use(schema.GroupKind{Group: group, Kind: o.Kind}, path)
		u.plain = u.plain || o.Plain
		u.hook = u.hook || o.Hook
		u.logged = u.logged || o.Hook && d.Logged
	}
}

// groups returns the possible groups of an object's kind. If the template contains none,
// these are the groups of Kubernetes, or of rendered objects and known CRDs.
func (c *chartNeeds) groups(o analysis.Object) []string {
	if o.APIVersion != "" {
		// The version can be unknown.
		group, version, ok := strings.Cut(o.APIVersion, "/")
		switch {
		case strings.Contains(group, analysis.Unknown):
		case !ok:
			return []string{""}
		case version != "":
			return []string{group}
		}
	}
	if groups := groupsOf(o.Kind); len(groups) > 0 {
		return groups
	}
	var groups []string
	for _, known := range slices.AppendSeq(slices.Collect(maps.Keys(c.resources)), maps.Keys(c.uses)) {
		if known.Kind == o.Kind && !slices.Contains(groups, known.Group) {
			groups = append(groups, known.Group)
		}
	}
	return groups
}

// lookups adds the permissions for lookup. If the operator impersonates an account,
// lookup uses the permissions of the account.
func (c *chartNeeds) lookups() {
	if c.impersonates() || c.kind.Allow.LookupScope() == watches.LookupNone {
		return
	}
	for _, l := range c.facts.Lookups {
		if !l.Versions.Complete || !l.Kinds.Complete {
			c.unresolvedf(l.File, l.File, l.Line, "the resource of the lookup depends on the values: %s and verbs: [get, list]", declare("it", l.File))
		}
		for _, version := range l.Versions.List {
			for _, kind := range l.Kinds.List {
				c.lookup(l, schema.FromAPIVersionAndKind(version, kind).GroupKind())
			}
		}
	}
}

func (c *chartNeeds) lookup(l lookup, kind schema.GroupKind) {
	r := c.resources.of(kind)
	if r.cluster && c.kind.Allow.LookupScope() != watches.LookupAll && kind.Kind != "Namespace" {
		// The operator rejects this lookup without a request to the API server.
		return
	}
	if r.cluster && c.namespaced {
		c.unresolvedf(l.File, l.File, l.Line, "%s is cluster-scoped, which no Role can allow", kind.Kind)
		return
	}
	var verbs []string
	for _, name := range l.Names.All() {
		switch name {
		case "":
			verbs = append(verbs, "list")
		case analysis.Unknown:
			verbs = append(verbs, "get", "list")
		default:
			verbs = append(verbs, "get")
		}
	}
	c.add(c.why([]string{l.File})+" (lookup)", r.GroupResource, verbs...)
}
