package lint

import (
	"slices"
	"strings"
)

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
