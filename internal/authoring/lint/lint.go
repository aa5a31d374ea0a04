package lint

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/watches"
)

// Target is a chart to look at.
type Target struct {
	// Path is where the chart is, for messages.
	Path string
	// Kind has the chart and what the operator does with it.
	Kind catalog.Kind
	// Alone: the chart is in no watches file, and Kind made up for it.
	Alone bool
}

// Alone returns a target for a chart that is in no watches file.
func Alone(at string, loaded *chart.Chart) Target {
	return Target{Path: at, Alone: true, Kind: catalog.Kind{
		Watch: watches.Watch{Group: "example.com", Version: "v1", Kind: "Chart", Chart: at},
		Chart: loaded,
	}}
}

// Finding is one thing that was found.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File is the path of the chart and of the file in it; Line is 0 where the
	// finding has none.
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
	// Why and Fix are the rule's.
	Why string `json:"why"`
	Fix string `json:"fix"`
}

// check is one look at a chart.
type check struct {
	Target
	files    []analysis.File
	findings []Finding
	// trials are the values that the chart is rendered with.
	trials []trial
}

// Run looks at a chart. The findings are in the order of files and lines. An
// error says that the look could not be taken.
func Run(target Target) ([]Finding, error) {
	c := &check{Target: target, files: target.Kind.Chart.Templates()}
	for _, step := range []func() error{c.values, c.helm, c.schema, c.calls, c.passwords, c.objects, c.permissions} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("%s: %w", target.Path, err)
		}
	}
	c.silence()
	for i := range c.findings {
		c.findings[i].File = path.Join(target.Path, c.findings[i].File)
	}
	slices.SortFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Message, b.Message))
	})
	return gather(slices.Compact(c.findings)), nil
}

// gather makes one of findings of one rule on one line, as a loop has them: the
// first, with the number of the others.
func gather(sorted []Finding) []Finding {
	var gathered []Finding
	for len(sorted) > 0 {
		f, n := sorted[0], 1
		for f.Line > 0 && n < len(sorted) && sorted[n].File == f.File && sorted[n].Line == f.Line && sorted[n].Rule == f.Rule && sorted[n].Severity == f.Severity {
			n++
		}
		if n > 1 {
			f.Message += fmt.Sprintf(", and %d more like it", n-1)
		}
		gathered, sorted = append(gathered, f), sorted[n:]
	}
	return gathered
}

// Broken returns the finding of a chart that cannot be loaded.
func Broken(at string, err error) Finding {
	return Finding{Rule: ruleHelm.Name, Severity: Error, File: at, Message: err.Error(), Why: ruleHelm.Why, Fix: ruleHelm.Fix}
}

// location is a line of a file of the chart.
type location struct {
	file string
	line int
}

// findf notes a finding with the severity of its rule.
func (c *check) findf(rule Rule, at location, format string, args ...any) {
	c.findAsf(rule.Severity, rule, at, format, args...)
}

// findAsf notes a finding that is worse, or less bad, than most of its rule.
func (c *check) findAsf(severity Severity, rule Rule, at location, format string, args ...any) {
	c.findings = append(c.findings, Finding{
		Rule: rule.Name, Severity: severity, File: at.file, Line: at.line,
		Message: fmt.Sprintf(format, args...), Why: rule.Why, Fix: rule.Fix,
	})
}

// file returns a template by its path.
func (c *check) file(name string) (analysis.File, bool) {
	i := slices.IndexFunc(c.files, func(file analysis.File) bool { return file.Path == name })
	if i < 0 {
		return analysis.File{}, false
	}
	return c.files[i], true
}

// ignoreAnnotation is the annotation in Chart.yaml that silences rules in the
// whole chart.
const ignoreAnnotation = "chartwright.dev/lint-ignore"

// ignoreComment silences rules on its own lines and the next, with a reason for
// whoever reads it: {{/* chartwright:ignore random-value it is a salt */}}.
var ignoreComment = regexp.MustCompile(`\{\{-?\s*/\*\s*chartwright:ignore\s+([a-z-]+(?:\s*,\s*[a-z-]+)*)(?s:(?:\s.*?)?)\*/\s*-?\}\}`)

// silence takes out what the chart's author has silenced.
func (c *check) silence() {
	everywhere := c.named(c.Kind.Chart.Annotations()[ignoreAnnotation], c.chartfile(ignoreAnnotation))
	onLines := map[location][]string{}
	for _, file := range c.files {
		for _, at := range ignoreComment.FindAllStringSubmatchIndex(file.Text, -1) {
			first := 1 + strings.Count(file.Text[:at[0]], "\n")
			last := 1 + strings.Count(file.Text[:at[1]], "\n")
			names := c.named(file.Text[at[2]:at[3]], location{file.Path, first})
			for line := first; line <= last+1; line++ {
				onLines[location{file.Path, line}] = append(onLines[location{file.Path, line}], names...)
			}
		}
	}
	c.findings = slices.DeleteFunc(c.findings, func(f Finding) bool {
		return slices.Contains(everywhere, f.Rule) || slices.Contains(onLines[location{f.File, f.Line}], f.Rule)
	})
}

// named reads a list of rules, and reports unknown ones.
func (c *check) named(list string, at location) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !slices.ContainsFunc(rules, func(rule Rule) bool { return rule.Name == name }) {
			c.findf(ruleUnknown, at, "%q is no rule", name)
		}
		names = append(names, name)
	}
	return names
}

// chartfile returns the line of Chart.yaml that has a text.
func (c *check) chartfile(text string) location {
	return location{"Chart.yaml", lineOf(string(c.Kind.Chart.File("Chart.yaml")), text)}
}

// lineOf returns the first line that has a text, and 1 where none has.
func lineOf(in, text string) int {
	before, _, found := strings.Cut(in, text)
	if !found {
		return 1
	}
	return 1 + strings.Count(before, "\n")
}

// Text writes findings for people, one a line as compilers do, and below what
// their rules are about, once each.
func Text(to io.Writer, findings []Finding) error {
	var out strings.Builder
	seen := map[string]bool{}
	for _, f := range findings {
		at := f.File
		if f.Line > 0 {
			at = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		fmt.Fprintf(&out, "%s: %s: %s [%s]\n", at, f.Severity, f.Message, f.Rule)
		seen[f.Rule] = true
	}
	for _, rule := range rules {
		if seen[rule.Name] {
			fmt.Fprintf(&out, "\n%s\n  why: %s\n  fix: %s\n", rule.Name, rule.Why, rule.Fix)
		}
	}
	_, err := io.WriteString(to, out.String())
	return err
}

// Count returns how many findings have a severity.
func Count(findings []Finding, severity Severity) int {
	n := 0
	for _, f := range findings {
		if f.Severity == severity {
			n++
		}
	}
	return n
}
