package lint

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// lintNamespace is the release namespace in renders of Helm's lint.
const lintNamespace = "default"

// helm adds the findings of Helm's own lint, with the defaults and each example of
// the chart author.
func (c *check) helm() error {
	seen := map[string]bool{}
	trials := slices.DeleteFunc(slices.Clone(c.trials), func(t trial) bool { return !t.authored })
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
			// Helm splits long messages into lines.
			text := strings.Join(strings.Fields(m.Message), " ")
			c.findAsf(severity, ruleHelm, c.locationIn(m.Path, text), "%s", text)
		}
	}
	return nil
}

// locationIn parses the location in a message of Helm, such as
// "template: box/templates/a.yaml:3:5: …". Without a location, it returns the file.
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

// permissions reports objects whose permissions cannot be derived.
func (c *check) permissions() error {
	if slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Rule == ruleSchemaUseless.Name || f.Rule == ruleExample.Name }) {
		// These are already reported, and no permissions can be derived.
		return nil
	}
	report, err := permissions.Derive([]catalog.Kind{c.Kind}, permissions.Options{Analyzer: &permissions.Analyzer{Store: c.store}})
	if err != nil {
		return err
	}
	for _, u := range report.Unresolved {
		at := location{"Chart.yaml", 0}
		if u.Line > 0 {
			at = location{u.File, u.Line}
		}
		c.findf(rulePermissions, at, "%s", u.What)
	}
	return nil
}
