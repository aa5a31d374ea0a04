package lint

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// rights applies the rule on rights that cannot be derived.
func (c *check) rights() error {
	if slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Rule == ruleSchemaUseless || f.Rule == ruleExample }) {
		// They come first, and nothing can be derived.
		return nil
	}
	report, err := permissions.Derive([]catalog.Kind{c.Kind}, permissions.Options{})
	if err != nil {
		return err
	}
	for _, u := range report.Unresolved {
		at := place{"Chart.yaml", 0}
		if match := inChart.FindStringSubmatch(u.Where); match != nil {
			if line, err := strconv.Atoi(match[2]); err == nil {
				at = place{match[1], line}
			}
		}
		c.findf(ruleRights, at, "%s", u.What)
	}
	return nil
}

// inChart is how package rbac names a line of a chart.
var inChart = regexp.MustCompile(`^chart [^:]+: (.+):(\d+)$`)
