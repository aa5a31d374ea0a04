package migrate

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// watchesFindings tells what is wrong with the watches file.
func (p *Project) watchesFindings() []Finding {
	f := finder{topic: topicProject}
	for _, problem := range p.problems {
		message, _, _ := strings.Cut(problem.Message, ": expected one of")
		found := f.addf(Breaks, at(problem.File, problem.Line), "%s", message)
		found.Do = "the operator does not start before that is mended"
		switch {
		case strings.HasPrefix(message, "unknown key"):
			found.Do = "remove the key: the operator-sdk passes over what it does not know, so that it was never in force"
		case strings.Contains(message, "is bound twice"):
			found.Do = "make one entry of the two, with the other version among its versions; the CRD has the list"
		}
	}
	if len(p.kinds) > 0 {
		f.addf(Works, watchesFile, "%s can be loaded, with %s", counted(len(p.kinds), "kind", "kinds"), counted(len(p.kinds), "chart", "charts"))
	}
	return f.findings
}

// entryFindings tells what becomes of the keys of an entry.
func (p *Project) entryFindings(kind catalog.Kind) ([]Finding, error) {
	f := finder{topic: topicOf(kind)}
	where := at(watchesFile, kind.Line)
	if kind.Selector != nil {
		f.addf(Changes, where, "the selector counts. The operator-sdk since 1.34 passes over it where WATCH_NAMESPACE is empty, and serves resources without these labels, too").
			Do = "look for resources that lack the labels, which --live does, and label them"
	}
	if kind.ReconcilePeriod != nil {
		f.addf(Changes, where, "reconcilePeriod %s: every object is applied again that often. Nothing needs it to be repaired or upgraded, but a chart that uses lookup", kind.ReconcilePeriod.Duration).
			Do = "remove the key, unless the chart uses lookup"
	}
	if kind.DryRunOption != "" {
		f.addf(Changes, where, "dryRunOption has no effect: lookup always works, and no dry run is needed to know whether to upgrade")
	}
	if kind.WatchDependentResources != nil && !*kind.WatchDependentResources {
		f.addf(Works, where, "watchDependentResources: false: damaged objects are left as they are, as by drift.mode: Disabled")
	}
	f.overrides(where, kind)
	return f.findings, nil
}

// overrides compares overrideValues as texts, which they are to the
// operator-sdk, with what they are here.
func (f *finder) overrides(where string, kind catalog.Kind) {
	if len(kind.OverrideValues) == 0 {
		return
	}
	var typed, variables []string
	revision := false
	for _, path := range slices.Sorted(maps.Keys(kind.OverrideValues)) {
		text, err := values.Expand(kind.OverrideValues[path])
		if err != nil {
			// What is wrong with the file says so.
			continue
		}
		variables = append(variables, variablesOf(kind.OverrideValues[path])...)
		if value, found := valueAt(kind.Overrides, path); found && !reflect.DeepEqual(value, text) {
			typed = append(typed, path+": "+becomes(kind.OverrideValues[path], value))
			revision = revision || !values.Prints(value, text)
		}
	}
	if len(typed) > 0 {
		more := ""
		if revision {
			more = "; each release gets one more revision"
		}
		f.addf(Changes, where, "overrideValues have types, as --set gives them, and were always texts: %s. A template that compares one with a text fails, and false, which was true as a text, is false%s", strings.Join(typed, "; "), more).
			Do = "look at what chartwright render prints for a resource of the kind"
	}
	slices.Sort(variables)
	if variables = slices.Compact(variables); len(variables) > 0 {
		f.addf(Works, where, "overrideValues are expanded from the environment (%s), which the manager's container has to have as before", strings.Join(variables, ", "))
	}
	if len(typed) == 0 {
		f.addf(Works, where, "overrideValues are texts, as they were")
	}
}

// becomes tells of a value that is no text any more. What a variable holds may be
// a password, and reports get around.
func becomes(raw string, value any) string {
	if len(variablesOf(raw)) == 0 {
		return fmt.Sprintf("%q becomes %s", raw, show(value))
	}
	kind := "a number"
	switch value.(type) {
	case bool:
		kind = "true or false"
	case nil:
		kind = "null"
	case []any:
		kind = "a list"
	}
	return fmt.Sprintf("%q becomes %s", raw, kind)
}

var variable = regexp.MustCompile(`\$(?:\{(\w+)\}|(\w+))`)

// variablesOf returns the names of variables in a text.
func variablesOf(text string) []string {
	found := variable.FindAllStringSubmatch(text, -1)
	names := make([]string, 0, len(found))
	for _, match := range found {
		names = append(names, match[1]+match[2])
	}
	return names
}

// valueAt returns the value at a path of plain keys. One into a list is not
// found.
func valueAt(fields map[string]any, path string) (any, bool) {
	var value any = fields
	for key := range strings.SplitSeq(path, ".") {
		inner, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = inner[key]; !ok {
			return nil, false
		}
	}
	return value, true
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
