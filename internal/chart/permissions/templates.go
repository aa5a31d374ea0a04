package permissions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/watches"
)

// templates holds the objects and lookups in the syntax of a chart's templates.
type templates struct {
	evaluator *analysis.Evaluator
	documents []*analysis.Document
	// lookups are all calls of the function lookup.
	lookups []analysis.Call
}

// readTemplates analyzes the templates of a chart and its subcharts.
func readTemplates(loaded *chart.Chart) (*templates, error) {
	defaults, err := loaded.Values()
	if err != nil {
		return nil, err
	}
	var enums leaves
	if err := enums.ofSchema(loaded.Schema(), true); err != nil {
		return nil, err
	}
	enum := func(path []string) ([]any, bool) {
		if leaf := enums.at(path); leaf != nil {
			return leaf.values, true
		}
		return nil, false
	}
	t := &templates{
		evaluator: analysis.NewEvaluator(loaded.Templates(), defaults, enum),
		lookups:   analysis.ReadCalls(loaded.Templates()).Named("lookup", 2),
	}
	t.documents = t.evaluator.Documents()
	return t, nil
}

// apiVersions returns the API versions in the templates, with and without the kind. A
// chart may render an object only if .Capabilities contains its API version.
func (t *templates) apiVersions() []string {
	var found []string
	for _, d := range t.documents {
		for _, o := range d.Objects() {
			if o.APIVersion == "" || strings.Contains(o.APIVersion, analysis.Unknown) {
				continue
			}
			found = append(found, o.APIVersion)
			if !strings.Contains(o.Kind, analysis.Unknown) {
				found = append(found, o.APIVersion+"/"+o.Kind)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// addDocuments adds the objects in the syntax of templates to the rendered ones.
func (c *chartNeeds) addDocuments() {
	for _, d := range c.templates.documents {
		path, objects := d.File.Path, d.Objects()
		if len(objects) == 0 {
			for _, o := range d.Opaque {
				c.unresolvedf(path, o.File, o.Line, "the output of %s depends on the values: %s", o.Text, declare("its objects", path))
			}
		}
		for _, o := range objects {
			c.addObject(d, o)
		}
	}
}

func (c *chartNeeds) addObject(d *analysis.Document, o analysis.Object) {
	path := d.File.Path
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
	for _, call := range c.templates.lookups {
		versions, kinds := c.templates.evaluator.Texts(call, 0), c.templates.evaluator.Texts(call, 1)
		if !versions.Complete || !kinds.Complete {
			c.unresolvedf(call.File.Path, call.File.Path, call.Line(), "the resource of the lookup depends on the values: %s and verbs: [get, list]", declare("it", call.File.Path))
		}
		for _, version := range versions.List {
			for _, kind := range kinds.List {
				c.lookup(call, schema.FromAPIVersionAndKind(version, kind).GroupKind())
			}
		}
	}
}

func (c *chartNeeds) lookup(call analysis.Call, kind schema.GroupKind) {
	r := c.resources.of(kind)
	if r.cluster && c.kind.Allow.LookupScope() != watches.LookupAll && kind.Kind != "Namespace" {
		// The operator rejects this lookup without a request to the API server.
		return
	}
	if r.cluster && c.namespaced {
		c.unresolvedf(call.File.Path, call.File.Path, call.Line(), "%s is cluster-scoped, which no Role can allow", kind.Kind)
		return
	}
	var verbs []string
	for _, name := range c.templates.evaluator.Texts(call, 3).All() {
		switch name {
		case "":
			verbs = append(verbs, "list")
		case analysis.Unknown:
			verbs = append(verbs, "get", "list")
		default:
			verbs = append(verbs, "get")
		}
	}
	c.add(c.why([]string{call.File.Path})+" (lookup)", r.GroupResource, verbs...)
}
