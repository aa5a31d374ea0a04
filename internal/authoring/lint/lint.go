package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/chart/permissions"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/watches"
)

// Target is a chart to check.
type Target struct {
	// Path is the path of the chart, for messages.
	Path string
	// Kind is the kind whose chart is checked.
	Kind catalog.Kind
	// Standalone is set if the chart is in no watches file. Kind is then a placeholder.
	Standalone bool
}

// Standalone returns a target for a chart that is in no watches file.
func Standalone(at string, loaded *chart.Chart) Target {
	return Target{Path: at, Standalone: true, Kind: catalog.Kind{
		Watch: watches.Watch{Group: "example.com", Version: "v1", Kind: "Chart", Chart: at},
		Chart: loaded,
	}}
}

// Finding is one problem in a chart.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File is the path of the chart joined with that of the file in it. Line is 0
	// if it is not known.
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
	// Why and Fix are copied from the rule.
	Why string `json:"why"`
	Fix string `json:"fix"`
}

// check collects the findings about one chart.
type check struct {
	Target
	files    []analysis.File
	findings []Finding
	// trials are the sets of values with which the chart is rendered.
	trials []trial
	store  permissions.Store
	// need is the access outside the namespace of the release that the chart needs, if the
	// entry has no allow block.
	need watches.Allow
}

// Run checks a chart. The findings are sorted by file and line. An error means that
// the chart could not be checked. The store keeps findings for later runs, unless it is
// nil.
func Run(target Target, store permissions.Store) ([]Finding, error) {
	key, err := target.key()
	if err != nil {
		return nil, err
	}
	findings, known := stored(store, key)
	if !known {
		c := &check{Target: target, files: target.Kind.Chart.Templates(), store: store}
		if findings, err = c.run(); err != nil {
			return nil, fmt.Errorf("%s: %w", target.Path, err)
		}
		if data, err := json.Marshal(findings); err == nil && store != nil {
			store.Put(key, data)
		}
	}
	for i := range findings {
		findings[i].File = path.Join(target.Path, findings[i].File)
	}
	return findings, nil
}

// key identifies the findings about a chart, without its path.
func (t Target) key() (string, error) {
	entry, err := json.Marshal(t.Kind.Watch)
	if err != nil {
		return "", err
	}
	overrides, err := json.Marshal(t.Kind.Overrides)
	if err != nil {
		return "", err
	}
	return "lint " + values.DigestOf(t.Kind.Chart.FilesDigest(), string(entry), string(overrides), strconv.FormatBool(t.Standalone), strconv.FormatBool(t.allowsEverything()), strconv.FormatBool(t.Kind.IntegerNumbers())), nil
}

// allowsEverything reports whether the target is an entry of the operator-sdk without an
// allow block. The JSON of an entry does not contain this.
func (t Target) allowsEverything() bool { return !t.Standalone && t.Kind.Allow.Everything }

// stored returns the findings in a store, and false without findings.
func stored(store permissions.Store, key string) (findings []Finding, known bool) {
	if store == nil {
		return nil, false
	}
	data, ok := store.Get(key)
	return findings, ok && json.Unmarshal(data, &findings) == nil
}

// run returns the findings, with files relative to the chart.
func (c *check) run() ([]Finding, error) {
	for _, step := range []func() error{c.values, c.helm, c.schema, c.calls, c.passwords, c.objects, c.numbers, c.allowBlock, c.permissions} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	c.silence()
	slices.SortFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Message, b.Message))
	})
	return gather(slices.Compact(c.findings)), nil
}

// gather merges findings of one rule on the same line, such as a loop causes, into
// the first one, and adds the number of the others to its message.
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

// Broken returns the finding for a chart that cannot be loaded.
func Broken(at string, err error) Finding {
	return Finding{Rule: ruleHelm.Name, Severity: Error, File: at, Message: err.Error(), Why: ruleHelm.Why, Fix: ruleHelm.Fix}
}

// location is a line in a file of the chart.
type location struct {
	file string
	line int
}

// findf adds a finding with the severity of its rule.
func (c *check) findf(rule Rule, at location, format string, args ...any) {
	c.findAsf(rule.Severity, rule, at, format, args...)
}

// findAsf adds a finding with another severity than that of its rule.
func (c *check) findAsf(severity Severity, rule Rule, at location, format string, args ...any) {
	c.findings = append(c.findings, Finding{
		Rule: rule.Name, Severity: severity, File: at.file, Line: at.line,
		Message: fmt.Sprintf(format, args...), Why: rule.Why, Fix: rule.Fix,
	})
}

// file returns the template with a path.
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

// ignoreComment matches a comment that silences rules on its own lines and the next
// one. It may give a reason: {{/* chartwright:ignore random-value it is a salt */}}.
var ignoreComment = regexp.MustCompile(`\{\{-?\s*/\*\s*chartwright:ignore\s+([a-z-]+(?:\s*,\s*[a-z-]+)*)(?s:(?:\s.*?)?)\*/\s*-?\}\}`)

// silence removes the findings that the chart author has silenced.
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

// named parses a list of rule names, and reports unknown ones.
func (c *check) named(list string, at location) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !slices.ContainsFunc(rules, func(rule Rule) bool { return rule.Name == name }) {
			c.findf(ruleUnknown, at, "rule %q does not exist", name)
		}
		names = append(names, name)
	}
	return names
}

// chartfile returns the line of Chart.yaml that contains a text.
func (c *check) chartfile(text string) location {
	return location{"Chart.yaml", lineOf(string(c.Kind.Chart.File("Chart.yaml")), text)}
}

// lineOf returns the first line that contains a text, or 1 without a match.
func lineOf(in, text string) int {
	before, _, found := strings.Cut(in, text)
	if !found {
		return 1
	}
	return 1 + strings.Count(before, "\n")
}

// Text writes findings in the format of compilers, one per line, followed by the
// explanations of their rules.
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
