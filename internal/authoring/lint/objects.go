package lint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm"
	records "github.com/chartwright/chartwright/internal/release"
)

// identity is what no two objects of a cluster have in common.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

// seen is an object of one render.
type seen struct {
	chart.RenderedObject
	identity
	// cluster: it has no namespace; away: it is in one that the release does
	// not choose.
	cluster, away bool
	hook          bool
	at            location
}

// objects applies the rules that look at what the chart renders.
func (c *check) objects() error {
	clusterScoped, err := c.Kind.Chart.ClusterScoped()
	if err != nil {
		return err
	}
	known := map[identity]bool{}
	for _, t := range c.trials {
		rendered, err := c.render(t, first)
		if err != nil {
			return err
		}
		if t.offered {
			if err := c.size(rendered); err != nil {
				return err
			}
		}
		found := c.see(rendered, first, clusterScoped)
		var fresh []seen
		for _, o := range found {
			if !known[o.identity] {
				fresh = append(fresh, o)
			}
			known[o.identity] = true
		}
		for _, o := range fresh {
			c.allowed(t, o)
			c.definition(o)
			c.hook(o)
		}
		if err := c.names(t, fresh, clusterScoped); err != nil {
			return err
		}
	}
	return nil
}

// see returns the objects of a render, with the lines that they come from.
func (c *check) see(rendered *chart.Rendered, r release, clusterScoped func(schema.GroupKind) bool) []seen {
	var found []seen
	counts := map[string]int{}
	for i, o := range slices.Concat(rendered.Objects, rendered.Hooks) {
		s := seen{RenderedObject: o, hook: i >= len(rendered.Objects)}
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

// names compares the objects with those of other releases: of the same values
// in the same namespace, and of the same name in another.
func (c *check) names(t trial, objects []seen, clusterScoped func(schema.GroupKind) bool) error {
	if len(objects) == 0 {
		return nil
	}
	others := map[release]map[identity]bool{}
	for _, r := range []release{neighbor, namesake} {
		rendered, err := c.render(t, r)
		if errors.Is(err, chart.ErrRender) {
			// A chart that cares for the name of its release is not for this.
			return nil
		}
		if err != nil {
			return err
		}
		others[r] = map[identity]bool{}
		for _, o := range c.see(rendered, r, clusterScoped) {
			others[r][o.identity] = true
		}
	}
	for _, o := range objects {
		c.shared(o, others[neighbor][o.identity], others[namesake][o.identity])
	}
	return nil
}

// shared reports an object that a release of another name, or of another
// namespace, would have, too.
func (c *check) shared(o seen, byNeighbor, byNamesake bool) {
	what := o.GetKind() + " " + generic(o.name)
	switch {
	case o.name == "":
		// The API server gives it a name.
	case o.kind.Kind == "CustomResourceDefinition" && !apply.HasKeepPolicy(o):
		// It has a worse fault.
	case byNeighbor && (o.cluster || o.away):
		c.findf(ruleClusterName, o.at, "%s is the same for every release, wherever it is", what)
	case byNeighbor:
		c.findf(ruleName, o.at, "%s is the same for every release of a namespace", what)
	case byNamesake && c.Kind.Scope != "Cluster":
		c.findf(ruleClusterPlace, o.at, "%s is the same for releases of one name in any namespace", what)
	}
}

// size reports a release that is near the size at which it cannot be stored.
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
	c.findAsf(severity, ruleSize, location{"Chart.yaml", 0}, "the record of a release takes %d KiB of the %d KiB that there are", size>>10, records.MaxRecord>>10)
	return nil
}

// allowed reports an object that the allow block of the entry forbids, or
// would have to allow.
func (c *check) allowed(t trial, o seen) {
	if helm.Refused(o.RenderedObject, c.Kind.Allow, first.namespace, o.cluster) == "" {
		return
	}
	what := o.GetKind() + " " + generic(o.name)
	where, need := "in namespace "+generic(o.namespace), "allow.otherNamespaces: true"
	if o.cluster {
		where, need = "cluster-scoped", fmt.Sprintf("allow.clusterScoped to hold %s", o.kind)
	}
	switch {
	case !t.offered:
		c.findAsf(Info, ruleNotAllowed, o.at, "%s, which some values bring, is %s: it takes %s", what, where, need)
	case c.Alone:
		c.findAsf(Info, ruleNotAllowed, o.at, "%s is %s: an entry in watches.yaml takes %s", what, where, need)
	default:
		c.findf(ruleNotAllowed, o.at, "%s is %s: it takes %s", what, where, need)
	}
}

// definition reports a CRD that is deleted with its release.
func (c *check) definition(o seen) {
	if o.kind.Kind == "CustomResourceDefinition" && !o.hook && !apply.HasKeepPolicy(o) {
		c.findf(ruleCRD, o.at, "CustomResourceDefinition %s is deleted with the custom resource that brought it", generic(o.name))
	}
}

// hook applies the rules on hooks.
func (c *check) hook(o seen) {
	if !o.hook {
		return
	}
	events := strings.Join(o.Events, ", ")
	name := o.GetKind() + " " + generic(o.name)
	switch {
	case len(o.DeletePolicies) == 0:
		c.findf(ruleHookPolicy, o.at, "the %s hook %s has no delete policy: it stays after the release is gone", events, name)
	case !slices.Contains(o.DeletePolicies, "before-hook-creation") && o.name != "":
		c.findf(ruleHookLeft, o.at, "the %s hook %s stays if it fails, and keeps every retry from making it again", events, name)
	}
	if slices.Contains(o.Events, "pre-delete") || slices.Contains(o.Events, "post-delete") {
		c.findf(ruleDeleteHook, o.at, "the %s hook %s has to succeed before a custom resource can go", events, name)
	}
}
