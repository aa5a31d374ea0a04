package lint

import (
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/watches"
)

// needs records the access that an object needs, if the chart author's values render it.
// Other values may enable parts of the chart that its custom resources never use.
func (c *check) needs(t trial, o foundObject) {
	switch {
	case !t.authored, helm.Refused(o.RenderedObject, watches.Allow{}, first.namespace, o.cluster) == "":
	case o.cluster:
		c.need.ClusterScoped = append(c.need.ClusterScoped, o.kind.String())
	default:
		c.need.OtherNamespaces = true
	}
}

// allowBlock reports an entry without an allow block, with the block that the chart needs.
func (c *check) allowBlock() error {
	if !c.allowsEverything() {
		return nil
	}
	at := location{"Chart.yaml", 0}
	if !slices.ContainsFunc(c.trials, func(t trial) bool { return t.authored }) {
		c.findf(ruleNoAllow, at, "the entry of %s has no allow block; the block cannot be derived, because the chart renders neither with its defaults nor with an example", c.Kind.Kind)
		return nil
	}
	c.findf(ruleNoAllow, at, "the entry of %s has no allow block: with its defaults and examples, the chart needs allow: {%s}",
		c.Kind.Kind, strings.Join(watches.Allow{}.Missing(c.need), ", "))
	return nil
}
