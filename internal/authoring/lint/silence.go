package lint

import (
	"regexp"
	"slices"
	"strings"
)

// ignoreAnnotation is the annotation in Chart.yaml that silences rules in the
// whole chart.
const ignoreAnnotation = "chartwright.dev/lint-ignore"

// ignoreComment silences rules on its own lines and the next, with a reason for
// whoever reads it: {{/* chartwright:ignore random-value it is a salt */}}.
var ignoreComment = regexp.MustCompile(`\{\{-?\s*/\*\s*chartwright:ignore\s+([a-z-]+(?:\s*,\s*[a-z-]+)*)(?s:(?:\s.*?)?)\*/\s*-?\}\}`)

// silence takes out what the chart's author has silenced.
func (c *check) silence() {
	everywhere := c.named(c.Kind.Chart.Annotations()[ignoreAnnotation], c.chartfile(ignoreAnnotation))
	onLines := map[place][]string{}
	for _, file := range c.files {
		for _, at := range ignoreComment.FindAllStringSubmatchIndex(file.Text, -1) {
			first := 1 + strings.Count(file.Text[:at[0]], "\n")
			last := 1 + strings.Count(file.Text[:at[1]], "\n")
			names := c.named(file.Text[at[2]:at[3]], place{file.Path, first})
			for line := first; line <= last+1; line++ {
				onLines[place{file.Path, line}] = append(onLines[place{file.Path, line}], names...)
			}
		}
	}
	c.findings = slices.DeleteFunc(c.findings, func(f Finding) bool {
		return slices.Contains(everywhere, f.Rule) || slices.Contains(onLines[place{f.File, f.Line}], f.Rule)
	})
}

// named reads a list of rules, and tells of those that there are not.
func (c *check) named(list string, at place) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if _, exists := ruleNamed(name); !exists {
			c.findf(ruleUnknown, at, "%q is no rule", name)
		}
		names = append(names, name)
	}
	return names
}

// chartfile returns the line of Chart.yaml that has a text.
func (c *check) chartfile(text string) place {
	return place{"Chart.yaml", lineOf(string(c.Kind.Chart.File("Chart.yaml")), text)}
}

// lineOf returns the first line that has a text, and 1 where none has.
func lineOf(in, text string) int {
	before, _, found := strings.Cut(in, text)
	if !found {
		return 1
	}
	return 1 + strings.Count(before, "\n")
}
