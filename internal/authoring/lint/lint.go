package lint

import (
	"cmp"
	"fmt"
	"path"
	"slices"

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
func Alone(at string, chart *chart.Chart) Target {
	return Target{Path: at, Alone: true, Kind: catalog.Kind{
		Watch: watches.Watch{Group: "example.com", Version: "v1", Kind: "Chart", Chart: at},
		Chart: chart,
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
	for _, step := range []func() error{c.values, c.helm, c.schema, c.calls, c.passwords, c.objects, c.rights} {
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
	return gather(c.findings), nil
}

// gather makes one of findings of one rule on one line, as a loop has them: the
// first, with the number of the others.
func gather(sorted []Finding) []Finding {
	var gathered []Finding
	for i := 0; i < len(sorted); {
		f, others := sorted[i], map[string]bool{}
		for i++; i < len(sorted) && sorted[i].File == f.File && sorted[i].Line == f.Line && sorted[i].Rule == f.Rule && sorted[i].Severity == f.Severity; i++ {
			if sorted[i].Message == f.Message {
				continue
			}
			if f.Line == 0 {
				gathered = append(gathered, f)
				f = sorted[i]
				continue
			}
			others[sorted[i].Message] = true
		}
		if len(others) > 0 {
			f.Message += fmt.Sprintf(", and %d more like it", len(others))
		}
		gathered = append(gathered, f)
	}
	return gathered
}

// Broken returns the finding of a chart that cannot be loaded.
func Broken(at string, err error) Finding {
	rule, _ := ruleNamed(ruleHelm)
	return Finding{Rule: rule.Name, Severity: Error, File: at, Message: err.Error(), Why: rule.Why, Fix: rule.Fix}
}

// place is a line of a file of the chart.
type place struct {
	file string
	line int
}

// findf notes a finding with the severity of its rule.
func (c *check) findf(name string, at place, format string, args ...any) {
	rule, _ := ruleNamed(name)
	c.findAsf(rule.Severity, name, at, format, args...)
}

// findAsf notes a finding that is worse, or less bad, than most of its rule.
func (c *check) findAsf(severity Severity, name string, at place, format string, args ...any) {
	rule, _ := ruleNamed(name)
	c.findings = append(c.findings, Finding{
		Rule: name, Severity: severity, File: at.file, Line: at.line,
		Message: fmt.Sprintf(format, args...), Why: rule.Why, Fix: rule.Fix,
	})
}

// file returns a template by its path.
func (c *check) file(name string) (analysis.File, bool) {
	for _, file := range c.files {
		if file.Path == name {
			return file, true
		}
	}
	return analysis.File{}, false
}
