package lint

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/helm"
	records "github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// identity identifies an object in a cluster.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

// foundObject is an object of one render.
type foundObject struct {
	chart.RenderedObject
	identity
	// cluster is set if the object is cluster-scoped, away if it is in another
	// namespace than the release.
	cluster, away bool
	hook          bool
	at            location
}

// objects applies the rules on rendered objects.
func (c *check) objects() error {
	if len(c.trials) == 0 {
		return nil
	}
	own, err := c.survey(first)
	if err != nil {
		return err
	}
	if c.Kind.CRDs != watches.CRDsSkip {
		_, folder, err := c.Kind.Chart.CRDFolder()
		if err != nil {
			return err
		}
		for _, o := range c.identify(chart.Found{Objects: folder}, first, own.clusterScoped) {
			c.allowed(trial{authored: true}, o)
		}
	}
	var others []*survey
	for _, r := range []release{neighbor, namesake} {
		other, err := c.survey(r)
		if err != nil {
			return err
		}
		others = append(others, other)
	}
	for _, t := range c.trials {
		fresh, err := own.fresh(t)
		switch {
		case errors.Is(err, chart.ErrRender), errors.Is(err, chart.ErrInvalidValues):
			continue
		case err != nil:
			return err
		}
		for _, o := range fresh {
			c.allowed(t, o)
			c.definition(o)
			c.hook(o)
		}
		if err := c.names(t, fresh, others); err != nil {
			return err
		}
	}
	return nil
}

// identities reports objects of a render that the operator refuses: those with the same name, and
// those without a name.
func (c *check) identities(rendered *chart.Rendered) {
	seen, counts := sets.New[identity](), map[string]int{}
	for _, o := range rendered.Objects {
		of := o.Source + " " + o.GetKind()
		at := c.locate(o, counts[of])
		counts[of]++
		key := identity{o.GroupVersionKind().GroupKind(), cmp.Or(o.GetNamespace(), first.namespace), o.GetName()}
		switch {
		case key.name == "" && key.kind.Kind != "":
			c.findf(ruleIdentity, at, "a %s has no metadata.name", o.GetKind())
		case seen.Has(key):
			c.findf(ruleIdentity, at, "%s %s is rendered twice", o.GetKind(), generic(key.name))
		}
		seen.Insert(key)
	}
}

// loops reports loops that render objects without a separator.
func (c *check) loops() {
	for _, file := range c.files {
		for _, tree := range file.Trees {
			analysis.Walk(tree.Root, func(node parse.Node) bool {
				if loop, ok := node.(*parse.RangeNode); ok {
					if text := textOf(loop.List); objectLine.MatchString(text) && !strings.Contains(text, "---") {
						c.findf(ruleSeparator, location{file.Path, file.Line(loop.Position())}, "the objects of this loop have no separator")
					}
				}
				return true
			})
		}
	}
}

var objectLine = regexp.MustCompile(`(?m)^apiVersion:`)

// textOf returns the texts below a node, with a space for each output.
func textOf(node parse.Node) string {
	var text strings.Builder
	analysis.Walk(node, func(node parse.Node) bool {
		switch n := node.(type) {
		case *parse.TextNode:
			text.Write(n.Text)
		case *parse.ActionNode, *parse.TemplateNode:
			text.WriteString(" ")
		}
		return true
	})
	return text.String()
}

// identify returns objects with their locations in the templates.
func (c *check) identify(of chart.Found, r release, clusterScoped func(schema.GroupKind) bool) []foundObject {
	objects := slices.Concat(of.Objects, of.Hooks)
	found := make([]foundObject, 0, len(objects))
	counts := map[string]int{}
	for i, o := range objects {
		s := foundObject{RenderedObject: o, hook: i >= len(of.Objects)}
		s.kind = o.GroupVersionKind().GroupKind()
		s.name = o.GetName()
		s.cluster = clusterScoped(s.kind)
		if !s.cluster {
			s.namespace = cmp.Or(o.GetNamespace(), r.namespace)
			s.away = s.namespace != r.namespace
		}
		of := o.Source + " " + o.GetKind()
		s.at = c.locate(o, counts[of])
		counts[of]++
		found = append(found, s)
	}
	return found
}

// names compares the objects with those of two other releases with the same values:
// one in the same namespace, and one with the same name in another namespace.
func (c *check) names(t trial, objects []foundObject, others []*survey) error {
	if len(objects) == 0 {
		return nil
	}
	for _, other := range others {
		_, err := other.fresh(t)
		if errors.Is(err, chart.ErrRender) {
			// The chart depends on the name of its release and cannot be compared.
			return nil
		}
		if err != nil {
			return err
		}
	}
	for _, o := range objects {
		c.shared(o, others[0].known[o.identity], others[1].known[o.identity])
	}
	return nil
}

// shared reports an object that a release with another name, or in another
// namespace, would contain too.
func (c *check) shared(o foundObject, byNeighbor, byNamesake bool) {
	what := o.GetKind() + " " + generic(o.name)
	switch {
	case o.name == "":
		// The API server generates the name.
	case o.kind.Kind == "CustomResourceDefinition" && !apply.HasKeepPolicy(o):
		// Reported by definition, which is worse.
	case byNeighbor && (o.cluster || o.away):
		c.findf(ruleClusterName, o.at, "%s has the same name in every release of the cluster", what)
	case byNeighbor:
		c.findf(ruleName, o.at, "%s has the same name in every release of a namespace", what)
	case byNamesake && c.Kind.Scope != "Cluster":
		c.findf(ruleClusterPlace, o.at, "%s is the same for releases with the same name in different namespaces", what)
	}
}

// size reports a release whose record takes more than half of the maximum.
func (c *check) size(rendered *chart.Rendered) error {
	size, err := records.RecordSize(rendered)
	if err != nil {
		return err
	}
	if size < records.MaxRecord/2 {
		return nil
	}
	severity := Warning
	if size > records.MaxRecord {
		severity = Error
	}
	c.findAsf(severity, ruleSize, location{"Chart.yaml", 0}, "the release record has %d KiB, of at most %d KiB", size>>10, records.MaxRecord>>10)
	return nil
}

// allowed reports an object that the allow block of the entry does not allow.
func (c *check) allowed(t trial, o foundObject) {
	if c.allowsEverything() {
		c.needs(t, o)
		return
	}
	if helm.Refused(o.RenderedObject, c.Kind.Allow, first.namespace, o.cluster) == "" {
		return
	}
	what := o.GetKind() + " " + generic(o.name)
	where, need := "in namespace "+generic(o.namespace), "allow.otherNamespaces: true"
	if o.cluster {
		where, need = "cluster-scoped", fmt.Sprintf("%s in allow.clusterScoped", o.kind)
	}
	switch {
	case !t.authored:
		c.findAsf(Info, ruleNotAllowed, o.at, "%s is rendered with some values, and is %s: it needs %s", what, where, need)
	case c.Standalone:
		c.findAsf(Info, ruleNotAllowed, o.at, "%s is %s: an entry in watches.yaml needs %s", what, where, need)
	default:
		c.findf(ruleNotAllowed, o.at, "%s is %s: it needs %s", what, where, need)
	}
}

// definition reports a CRD that is deleted together with its release.
func (c *check) definition(o foundObject) {
	if o.kind.Kind == "CustomResourceDefinition" && !o.hook && !apply.HasKeepPolicy(o) {
		c.findf(ruleCRD, o.at, "CustomResourceDefinition %s is deleted together with its release", generic(o.name))
	}
}

// hook applies the rules on hooks.
func (c *check) hook(o foundObject) {
	if !o.hook {
		return
	}
	events := strings.Join(o.Events, ", ")
	name := o.GetKind() + " " + generic(o.name)
	switch {
	case len(o.DeletePolicies) == 0:
		c.findf(ruleHookPolicy, o.at, "the %s hook %s has no delete policy: it remains after the release is uninstalled", events, name)
	case !slices.Contains(o.DeletePolicies, "before-hook-creation") && o.name != "":
		c.findf(ruleHookLeft, o.at, "the %s hook %s remains if it fails, and prevents every retry from creating it again", events, name)
	}
	if slices.Contains(o.Events, "pre-delete") || slices.Contains(o.Events, "post-delete") {
		c.findf(ruleDeleteHook, o.at, "the %s hook %s must succeed before a custom resource can be deleted", events, name)
	}
}
