package migrate

import (
	"path"
	"slices"

	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// told are rules of lint that are told elsewhere, better: by the allow block
// and by the role.
var told = map[string]bool{"not-allowed": true, "lookup-elsewhere": true, "rights-unresolved": true, "schema-missing": true}

// chartFindings tells what is wrong with the chart itself.
func (p *Project) chartFindings(kind catalog.Kind) ([]Finding, error) {
	f := finder{topic: topicOf(kind)}
	found, err := lint.Run(lint.Target{Path: path.Clean(kind.Watch.Chart), Kind: kind})
	if err != nil {
		return nil, err
	}
	warnings := 0
	for _, finding := range found {
		switch {
		case told[finding.Rule]:
		case finding.Severity == lint.Error:
			f.addf(ToDo, at(finding.File, finding.Line), "%s (%s): %s", finding.Message, finding.Rule, finding.Why).Do = finding.Fix
		case finding.Severity == lint.Warning:
			warnings++
		}
	}
	if warnings > 0 {
		f.addf(ToDo, path.Clean(kind.Watch.Chart), "%s of chartwright lint", counted(warnings, "warning", "warnings")).
			Do = "look at them before the move, or after it: chartwright lint"
	}
	if kind.Chart.Features.Lookup && kind.ReconcilePeriod == nil {
		found := f.addf(Changes, path.Clean(kind.Watch.Chart), "the chart uses lookup: what it reads was looked at with every reconcile, each minute, and is from now on when the resource is edited, or every object is applied again")
		found.Do, found.Lines = "say how often to look, if what is read changes", "  reconcilePeriod: 10m\n"
	}
	return f.findings, nil
}

// allowFindings tells what the chart has to be allowed, with the values of the
// samples and others.
func (p *Project) allowFindings(kind catalog.Kind, given []map[string]any) ([]Finding, error) {
	need, notes, err := scaffold.Allow(kind, slices.Concat(p.samplesOf(kind), given)...)
	if err != nil {
		// The findings about the definition tell why there is none.
		return nil, nil //nolint:nilerr // see above
	}
	return allowance(kind, need, notes)
}

// allowance compares what a chart needs with what its entry allows.
func allowance(kind catalog.Kind, need watches.Allow, notes []string) ([]Finding, error) {
	f := finder{topic: topicOf(kind)}
	where := at(watchesFile, kind.Line)
	lines, err := scaffold.AllowLines(need)
	if err != nil {
		return nil, err
	}
	switch missing := scaffold.Lacks(kind.Allow, need); {
	case len(missing) > 0:
		found := f.addf(ToDo, where, "the chart goes beyond the release's namespace. An entry with none but the operator-sdk's keys allows that, with a warning at start; with any other key, what its allow block does not name is refused")
		found.Do, found.Lines = "add to the entry what the chart has business with", lines
	case lines == "":
		found := f.addf(Works, where, "the chart stays in the release's namespace. An entry with none but the operator-sdk's keys allows it to go anywhere, should values lead it there")
		found.Do, found.Lines = "have that refused", "  allow: {}\n"
	default:
		f.addf(Works, where, "the entry allows what the chart needs")
	}
	for _, note := range notes {
		f.addf(ToDo, where, "%s", note)
	}
	return f.findings, nil
}
