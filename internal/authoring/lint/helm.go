package lint

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// lintNamespace is the namespace that Helm's lint renders for.
const lintNamespace = "default"

// helm adds what Helm's own lint says, with each set of values that the chart
// was rendered with of its author's will.
func (c *check) helm() error {
	seen := map[string]bool{}
	trials := slices.DeleteFunc(slices.Clone(c.trials), func(t trial) bool { return !t.offered })
	if len(trials) == 0 {
		trials = []trial{c.bare()}
	}
	for _, t := range trials {
		messages, err := c.Kind.Chart.Lint(t.copy(), lintNamespace)
		if err != nil {
			return err
		}
		for _, m := range messages {
			if seen[m.Path+m.Message] {
				continue
			}
			seen[m.Path+m.Message] = true
			severity := Warning
			if m.Error {
				severity = Error
			}
			// Helm puts each part of a long message on a line.
			text := strings.Join(strings.Fields(m.Message), " ")
			c.findAsf(severity, ruleHelm, c.locationIn(m.Path, text), "%s", text)
		}
	}
	return nil
}

// locationIn reads the line out of a message: template: box/templates/a.yaml:3:5: …
func (c *check) locationIn(file, message string) location {
	for _, match := range inTemplate.FindAllStringSubmatch(message, -1) {
		name := strings.TrimPrefix(match[1], c.Kind.Chart.Name()+"/")
		line, err := strconv.Atoi(match[2])
		if _, known := c.file(name); known && err == nil {
			return location{name, line}
		}
	}
	return location{file, 0}
}

var inTemplate = regexp.MustCompile(`([^\s:()"]+):(\d+)`)

// permissions applies the rule on permissions that cannot be derived.
func (c *check) permissions() error {
	if slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Rule == ruleSchemaUseless.Name || f.Rule == ruleExample.Name }) {
		// They come first, and nothing can be derived.
		return nil
	}
	report, err := permissions.Derive([]catalog.Kind{c.Kind}, permissions.Options{})
	if err != nil {
		return err
	}
	for _, u := range report.Unresolved {
		at := location{"Chart.yaml", 0}
		if u.Line > 0 {
			at = location{u.File, u.Line}
		}
		c.findf(ruleRights, at, "%s", u.What)
	}
	return nil
}
